/*
 * written.c - see written.h.
 */
#include "fuse/written.h"

#include "base/env.h"
#include "base/units.h"
#include "fuse/session_internal.h"

/* How long stat(2) may show too few blocks of an open file after its pages were
 * written. */
#define DELAY_NS NS_PER_SECOND
/* Files whose attributes one turn invalidates, which takes about 20 us. */
#define TELL_MOST 64u

void written_note(struct session *session, uint64_t ino)
{
	if (!session->writers_lost && !hashmap_get(session->writers, ino))
		return;
	if (!hashmap_count(session->written))
		session->written_due_ns = env_now_ns(session->options.env) +
					  DELAY_NS;
	/* Without memory for it the attributes are invalid at once. */
	if (hashmap_put(session->written, ino, session))
		notify_attr(session->notify, ino);
}

void written_forget(struct session *session, uint64_t ino)
{
	hashmap_del(session->written, ino);
}

uint64_t written_run(struct session *session)
{
	uint64_t ino;
	size_t pos = 0;
	unsigned n;

	if (!hashmap_count(session->written))
		return UINT64_MAX;
	if (env_now_ns(session->options.env) < session->written_due_ns)
		return session->written_due_ns;
	for (n = 0; n < TELL_MOST &&
		    hashmap_next(session->written, &pos, &ino); n++) {
		notify_attr(session->notify, ino);
		hashmap_del(session->written, ino);
	}
	return hashmap_count(session->written) ? 0 : UINT64_MAX;
}
