/*
 * progress.h - how far something long is, with what is left of it: on one line
 * of a terminal, or as a line every few seconds where there is none.  On
 * stderr.
 */
#ifndef TRAX_TOOLS_PROGRESS_H
#define TRAX_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct env;

struct progress {
	struct env *env;
	const char *what;
	uint64_t begun_ns, said_ns;
	bool terminal;
	bool shown;		/* a line is on the terminal */
};

/* From now on nothing is said of how far something is. */
void progress_mute(void);
/* `what` is not copied. */
void progress_begin(struct progress *progress, const char *what);
/* The same by another clock, and whatever stderr is. */
void progress_begin_as(struct progress *progress, const char *what,
		       struct env *env, bool terminal);
/* A further stage of the same task: what is left is told of that alone. */
void progress_stage(struct progress *progress, const char *what);
/* `part` of it is over, 0 to 1; below 0: that is not known.  `more` is written
 * behind it; "" for nothing. */
void progress_say(struct progress *progress, double part, const char *more);
/* Takes the line off the terminal: something else is to be printed. */
void progress_clear(struct progress *progress);

#endif
