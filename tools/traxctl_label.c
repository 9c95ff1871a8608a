/*
 * traxctl_label.c - shows and changes label and UUID: of a mounted file system
 * by an ioctl, of one that is not mounted by opening it as a mount does.
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
#include <uuid.h>

#include "base/text.h"
#include "fs/fs.h"
#include "tools/device.h"
#include "tools/facts.h"
#include "tools/traxctl.h"

/* A label or a UUID. */
struct identity_kind {
	const char *name;
	/* Sets it, or prints it if `new` is NULL; returns the exit code. */
	int (*of_mount)(const struct arguments *a, const char *path,
			const char *new);
	void (*print)(const struct super *super);
	/* Fills in the operation that sets it; false: `new` is not valid. */
	bool (*set)(struct fs_op *op, const char *new);
	const char *wrong;
};

/* ---- Label ---- */

static void print_text(const char *label)
{
	char *text = text_escape(label);

	puts(text ? text : "");
	free(text);
}

static void print_label(const struct super *super)
{
	print_text(super->label);
}

static int label_of_mount(const struct arguments *a, const char *path,
			  const char *new)
{
	char *root = traxfs_mount_point(path);
	char text[FSLABEL_MAX] = "";
	int fd, rc;

	/* The same ioctl would read the label of another file system. */
	if (!root && !access(path, F_OK))
		errno = ENODATA;
	if (!root)
		return complain(a, "label");
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(root);
	if (fd < 0)
		return complain(a, "label");
	if (new)
		snprintf(text, sizeof(text), "%s", new);
	rc = ioctl(fd, new ? FS_IOC_SETFSLABEL : FS_IOC_GETFSLABEL, text);
	close(fd);
	if (rc)
		return complain(a, "label");
	if (!new)
		print_text(text);
	return EXIT_SUCCESS;
}

static bool label_set(struct fs_op *op, const char *new)
{
	op->type = FS_SET_LABEL;
	op->name = new;
	return strlen(new) < sizeof(((struct super *)0)->label);
}

static const struct identity_kind label_kind = {
	.name = "label",
	.of_mount = label_of_mount,
	.print = print_label,
	.set = label_set,
	.wrong = "a label has at most 63 bytes",
};

/* ---- UUID ---- */

static void print_uuid(const struct super *super)
{
	char text[UUID_STR_LEN];

	uuid_unparse_lower(super->shown_uuid, text);
	puts(text);
}

static bool uuid_from(const char *text, uuid_t uuid)
{
	if (!strcmp(text, "random"))
		uuid_generate_random(uuid);
	else if (uuid_parse(text, uuid))
		return false;
	return true;
}

static int uuid_of_mount(const struct arguments *a, const char *path,
			 const char *new)
{
	struct trax_control c = {
		.command = TRAX_CONTROL_SET_UUID,
		.payload_bytes = TRAX_UUID_BYTES,
	};
	json_t *stats;

	if (new) {
		uuid_from(new, c.payload);
		return control_ioctl(path, &c) ? complain(a, "uuid") :
						 EXIT_SUCCESS;
	}
	stats = read_json(path, "trax.stats");
	if (!stats)
		return complain(a, "uuid");
	print_text(fact_string(stats, "uuid"));
	json_decref(stats);
	return EXIT_SUCCESS;
}

static bool uuid_set(struct fs_op *op, const char *new)
{
	static uuid_t uuid;

	op->type = FS_SET_UUID;
	op->data = uuid;
	return uuid_from(new, uuid);
}

static const struct identity_kind uuid_kind = {
	.name = "uuid",
	.of_mount = uuid_of_mount,
	.print = print_uuid,
	.set = uuid_set,
	.wrong = "neither a UUID nor \"random\"",
};

/* ---- Both ---- */

static void is_set(struct fs_op *op)
{
	bool *over = op->owner;

	*over = true;
}

static int set_on(struct disk *disk, struct fs_op *op)
{
	const struct fs_options options = { .commit_seconds = 0 };
	bool over = false;
	struct fs *fs;
	int rc = fs_open(env_real(), disk, &options, &fs), rc2;

	if (rc)
		return rc;
	op->done = is_set;
	op->owner = &over;
	fs_submit(fs, op);
	while (!over)
		fs_run(fs, 100);
	rc2 = fs_close(fs);
	return op->rc ? op->rc : rc2;
}

static int of_device(const struct identity_kind *kind, const char *path,
		     struct fs_op *op)
{
	struct super super;
	struct disk *disk;
	int rc = device_open(path, !op, &disk);

	if (rc)
		return EXIT_FAILED;
	rc = device_read_super(disk, &super);
	if (!rc && op)
		rc = set_on(disk, op);
	disk_close(disk);
	if (rc)
		fprintf(stderr, "traxctl: %s: %s\n", path, rc == -EINVAL ?
			"no traxfs" : strerror(-rc));
	else if (!op)
		kind->print(&super);
	return rc ? EXIT_FAILED : EXIT_SUCCESS;
}

static int show_or_set(const struct arguments *a,
		       const struct identity_kind *kind)
{
	const char *new = a->paths_n > 1 ? a->paths[0] : NULL;
	const char *path = a->paths[a->paths_n - 1];
	struct arguments on = *a;
	struct fs_op op = { 0 };
	struct stat st;

	if (a->paths_n > 2) {
		fprintf(stderr, "traxctl: %s: one %s and one path\n",
			kind->name, kind->name);
		return EXIT_WRONG_USE;
	}
	/* Tools of other file systems take them the other way round. */
	if (new && stat(path, &st) && errno == ENOENT && !stat(new, &st)) {
		fprintf(stderr, "traxctl: %s: no such path; the new %s comes "
			"first: traxctl %s NEW PATH\n", path, kind->name,
			kind->name);
		return EXIT_WRONG_USE;
	}
	if (new && !kind->set(&op, new)) {
		fprintf(stderr, "traxctl: %s: %s\n", new, kind->wrong);
		return EXIT_WRONG_USE;
	}
	if (!stat(path, &st) && !S_ISDIR(st.st_mode))
		return of_device(kind, path, new ? &op : NULL);
	on.path = path;
	return kind->of_mount(&on, path, new);
}

int run_label(const struct arguments *a)
{
	return show_or_set(a, &label_kind);
}

int run_uuid(const struct arguments *a)
{
	return show_or_set(a, &uuid_kind);
}
