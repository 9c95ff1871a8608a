/*
 * super_write.c - writes the three superblocks, with a flush after each.
 */
#include "fs/drive/super_write.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"

#define PLACES 3u	/* Superblocks of a file system (super_places). */

int super_write_init(struct super_write *s, struct fs *fs,
		void (*done)(void *arg, int rc), void *arg)
{
	*s = (struct super_write){ .fs = fs, .done = done, .arg = arg };
	s->block = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	return s->block ? 0 : -ENOMEM;
}

void super_write_fini(struct super_write *s)
{
	free(s->block);
	s->block = NULL;
}

static void super_write_go(struct super_write *s);

static void super_write_step_done(struct disk_request *req)
{
	struct super_write *s = req->owner;

	if (!req->result && !s->flushing) {
		s->flushing = true;
		super_write_go(s);
		return;
	}
	s->good += !req->result;
	s->flushing = false;
	s->copy++;
	if (req->result && fault_next(FAULT_SUPER,
				      fault_class(req->op, req->result),
				      ++s->failures, NULL) != FAULT_RELOCATE)
		s->copy = PLACES;
	super_write_go(s);
}

static void super_write_block(struct super_write *s, uint64_t sector)
{
	super_encode(&s->next, sector, s->block);
	s->iov = (struct iovec){ s->block, TRAX_BLOCK_BYTES };
	s->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE, .sector = sector,
			.sectors = TRAX_BLOCK_SECTORS, .iov = &s->iov,
			.iov_n = 1, .done = super_write_step_done, .owner = s,
		},
		.class = QUEUE_WRITE_BACK,
		.origin = FAULT_SUPER,
	};
	queue_submit(s->fs->queue, &s->req);
}

/* A version that did not become durable may be on the disk all the same: no
 * other content gets its number. */
static void super_write_over(struct super_write *s)
{
	struct super super = s->next;

	if (!s->good) {
		super = *tree_super(s->fs->tree);
		super.version = s->next.version;
	}
	tree_set_super(s->fs->tree, &super);
	s->done(s->arg, s->good ? 0 : -EIO);
}

static void super_write_go(struct super_write *s)
{
	uint64_t place[PLACES];

	if (s->flushing) {
		s->req = (struct queue_request){
			.disk = { .done = super_write_step_done, .owner = s },
		};
		queue_flush(s->fs->queue, &s->req);
	} else if (s->copy < PLACES) {
		super_places(&s->next, place);
		super_write_block(s, place[s->copy]);
	} else {
		super_write_over(s);
	}
}

int super_write_start(struct super_write *s, const struct super *next)
{
	struct super check;
	const char *why;

	s->next = *next;
	s->next.version = tree_super(s->fs->tree)->version + 1;
	super_encode(&s->next, TRAX_SUPER_SECTOR, s->block);
	why = super_decode(s->block, TRAX_SUPER_SECTOR, &check);
	if (why) {
		msg_error("%s: superblocks are not written: %s",
			  s->fs->disk->name, why);
		return -EUCLEAN;
	}
	s->copy = s->good = s->failures = 0;
	s->flushing = false;
	super_write_go(s);
	return 0;
}
