/*
 * real.c - see real.h.
 */
#include "bench/real.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"
#include "base/units.h"
#include "bench/guard.h"
#include "bench/shell.h"

/* Room for the path of a file. */
#define PATH_BYTES 256u

struct real {
	char dir[PATH_BYTES];	/* directory of everything that is made */
	struct guard guard;
	char loop[64];
	char fs[16];
	char (*name)[PATH_BYTES];	/* names by inode number; 1 is the
					 * root */
	size_t n, room;
};

/* ---- The drive ---- */

static int spec_save(const struct spec *spec, const char *path)
{
	FILE *f = fopen(path, "w");
	int rc = f ? spec_write(spec, f) : -errno;

	if (f && fclose(f) && !rc)
		rc = -EIO;
	return rc;
}

static int drive_start(struct real *real, const struct spec *spec)
{
	char path[PATH_BYTES + 32];
	int rc = shell_run("mkdir -p '%s/drive' '%s/mnt'", real->dir,
			   real->dir);

	snprintf(path, sizeof(path), "%s/spec.json", real->dir);
	if (!rc)
		rc = spec_save(spec, path);
	if (!rc)
		rc = shell_run("traxdisk --profile '%s' > '%s/profile.json'",
			       path, real->dir);
	if (!rc)
		rc = shell_run("traxdisk '%s' '%s/image' '%s/drive'", path,
			       real->dir, real->dir);
	if (!rc)
		rc = shell_run("losetup --direct-io=on --find --show "
			       "'%s/drive/disk' > '%s/loop'", real->dir,
			       real->dir);
	snprintf(path, sizeof(path), "%s/loop", real->dir);
	return rc ? rc : shell_word(path, real->loop, sizeof(real->loop));
}

int real_open(const struct spec *spec, const char *image_dir,
	      struct real **out)
{
	struct real *real = calloc(1, sizeof(*real));
	int rc;

	if (!real)
		return -ENOMEM;
	snprintf(real->dir, sizeof(real->dir), "%s/traxbench-XXXXXX",
		 image_dir ? image_dir : "/var/tmp");
	if (!mkdtemp(real->dir)) {
		rc = -errno;
		msg_error("%s: %s", real->dir, strerror(errno));
		free(real);
		return rc;
	}
	rc = guard_begin(&real->guard, real->dir);
	if (rc) {
		free(real);
		return rc;
	}
	rc = drive_start(real, spec);
	if (rc) {
		real_close(real);
		return rc;
	}
	*out = real;
	return 0;
}

void real_close(struct real *real)
{
	if (!real)
		return;
	if (real->fs[0])
		real_unmount(real);
	guard_end(&real->guard, real->dir);
	free(real->name);
	free(real);
}

int real_clear(struct real *real)
{
	char path[PATH_BYTES + 32];

	snprintf(path, sizeof(path), "%s/drive/stats", real->dir);
	return shell_write(path, "reset\n");
}

static uint64_t head_ns(const json_t *times, const char *key)
{
	return (uint64_t)(json_number_value(json_object_get(times, key)) *
			  NS_PER_MS);
}

int real_times(struct real *real, struct drive_times *times)
{
	char path[PATH_BYTES + 32];
	json_error_t error;
	json_t *stats, *head;

	snprintf(path, sizeof(path), "%s/drive/stats", real->dir);
	stats = json_load_file(path, 0, &error);
	if (!stats) {
		msg_error("%s: %s", path, error.text);
		return -EIO;
	}
	head = json_object_get(stats, "head_ms");
	*times = (struct drive_times){
		.seek_ns = head_ns(head, "seek"),
		.switch_ns = head_ns(head, "switch"),
		.rotation_ns = head_ns(head, "rotation"),
		.transfer_ns = head_ns(head, "transfer"),
		.prefetch_ns = head_ns(head, "prefetch"),
		.accesses = (uint64_t)json_number_value(
			json_object_get(stats, "accesses")),
	};
	json_decref(stats);
	return 0;
}

/* ---- File systems ---- */

