/*
 * drive.c - the drive that takes the same time for everything.
 */
#include <stdlib.h>

#include "sim/drive.h"

struct drive {
	uint64_t latency_ns;
	struct list queue;	/* in order of completion */
};

struct drive *drive_new_flat(uint64_t latency_ns)
{
	struct drive *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->latency_ns = latency_ns;
	list_init(&d->queue);
	return d;
}

void drive_free(struct drive *drive)
{
	free(drive);
}

void drive_submit(struct drive *drive, struct drive_op *op, uint64_t now_ns)
{
	op->arrive_ns = now_ns;
	op->done_ns = now_ns + drive->latency_ns;
	list_add(&drive->queue, &op->link);
}

uint64_t drive_next_ns(const struct drive *drive)
{
	const struct drive_op *op =
		list_first(&drive->queue, struct drive_op, link);

	return op ? op->done_ns : UINT64_MAX;
}

struct drive_op *drive_run(struct drive *drive, uint64_t until_ns)
{
	struct drive_op *op =
		list_first(&drive->queue, struct drive_op, link);

	if (!op || op->done_ns > until_ns)
		return NULL;
	list_del(&op->link);
	return op;
}

void drive_reset(struct drive *drive, uint64_t now_ns)
{
	(void)now_ns;
	list_init(&drive->queue);
}
