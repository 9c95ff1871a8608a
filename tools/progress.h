/*
 * progress.h - shows on stderr how far a long task is, and the time that is
 * left: on one line of a terminal, or elsewhere as a line every few seconds.
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

/* From now on no progress is shown. */
void progress_mute(void);
/* `what` is not copied. */
void progress_begin(struct progress *progress, const char *what);
/* The same with the clock of `env`; `terminal`: stderr counts as one. */
void progress_begin_as(struct progress *progress, const char *what,
		       struct env *env, bool terminal);
/* Begins another stage of the same task: the time that is left is that of the
 * stage. */
void progress_stage(struct progress *progress, const char *what);
/* `part` of it is over, 0 to 1; below 0: that is not known.  `more` is written
 * behind it; "" for nothing. */
void progress_say(struct progress *progress, double part, const char *more);
/* Takes the line off the terminal, before something else is printed. */
void progress_clear(struct progress *progress);

#endif
