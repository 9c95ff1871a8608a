/*
 * large_buffers.c - buffers for the largest request or reply, kept for the next
 * one.
 */
#include <sys/mman.h>

#include "fuse/session_internal.h"

void *session_take_large(struct session *session)
{
	void *buffer;

	if (session->large_free)
		return session->large[--session->large_free];
	if (session->large_made == session->large_most)
		return NULL;
	buffer = mmap(NULL, SESSION_LARGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return NULL;
	session->large_made++;
	return buffer;
}

void session_give_large(struct session *session, void *buffer)
{
	if (session->large_free < SESSION_KEEP_LARGE) {
		session->large[session->large_free++] = buffer;
		return;
	}
	munmap(buffer, SESSION_LARGE_BYTES);
	session->large_made--;
}
