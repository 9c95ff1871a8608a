/*
 * content_watch.h - one who wants to hear when the data of a file changes.
 *
 * changed() is called before the first byte of a file whose data is all mapped
 * becomes another one, and before a truncation, a punched hole or the deletion
 * of a file begins; from inside the operation, so it must not submit any.
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
