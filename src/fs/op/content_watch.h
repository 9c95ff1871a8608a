/*
 * content_watch.h - a call whenever the data of a file is about to change.
 *
 * changed() is called before the first write to a file whose data is all
 * mapped, and before a truncation, a punched hole or the deletion of a file
 * begins.  It is called from inside the operation, so it must not submit any
 * operation.
 */
#ifndef TRAX_OP_CONTENT_WATCH_H
#define TRAX_OP_CONTENT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct content_watch {
	/* `gone`: the file is being deleted. */
	void (*changed)(struct content_watch *watch, uint64_t ino, bool gone);
};

#endif
