/*
 * traxctl_label.c - shows and changes the label, of a mount by ioctl, of a
 * device or image that is not mounted as a mount would.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "fs/fs.h"
#include "tools/device.h"
#include "tools/traxctl.h"

static int print_label(const char *label)
{
	char *text = text_escape(label);

	if (!text)
		return EXIT_FAILED;
	puts(text);
	free(text);
	return EXIT_SUCCESS;
}

static int of_mount(const struct arguments *a, const char *path,
		    const char *new)
{
	char text[FSLABEL_MAX] = "";
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return complain(a, "label");
	if (new)
		snprintf(text, sizeof(text), "%s", new);
	rc = ioctl(fd, new ? FS_IOC_SETFSLABEL : FS_IOC_GETFSLABEL, text);
	close(fd);
	if (rc)
		return complain(a, "label");
	return new ? EXIT_SUCCESS : print_label(text);
}

static void label_set(struct fs_op *op)
{
	bool *over = op->owner;

	*over = true;
}

static int set_on(struct disk *disk, const char *new)
{
	const struct fs_options options = { .commit_seconds = 0 };
	bool over = false;
	struct fs_op op = {
		.type = FS_SET_LABEL, .name = new, .done = label_set,
		.owner = &over,
	};
	struct fs *fs;
	int rc = fs_open(env_real(), disk, &options, &fs), rc2;

	if (rc)
		return rc;
	fs_submit(fs, &op);
	while (!over)
		fs_run(fs, 100);
	rc2 = fs_close(fs);
	return op.rc ? op.rc : rc2;
}

static int of_device(const char *path, const char *new)
{
	struct super super;
	struct disk *disk;
	int rc = device_open(path, !new, &disk);

	if (rc)
		return EXIT_FAILED;
	rc = device_read_super(disk, &super);
	if (!rc && new)
		rc = set_on(disk, new);
	disk_close(disk);
	if (rc)
		fprintf(stderr, "traxctl: %s: %s\n", path, rc == -EINVAL ?
			"no traxfs, or the label is longer than 63 bytes" :
			strerror(-rc));
	else if (!new)
		return print_label(super.label);
	return rc ? EXIT_FAILED : EXIT_SUCCESS;
}

int run_label(const struct arguments *a)
{
	const char *new = a->paths_n > 1 ? a->paths[0] : NULL;
	const char *path = a->paths[a->paths_n - 1];
	struct stat st;

	if (a->paths_n > 2) {
		fprintf(stderr, "traxctl: label: one label and one path\n");
		return EXIT_WRONG_USE;
	}
	if (!stat(path, &st) && !S_ISDIR(st.st_mode))
		return of_device(path, new);
	return of_mount(a, path, new);
}
