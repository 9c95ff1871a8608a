/*
 * fault.c - the table of fault.h.
 *
 * Content that exists once is tried at sixteen places within 35 s: longer than
 * a reset of a bus or of a drive takes, shorter than a user waits.  Content
 * that the log still has is never given up: the file system is read-only then.
 */
#include "disk/fault.h"

#include <assert.h>
#include <errno.h>

#define TRIES 15u		/* repetitions: at once, after 50 ms, 100 ms ...
				 * 3.2 s, and seven times after 4 s */
#define PAUSE_MS 50u		/* first pause: by then a drive has settled and
				 * a bus has been reset */
#define LOG_PLACES 7u		/* other log tracks to try: as many as are
				 * surely free */
#define MIRROR_PLACES 3u	/* other log tracks to try: then a checkpoint
				 * costs less */
/* Other places to read: twice where the map says then, as write-back may have
 * moved the data meanwhile, and two copies. */
#define READ_PLACES 4u

#define ROW(retries, places, pause_ms, last) \
	{ true, (retries), (places), (pause_ms), (last) }

static const struct fault_row table[FAULT_ORIGINS][FAULT_CLASSES] = {
	[FAULT_DATA] = {
		[FAULT_MEDIA] = ROW(0, TRIES, PAUSE_MS, FAULT_FAIL_FILE),
		[FAULT_TRANSPORT] = ROW(0, TRIES, PAUSE_MS, FAULT_FAIL_FILE),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FILE),
	},
	[FAULT_DESTAGE] = {
		[FAULT_MEDIA] = ROW(0, TRIES, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_TRANSPORT] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_MEMORY] = ROW(FAULT_FOREVER, 0, PAUSE_MS,
				     FAULT_FAIL_FS),
	},
	[FAULT_LOG] = {
		[FAULT_MEDIA] = ROW(0, LOG_PLACES, 0, FAULT_FAIL_FS),
		[FAULT_TRANSPORT] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_FLUSH] = ROW(0, 0, 0, FAULT_FAIL_FS),
		[FAULT_MEMORY] = ROW(FAULT_FOREVER, 0, PAUSE_MS,
				     FAULT_FAIL_FS),
	},
	[FAULT_MIRROR] = {
		[FAULT_MEDIA] = ROW(0, MIRROR_PLACES, 0, FAULT_GIVE_UP),
		[FAULT_TRANSPORT] = ROW(0, 0, 0, FAULT_GIVE_UP),
		[FAULT_MEMORY] = ROW(0, 0, 0, FAULT_GIVE_UP),
	},
	[FAULT_NODE] = {
		[FAULT_MEDIA] = ROW(0, TRIES, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_TRANSPORT] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_FLUSH] = ROW(0, 0, 0, FAULT_FAIL_FS),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
	},
	[FAULT_ROOT] = {
		[FAULT_MEDIA] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_TRANSPORT] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_FS),
	},
	[FAULT_SUPER] = {
		[FAULT_MEDIA] = ROW(0, 2, 0, FAULT_GIVE_UP),
		[FAULT_TRANSPORT] = ROW(0, 2, 0, FAULT_GIVE_UP),
		[FAULT_FLUSH] = ROW(0, 0, 0, FAULT_GIVE_UP),
		[FAULT_MEMORY] = ROW(0, 2, 0, FAULT_GIVE_UP),
	},
	[FAULT_COPY] = {
		[FAULT_MEDIA] = ROW(0, 0, 0, FAULT_GIVE_UP),
		[FAULT_TRANSPORT] = ROW(0, 0, 0, FAULT_GIVE_UP),
		[FAULT_MEMORY] = ROW(0, 0, 0, FAULT_GIVE_UP),
	},
	[FAULT_READ_DATA] = {
		[FAULT_MEDIA] = ROW(0, READ_PLACES, 0, FAULT_FAIL_REQUEST),
		[FAULT_TRANSPORT] = ROW(0, READ_PLACES, 0, FAULT_FAIL_REQUEST),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_REQUEST),
	},
	[FAULT_READ_NODE] = {
		[FAULT_MEDIA] = ROW(0, 1, 0, FAULT_FAIL_REQUEST),
		[FAULT_TRANSPORT] = ROW(0, 1, 0, FAULT_FAIL_REQUEST),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_REQUEST),
	},
	[FAULT_READ_ROOT] = {
		[FAULT_MEDIA] = ROW(0, 3, 0, FAULT_FAIL_REQUEST),
		[FAULT_TRANSPORT] = ROW(0, 3, 0, FAULT_FAIL_REQUEST),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_REQUEST),
	},
	[FAULT_READ_SUPER] = {
		[FAULT_MEDIA] = ROW(0, 2, 0, FAULT_FAIL_REQUEST),
		[FAULT_TRANSPORT] = ROW(0, 2, 0, FAULT_FAIL_REQUEST),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_REQUEST),
	},
	[FAULT_READ_LOG] = {
		[FAULT_MEDIA] = ROW(0, 1, 0, FAULT_FAIL_FS),
		[FAULT_TRANSPORT] = ROW(0, 1, 0, FAULT_FAIL_FS),
		[FAULT_MEMORY] = ROW(TRIES, 0, PAUSE_MS, FAULT_FAIL_REQUEST),
	},
};

const struct fault_row *fault_row(enum fault_origin origin,
				  enum fault_class class)
{
	assert(origin < FAULT_ORIGINS && class < FAULT_CLASSES);
	return table[origin][class].used ? &table[origin][class] : NULL;
}

enum fault_class fault_class(enum disk_op op, int result)
{
	if (op == DISK_FLUSH)
		return FAULT_FLUSH;
	switch (result) {
	case -ENOMEM:
		return FAULT_MEMORY;
	case -ENOLINK:
	case -ETIMEDOUT:
	case -ENODEV:
	case -ENXIO:
	case -EAGAIN:
	case -EBUSY:
	case -ESHUTDOWN:
		return FAULT_TRANSPORT;
	default:	/* -ENODATA, -EREMOTEIO, -EILSEQ and -EIO */
		return FAULT_MEDIA;
	}
}

static uint64_t pause_after(const struct fault_row *row, unsigned failures)
{
	uint64_t ms = row->pause_ms;
	unsigned i;

	if (failures < 2)
		return 0;
	for (i = 2; i < failures && ms < FAULT_PAUSE_MOST_MS; i++)
		ms *= 2;
	if (ms > FAULT_PAUSE_MOST_MS)
		ms = FAULT_PAUSE_MOST_MS;
	return ms * 1000000;
}

enum fault_step fault_next(enum fault_origin origin, enum fault_class class,
			   unsigned failures, uint64_t *pause_ns)
{
	const struct fault_row *row = fault_row(origin, class);
	enum fault_step step;

	assert(row);
	step = row->last;
	if (failures <= row->retries || row->retries == FAULT_FOREVER)
		step = FAULT_RETRY;
	else if (failures - row->retries <= row->places ||
		 row->places == FAULT_FOREVER)
		step = FAULT_RELOCATE;
	if (pause_ns)
		*pause_ns = step == FAULT_RETRY || step == FAULT_RELOCATE ?
			pause_after(row, failures) : 0;
	return step;
}
