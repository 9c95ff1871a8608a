/*
 * scan_give.c - records of files.
 *
 * Out of file order a verified block becomes a record at once.  In file order
 * it waits in its run until all before it have been given.
 */
#include "scan/scan_internal.h"

#include <errno.h>
#include <string.h>

/* ---- blocks ---- */

/* Makes a record of blocks [i, i + n) of a run, up to the end of the file. */
static int give_record(struct scan_run *run, unsigned i, unsigned n,
		       const uint8_t *data)
{
	struct scan_file *file = run->file;
	struct scan_record head = {
		.type = data ? SCAN_DATA : SCAN_ERROR,
		.error = data ? 0 : -EIO,
		.ino = file->ino,
		.offset = (run->first + i) * BLOCK_BYTES,
		.bytes = (uint64_t)n * BLOCK_BYTES,
	};
	int rc;

	if (head.offset + head.bytes > file->size)
		head.bytes = file->size - head.offset;
	rc = scan_give(file->scan, &head, data);
	if (rc)
		return rc;
	file->sent = true;
	if (data)
		file->scan->given_bytes += head.bytes;
	return 0;
}

static uint64_t block_bits(unsigned i, unsigned n)
{
	return (n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX) << i;
}

/* Number of consecutive blocks from i on that are in a set. */
static unsigned bits_in_row(uint64_t set, unsigned i)
{
	unsigned n = 0;

	while (i + n < 64 && (set >> (i + n) & 1))
		n++;
	return n;
}

void scan_file_touch(struct scan_file *file, int rc)
{
	if (rc && !file->failed)
		file->failed = rc;
	if (list_empty(&file->touched))
		list_add(&file->scan->touched, &file->touched);
}

void scan_run_done(struct scan_run *run, unsigned i, unsigned n)
{
	const uint64_t all = block_bits(0, run->blocks);

	if (run->done == all)
		return;
	run->done |= block_bits(i, n);
	if (run->done != all)
		return;
	list_del(&run->link);
	list_add(&run->file->over, &run->link);
	scan_file_touch(run->file, 0);
}

/* Gives the blocks of a run whose turn it is; true: all that it owns have been
 * given. */
static bool run_give_ready(struct scan_run *run)
{
	while (run->next < run->blocks) {
		uint64_t bit = UINT64_C(1) << run->next;
		unsigned n, i = run->next;

		if (!(run->own & bit) || (run->done & bit)) {
			run->next++;
			continue;
		}
		n = bits_in_row(run->held & run->own & ~run->done, i);
		if (!n || !scan_give_room(run->file->scan) ||
		    give_record(run, i, n, run->data + i * BLOCK_BYTES))
			return false;
		run->next += n;
		scan_run_done(run, i, n);
	}
	return true;
}

/* In file order: gives the blocks of a file whose turn it is. */
static void give_ready(struct scan_file *file)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &file->runs)
		if (!run_give_ready(list_entry(pos, struct scan_run, link)))
			return;
}

size_t file_scan_read(struct file_scan *scan, void *buffer, size_t room)
{
	size_t used = scan_queue_take(scan, buffer, room);
	struct list *pos, *next;

	if (scan->options.file_order)
		list_for_each_safe(pos, next, &scan->files)
			give_ready(list_entry(pos, struct scan_file, link));
	scan_sweep(scan);
	return used;
}

int scan_give_blocks(struct scan_run *run, unsigned i, unsigned n,
		     const uint8_t *data)
{
	if (data && run->file->scan->options.file_order) {
		memcpy(run->data + (size_t)i * BLOCK_BYTES, data,
		       (size_t)n * BLOCK_BYTES);
		run->held |= block_bits(i, n);
		give_ready(run->file);
		return 0;
	}
	if (give_record(run, i, n, data))
		return -ENOMEM;
	scan_run_done(run, i, n);
	return 0;
}
