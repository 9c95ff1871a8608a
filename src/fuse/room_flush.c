/*
 * room_flush.c - the kernel writes out what it has when little room is left.
 *
 * A round goes through all files that are open for writing and has the pages
 * behind their known ends written out, one file after the other; what these
 * files were let grow by before it is not expected any more then.  One begins
 * when little room is left, and others while somebody waits for room.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "fuse/room_internal.h"
#include "fuse/session_internal.h"

/* A request waits this long for room, at most. */
#define WAIT_NS (5 * NS_PER_SECOND)
/* From the end of a round to the next one. */
#define PAUSE_NS (100 * NS_PER_MS)
/* WRITEs that may wait for room at a time: they keep a quarter of the large
 * buffers at most, and are no more than half of what the kernel sends in the
 * background.  The rest is for pages that come in. */
#define BUFFERS_PART 4u
#define BACKGROUND_PART 2u

static uint64_t now_of(const struct room_state *room)
{
	return env_now_ns(room->session->options.env);
}

/* ---- Rounds ---- */

static void round_begin(struct room_state *room)
{
	struct hashmap *writers = room->session->writers;
	size_t n = hashmap_count(writers), found = 0, pos = 0;
	uint64_t *inos = malloc((n ? n : 1) * sizeof(*inos));

	/* Without memory for it fsync(2) reports what finds no room. */
	if (!inos) {
		room->first_round = false;
		return;
	}
	while (found < n && hashmap_next(writers, &pos, &inos[found]))
		found++;
	free(room->inos);
	room->inos = inos;
	room->inos_n = found;
	room->in_round = true;
	room->round_ns = now_of(room);
}

static void done_attr(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;

	if (!op->rc && notify_write(session->notify, req, op->ino,
				    op->attr.size, 0)) {
		session->noticed++;
		return;
	}
	session->room->flushing = false;
	request_drop(req);
}

void room_flushed(struct request *req)
{
	struct room_state *room = req->session->room;

	room_settled(room, req->op.ino, room->round_ns);
	room->flushing = false;
	request_drop(req);
}

static void flush_next(struct room_state *room)
{
	struct request *req = request_new(room->session);

	if (!req) {
		room->inos_n = 0;
		return;
	}
	req->op.ino = room->inos[--room->inos_n];
	room->flushing = true;
	request_submit(req, FS_GETATTR, done_attr);
}

/* ---- Waiting ---- */

/* May a request that waits keep pages from coming in?  A WRITE has a buffer, or
 * is one of those in the background. */
static bool holds(const struct request *req)
{
	return req->slot || req->opcode == FUSE_WRITE;
}

/* In the order in which they began to wait: the first is the first that has
 * waited too long. */
static void add_waiting(struct room_state *room, struct request *req)
{
	struct list *before = room->waiting.prev;

	while (before != &room->waiting &&
	       list_entry(before, struct request, link)->waits_ns >
		       req->waits_ns)
		before = before->prev;
	list_add_front(before, &req->link);
	room->waiting_n++;
	room->holding_n += holds(req);
	room->buffers_n += req->held != NULL;
}

static void count_out(struct room_state *room, const struct request *req)
{
	room->waiting_n--;
	room->holding_n -= holds(req);
	room->buffers_n -= req->held != NULL;
}

static struct request *take_first(struct list *list)
{
	struct request *req = list_first(list, struct request, link);

	if (req)
		list_del(&req->link);
	return req;
}

/* Those that waited when the round ended try again, each once. */
static void round_end(struct room_state *room)
{
	struct list tried;
	struct request *req;

	room->in_round = room->first_round = false;
	room->unasked = room->unasked &&
			room->round_ns < room->low_ns + ROOM_SETTLE_NS;
	room->next_ns = now_of(room) + PAUSE_NS;
	room_expect(room);
	list_init(&tried);
	while ((req = take_first(&room->waiting)))
		list_add(&tried, &req->link);
	while ((req = take_first(&tried)))
		req->again(req);
}

/* Would it keep pages from coming in if this request waited as well? */
static bool is_in_the_way(const struct room_state *room,
			  const struct request *req)
{
	const struct session *session = room->session;

	return (holds(req) && room->holding_n >=
			      session->max_background / BACKGROUND_PART) ||
	       (req->held && room->buffers_n >=
			     session->large_most / BUFFERS_PART);
}

bool room_wait(struct request *req, void (*again)(struct request *req))
{
	struct room_state *room = req->session->room;
	const uint64_t now_ns = now_of(room);

	if (req->waits_ns)
		count_out(room, req);
	if (req->op.rc != -ENOSPC || !room_expected(room) || room->stopped ||
	    is_in_the_way(room, req))
		return false;
	if (!req->waits_ns)
		req->waits_ns = now_ns;
	/* What is expected after such a round was accepted meanwhile. */
	else if (room->round_ns >= req->waits_ns + ROOM_SETTLE_NS ||
		 now_ns >= req->waits_ns + WAIT_NS)
		return false;
	req->again = again;
	add_waiting(room, req);
	room_is_low(room);
	return true;
}

/* Whoever waits too long hears that the disk is full. */
static void end_waits(struct room_state *room, uint64_t until_ns)
{
	while (!list_empty(&room->waiting) &&
	       list_first(&room->waiting, struct request, link)->waits_ns <=
		       until_ns) {
		struct request *req = take_first(&room->waiting);

		/* room_wait does not let it wait again. */
		req->op.done(&req->op);
	}
}

void room_stop(struct session *session)
{
	session->room->stopped = true;
	end_waits(session->room, UINT64_MAX);
}

void room_run(struct session *session)
{
	struct room_state *room = session->room;
	const uint64_t now_ns = now_of(room);

	/* A remount has begun with another file system. */
	room_expect(room);
	if (hashmap_count(session->writers))
		room_is_low(room);
	if (now_ns > WAIT_NS)
		end_waits(room, now_ns - WAIT_NS);
	if (!room->in_round &&
	    (room->first_round ||
	     (!list_empty(&room->waiting) && now_ns >= room->next_ns)))
		round_begin(room);
	if (!room->in_round || room->flushing)
		return;
	if (room->inos_n)
		flush_next(room);
	else
		round_end(room);
}

uint64_t room_next_ns(const struct session *session)
{
	const struct room_state *room = session->room;
	uint64_t end_ns;

	if (room->in_round ? !room->flushing : room->first_round)
		return 0;
	if (list_empty(&room->waiting))
		return UINT64_MAX;
	end_ns = list_first(&room->waiting, struct request, link)->waits_ns +
		 WAIT_NS;
	return !room->in_round && room->next_ns < end_ns ? room->next_ns :
							   end_ns;
}
