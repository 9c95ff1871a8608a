/*
 * sync.c - see sync.h.
 *
 * The kernel's queue of requests that nobody waits for is empty when the
 * connection has been read to its end and fewer of them than its limit are
 * outstanding.  Pages of a file that is just being truncated are held back
 * until that is answered, so all requests that change a file are waited for.
 */
#include <linux/fuse.h>

#include "fuse/ops.h"
#include "fuse/session_internal.h"
#include "fuse/sync.h"

/* A sync goes on in any case after this many WRITEs of pages, as a program may
 * write all the time; the caller sees by their number that others came. */
#define ENOUGH_WRITES 4096u

static bool changes_file(uint32_t opcode)
{
	return opcode == FUSE_WRITE || opcode == FUSE_SETATTR ||
	       opcode == FUSE_FALLOCATE || opcode == FUSE_COPY_FILE_RANGE;
}

void sync_note_begin(struct request *req)
{
	if (changes_file(req->opcode))
		req->session->changing++;
}

void sync_note_end(struct request *req)
{
	if (changes_file(req->opcode))
		req->session->changing--;
}

static void sync_start(struct request *req)
{
	list_del(&req->link);
	req->page_writes = req->session->page_writes;
	ops_syncfs_control(req);
}

static bool queue_is_empty(const struct session *session)
{
	return !session->changing &&
	       session->outstanding < session->max_background;
}

void sync_wait(struct request *req)
{
	req->page_writes = req->session->page_writes;
	list_add(&req->session->syncs, &req->link);
}

bool sync_run(struct session *session, bool drained)
{
	const bool empty = drained && queue_is_empty(session);
	struct list *pos, *next;
	struct request *req;
	bool started = false;

	list_for_each_safe(pos, next, &session->syncs) {
		req = list_entry(pos, struct request, link);
		if (empty || session->page_writes - req->page_writes >=
		    ENOUGH_WRITES) {
			sync_start(req);
			started = true;
		}
	}
	return started;
}

bool sync_is_due(const struct session *session)
{
	return !list_empty(&session->syncs) && queue_is_empty(session);
}

void sync_stop(struct session *session)
{
	while (!list_empty(&session->syncs))
		sync_start(list_first(&session->syncs, struct request, link));
}
