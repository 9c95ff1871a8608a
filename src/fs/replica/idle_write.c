/*
 * idle_write.c - see idle_write.h.
 *
 * A gap is a part of a revolution, so a track is cut into twenty parts, which
 * are written in any order.
 */
#include "fs/replica/idle_write.h"

#include <errno.h>
#include <stdlib.h>

#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"

#define PARTS 20u		/* parts of a track */
#define MAX_PART_SECTORS 128u
#define MAX_PARTS (TRAX_MAX_REGION_SECTORS / MAX_PART_SECTORS)
#define EXPEDITE_DEPTH 4u

struct idle_write_part {
	struct queue_request req;
	struct iovec iov;
};

struct idle_write {
	struct fs *fs;
	struct freeblock_task *task;
	struct idle_write_part part[MAX_PARTS];
	unsigned left;
	int rc;
	void (*done)(void *arg, int rc);	/* NULL: no write is under
						 * way */
	void *arg;
};

/* While a queue has a task it looks for gaps, so the task exists only while it
 * is needed. */
static void task_close(struct idle_write *bw)
{
	if (bw->task)
		freeblock_close(bw->task);
	bw->task = NULL;
}

static void part_over(struct idle_write *bw, int rc)
{
	void (*done)(void *arg, int rc) = bw->done;

	if (rc)
		bw->rc = -EIO;
	if (--bw->left || !done)
		return;
	bw->done = NULL;
	task_close(bw);
	done(bw->arg, bw->rc);
}

static void part_written(void *arg, struct queue_request *req)
{
	part_over(arg, req->disk.result);
}

static void whole_written(struct disk_request *req)
{
	part_over(req->owner, req->result);
}

static const struct freeblock_ops idle_write_ops = { .written = part_written };

int idle_write_open(struct fs *fs, struct idle_write **out)
{
	struct idle_write *bw = calloc(1, sizeof(*bw));

	if (!bw)
		return -ENOMEM;
	bw->fs = fs;
	*out = bw;
	return 0;
}

void idle_write_close(struct idle_write *bw)
{
	if (!bw)
		return;
	bw->done = NULL;
	task_close(bw);
	free(bw);
}

static uint64_t part_sectors(const struct idle_write *bw, uint64_t sector,
			     uint64_t sectors)
{
	uint64_t n = alloc_track_sectors(bw->fs->alloc, sector) / PARTS;

	n = n < MAX_PART_SECTORS ? n : MAX_PART_SECTORS;
	n = n > sectors / MAX_PARTS ? n : sectors / MAX_PARTS;
	return (n / TRAX_BLOCK_SECTORS + 1) * TRAX_BLOCK_SECTORS;
}

static void part_set(struct idle_write_part *part, uint64_t sector,
		     uint64_t sectors, uint8_t *data)
{
	part->iov = (struct iovec){ data, (size_t)sectors * SECTOR_BYTES };
	part->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE, .sector = sector,
			.sectors = (uint32_t)sectors, .iov = &part->iov,
			.iov_n = 1,
		},
		.class = QUEUE_IDLE,
		.who = FAULT_COPY,
	};
}

void idle_write_start(struct idle_write *bw, uint64_t sector, uint64_t sectors,
		     void *data, bool gaps, void (*done)(void *arg, int rc),
		     void *arg)
{
	const struct freeblock_options options = {
		.name = "copies", .unit_sectors = TRAX_BLOCK_SECTORS,
	};
	const struct head *head = bw->fs->head;
	uint64_t step, at;
	unsigned n = 0;

	gaps = gaps && head && head_is_known(head) &&
	       head_mode(head) != HEAD_OFF &&
	       !freeblock_open(bw->fs->queue, &options, &idle_write_ops, bw,
			       &bw->task);
	step = gaps ? part_sectors(bw, sector, sectors) : sectors;
	bw->rc = 0;
	bw->done = done;
	bw->arg = arg;
	bw->left = (unsigned)((sectors + step - 1) / step);
	for (at = 0; at < sectors; at += step, n++) {
		part_set(&bw->part[n], sector + at,
			 sectors - at < step ? sectors - at : step,
			 (uint8_t *)data + at * SECTOR_BYTES);
		if (gaps) {
			freeblock_write(bw->task, &bw->part[n].req);
			continue;
		}
		bw->part[n].req.disk.done = whole_written;
		bw->part[n].req.disk.owner = bw;
		queue_submit(bw->fs->queue, &bw->part[n].req);
	}
}

void idle_write_expedite(struct idle_write *bw)
{
	if (bw->task)
		freeblock_promote(bw->task, EXPEDITE_DEPTH);
}
