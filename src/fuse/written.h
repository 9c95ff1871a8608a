/*
 * written.h - what the kernel knows of files that are open and written.
 *
 * The kernel itself keeps the size and the times of a file whose pages it
 * caches, but not how much room the file takes: it asks for that after a close.
 * Until then its answer to stat(2) would stay that of the time before pages
 * were written out.  So a second after that its attributes are invalidated;
 * most files are closed by then.
 */
#ifndef TRAX_FUSE_WRITTEN_H
#define TRAX_FUSE_WRITTEN_H

#include <stdint.h>

struct session;

/* Pages of the file were written. */
void written_note(struct session *session, uint64_t ino);

/* Nobody writes the file any more. */
void written_forget(struct session *session, uint64_t ino);

/* To be called in each turn; returns when to call it again (UINT64_MAX: after
 * the next written_note). */
uint64_t written_run(struct session *session);

#endif
