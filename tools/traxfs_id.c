/*
 * traxfs_id.c - tells udev what a device carries: traxfs_id DEVICE prints
 * ID_FS_* lines when its first superblock is good, and fails silently when not.
 * The udev rule runs it by IMPORT{program}; mount(8) finds LABEL= and UUID= by
 * the links that the rule makes.
 */
#include <blkid.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uuid.h>

#include "disk/disk.h"
#include "format/format.h"

/* Each byte may become \xNN. */
#define ENCODED_BYTES (4 * sizeof(((struct super *)0)->label))

static bool read_super(const char *path, struct super *super)
{
	unsigned char block[TRAX_BLOCK_BYTES];
	off_t at = TRAX_SUPER_SECTOR * (off_t)SECTOR_BYTES;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = pread(fd, block, sizeof(block), at);
	close(fd);
	return got == (ssize_t)sizeof(block) &&
	       !super_decode(block, TRAX_SUPER_SECTOR, super);
}

static void print_label(const struct super *super)
{
	char text[ENCODED_BYTES];

	if (!super->label[0])
		return;
	if (!blkid_safe_string(super->label, text, sizeof(text)))
		printf("ID_FS_LABEL=%s\n", text);
	if (!blkid_encode_string(super->label, text, sizeof(text)))
		printf("ID_FS_LABEL_ENC=%s\n", text);
}

int main(int argc, char **argv)
{
	struct super *super = malloc(sizeof(*super));
	char uuid[UUID_STR_LEN];

	if (argc != 2 || !super || !read_super(argv[1], super)) {
		free(super);
		return EXIT_FAILURE;
	}
	uuid_unparse_lower(super->shown_uuid, uuid);
	printf("ID_FS_TYPE=traxfs\nID_FS_USAGE=filesystem\n");
	printf("ID_FS_UUID=%s\nID_FS_UUID_ENC=%s\n", uuid, uuid);
	print_label(super);
	free(super);
	return EXIT_SUCCESS;
}
