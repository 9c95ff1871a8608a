/*
 * scan_queue.c - records, kept until they are taken, within a bound.
 */
#include "scan/scan_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of records that may wait to be taken; beyond QUEUE_FULL data that
 * arrives is dropped and wanted again.  Reads under way when the bound is
 * reached still arrive: a track or two, of 2.5 MB at most. */
#define QUEUE_BYTES (4u << 20)
#define QUEUE_FULL (12u << 20)

bool scan_give_room(const struct file_scan *scan)
{
	return scan->queue_bytes < QUEUE_BYTES;
}

bool scan_give_full(const struct file_scan *scan)
{
	return scan->queue_bytes >= QUEUE_FULL;
}

static size_t data_bytes(const struct scan_record *head)
{
	return head->type == SCAN_DATA ? head->bytes : 0;
}

int scan_give(struct file_scan *scan, const struct scan_record *head,
	      const void *data)
{
	size_t bytes = data_bytes(head);
	struct scan_queued *queued = malloc(sizeof(*queued) + bytes);

	if (!queued)
		return -ENOMEM;
	queued->head = *head;
	if (bytes)
		memcpy(queued->data, data, bytes);
	list_add(&scan->queue, &queued->link);
	scan->queue_bytes += sizeof(*queued) + bytes;
	return 0;
}

bool file_scan_readable(const struct file_scan *scan)
{
	return !list_empty(&scan->queue);
}

size_t scan_queue_take(struct file_scan *scan, void *buffer, size_t room)
{
	struct scan_queued *queued;
	uint8_t *to = buffer;
	size_t n, used = 0;

	while ((queued = list_first(&scan->queue, struct scan_queued, link))) {
		n = data_bytes(&queued->head);
		if (used + sizeof(queued->head) + n > room)
			break;
		memcpy(to + used, &queued->head, sizeof(queued->head));
		used += sizeof(queued->head);
		memcpy(to + used, queued->data, n);
		used += n;
		list_del(&queued->link);
		scan->queue_bytes -= sizeof(*queued) + n;
		free(queued);
	}
	return used;
}