int real_mkfs(struct real *real, const char *name)
{
	bool ours = !strcmp(name, "traxfs");

	snprintf(real->fs, sizeof(real->fs), "%s", name);
	real->n = 2;
	if (ours)
		return shell_run("mkfs.traxfs -f --profile '%s/profile.json' "
				 "'%s' > /dev/null", real->dir, real->loop);
	return shell_run("mkfs.%s -q -F '%s'", name, real->loop);
}

int real_mount(struct real *real, unsigned replicas, size_t memory_bytes)
{
	int rc = shell_drop_caches();

	if (rc)
		return rc;
	if (!strcmp(real->fs, "traxfs"))
		return shell_run("traxfs -o replicas=%u,memory=%zuM,noatime "
				 "'%s' '%s/mnt'", replicas, memory_bytes >> 20,
				 real->loop, real->dir);
	/* ext4 must not be charged for tables that the kernel would initialize
	 * during the measurement. */
	return shell_run("mount -t %s -o noatime%s '%s' '%s/mnt'", real->fs,
			 strcmp(real->fs, "ext4") ? "" : ",noinit_itable",
			 real->loop, real->dir);
}

int real_forget(void)
{
	return shell_drop_caches();
}

int real_unmount(struct real *real)
{
	char mnt[PATH_BYTES + 8];

	snprintf(mnt, sizeof(mnt), "%s/mnt", real->dir);
	return shell_run("if mountpoint -q '%s'; then umount '%s'; fi", mnt,
			 mnt);
}

/* ---- Operations ---- */

static int name_new(struct real *real, struct fs_op *op, char *path)
{
	size_t room = real->room ? 2 * real->room : 4096;
	int n;

	if (real->n >= real->room) {
		real->name = realloc(real->name, room * sizeof(*real->name));
		if (!real->name)
			return -ENOMEM;
		real->room = room;
		snprintf(real->name[1], PATH_BYTES, ".");
	}
	n = snprintf(path, PATH_BYTES, "%s/%s",
		     op->ino == 1 ? "." : real->name[op->ino], op->name);
	return n < (int)PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int in_mount(const struct real *real)
{
	char mnt[PATH_BYTES + 8];
	int fd;

	snprintf(mnt, sizeof(mnt), "%s/mnt", real->dir);
	fd = open(mnt, O_RDONLY | O_DIRECTORY);
	return fd < 0 ? -errno : fd;
}

static int do_name(struct real *real, int root, struct fs_op *op)
{
	char path[PATH_BYTES];
	struct stat stat;
	int rc = name_new(real, op, path);

	if (!rc && op->type == FS_MKDIR)
		rc = mkdirat(root, path, 0755);
	else if (!rc && op->type == FS_MKNOD)
		rc = mknodat(root, path, S_IFREG | 0644, 0);
	else if (!rc)
		rc = fstatat(root, path, &stat, 0);
	if (rc)
		return rc < -1 ? rc : -errno;
	if (op->type != FS_LOOKUP) {
		memcpy(real->name[real->n], path, PATH_BYTES);
		op->attr.ino = real->n++;
	}
	return 0;
}

static int do_data(struct real *real, int root, struct fs_op *op)
{
	int fd = openat(root, real->name[op->ino],
			op->type == FS_READ ? O_RDONLY : O_WRONLY);
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (op->type == FS_READ)
		n = pread(fd, op->buffer, op->size, (off_t)op->offset);
	else if (op->type == FS_WRITE)
		n = pwrite(fd, op->data, op->size, (off_t)op->offset);
	else
		n = fallocate(fd, 0, (off_t)op->offset, (off_t)op->size);
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : 0;
}

int real_do(struct real *real, struct fs_op *op)
{
	int root = in_mount(real);

	op->rc = root;
	if (root < 0)
		return root;
	if (op->type == FS_SYNCFS)
		op->rc = syncfs(root) ? -errno : 0;
	else if (op->name)
		op->rc = do_name(real, root, op);
	else
		op->rc = do_data(real, root, op);
	close(root);
	return op->rc;
}
