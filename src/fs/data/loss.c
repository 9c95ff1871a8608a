/*
 * loss.c - data of a file that was given up, and which open file descriptions
 * have been told.
 *
 * fsync reports a loss to every open file description once, as the kernel's
 * errseq does: to those that were opened before the first of them was told.
 */
#include "fs/data/loss.h"

struct loss {
	int error;
	uint64_t opened;	/* descriptions up to this number are told */
	struct list handles;	/* struct reported */
};

struct reported {
	struct list link;
	uint64_t handle;
};

static void loss_forget(struct loss *loss)
{
	struct reported *reported;

	while ((reported = list_first(&loss->handles, struct reported, link))) {
		list_del(&reported->link);
		abandon_free(reported);
	}
}

void loss_free(struct file *file)
{
	if (!file->loss)
		return;
	loss_forget(file->loss);
	abandon_free(file->loss);
	file->loss = NULL;
}

/* Descriptions that were told of an older loss are told of this one, too. */
void loss_set(struct file *file, int error)
{
	if (file->loss)
		loss_forget(file->loss);
	else
		file->loss = abandon_alloc(file->files->fs,
					   sizeof(*file->loss));
	if (!file->loss)
		return;
	list_init(&file->loss->handles);
	file->loss->error = error;
	file->loss->opened = UINT64_MAX;
}

static struct reported *loss_find(const struct loss *loss, uint64_t handle)
{
	struct list *pos;

	list_for_each(pos, &loss->handles)
		if (list_entry(pos, struct reported, link)->handle == handle)
			return list_entry(pos, struct reported, link);
	return NULL;
}

int loss_report(struct file *file, uint64_t handle)
{
	struct fs *fs = file->files->fs;
	struct loss *loss = file->loss;
	struct reported *reported;

	if (!loss || handle > loss->opened || loss_find(loss, handle))
		return 0;
	if (loss->opened == UINT64_MAX)
		loss->opened = fs->handles;
	reported = abandon_alloc(file->files->fs, sizeof(*reported));
	if (reported) {
		reported->handle = handle;
		list_add(&loss->handles, &reported->link);
	}
	return loss->error;
}

void loss_closed(struct file *file, uint64_t handle)
{
	struct reported *reported = file->loss ?
		loss_find(file->loss, handle) : NULL;

	if (!reported)
		return;
	list_del(&reported->link);
	abandon_free(reported);
}
