/*
 * pace.h - readers with a pace: video, music, backups to a slow line.
 *
 * Such a reader wants so many bytes in each period and rests in between.  It
 * does not matter how soon its data comes, only that it comes before it is
 * wanted.  A stream has a pace when it has rested: when a read comes some time
 * after all earlier ones of its file were answered.  From what it has consumed
 * since the rest before follows its rate, and from that when it comes to any
 * byte ahead of it.
 *
 * With O_DIRECT what was read is consumed.  Otherwise the kernel reads ahead
 * in windows, and asks for the next one when the reader comes to the one
 * before: all before that one is consumed.
 */
#ifndef TRAX_DATA_PACE_H
#define TRAX_DATA_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct file;
struct files;

struct pace {
	struct list link;	/* files->paced, while it has a rate */
	uint64_t beat_ns;	/* time of the first read after a rest */
	uint64_t beat_at;	/* byte that the reader had come to then */
	uint64_t window_at;	/* first byte that was asked for then */
	uint64_t rate;		/* bytes a second; 0: no pace is known */
	uint64_t media_rate;	/* of the disk, set by the reader; 0: not
				 * known */
	unsigned beats;		/* rests since it has one */
	bool direct;		/* reads by O_DIRECT: the kernel reads nothing
				 * ahead for it */
	uint64_t bytes;		/* bytes of the last read */
	uint64_t piece;		/* bytes read ahead the last time */
	bool promised;		/* the rate is a promise (admission.h) */
	uint64_t behind_ns;	/* delay of its deadlines, so that readers with
				 * a promise come first */
	/* These are only shown to users (traxctl streams). */
	uint64_t ino, ahead;	/* the file; all before this byte was read */
	uint64_t reads, late;	/* reads, and those that missed a deadline */
};

/* Threads of which it is known when their last read was over. A power of two;
 * two that share an entry make only a rest longer or shorter. */
#define PACE_THREADS 64u

struct pace_thread {
	uint32_t thread;	/* 0: none */
	uint64_t over_ns;
};

/* A read of a thread (0: not known), of any file, is over now. */
void pace_answered(struct files *files, uint32_t thread, uint64_t now_ns);

/* Since when the thread that reads may have rested: since over_ns, when the
 * last read of its file was over, unless it read another file after that, as
 * programs do that compare or merge files. */
uint64_t pace_rest_begin(const struct files *files, uint32_t thread,
			 uint64_t over_ns);

/* A read of `bytes` at `offset` has come; its thread has waited for none since
 * over_ns (0: some are not over, or there were none). */
void pace_read(struct files *files, struct pace *pace, uint64_t offset,
	       uint64_t bytes, bool direct, uint64_t over_ns, uint64_t now_ns);

/* The last read is of a reader that was promised this rate; 0: it was not, and
 * comes behind those that were. */
void pace_promise(struct files *files, struct pace *pace, uint64_t rate);

/* When byte `offset` is to be in memory; 0: the pace is not known. */
uint64_t pace_due_ns(const struct pace *pace, uint64_t offset);

/* When the last read, which has come now, at `offset`, should be over; 0: its
 * pace is not known. */
uint64_t pace_read_due_ns(const struct pace *pace, uint64_t offset,
			  uint64_t now_ns);

struct pace_ahead {
	uint64_t ahead;		/* all before this byte is in memory, or on
				 * its way */
	bool there;		/* it is in memory */
	uint64_t end;		/* where the last read ended */
	uint64_t most;		/* bytes to read on, at most */
	uint64_t media_rate;	/* bytes a second that pass under the head */
};

/*
 * How many bytes to read on for a reader; 0: there is enough.
 *
 * While a piece is used up the next one is read, so what is wanted next is
 * asked for as long before as the last piece lasts.  All readers may ask in the
 * same moment: a piece grows by what all of them together can be given in the
 * time by which the last one came too early.
 */
uint64_t pace_ahead_bytes(struct files *files, struct pace *pace,
			  const struct pace_ahead *ahead);

/* Until when streams count as being read, as far as is known now; 0: none has
 * been. */
uint64_t pace_streams_until_ns(const struct files *files);

/* How long what was read ahead of a reader lasts, about. */
uint64_t pace_slack_ns(const struct pace *pace, uint64_t now_ns);

/* The stream is forgotten. */
void pace_end(struct files *files, struct pace *pace);

#endif
