/*
 * pace.h - readers with a pace: video, music, backups to a slow line.
 *
 * Such a reader consumes a number of bytes in each period and rests in between.
 * Its data need not come soon, only before it is wanted.  A stream has a pace
 * when it has rested: when a read comes some time after all earlier ones of its
 * file were answered.  Its rate follows from the bytes consumed since the rest
 * before, and from the rate when it comes to any byte ahead of it.
 *
 * With O_DIRECT everything that was read is consumed.  Otherwise the kernel
 * reads ahead in windows, and asks for the next window when the reader comes to
 * the one before: everything before that one is consumed, and of the first
 * window about half.
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
	uint64_t media_rate;	/* bytes a second of the disk where the file
				 * lies, set by the caller; 0: not known */
	unsigned beats;		/* number of rests since it has a pace */
	bool direct;		/* reads by O_DIRECT: the kernel reads nothing
				 * ahead for it */
	uint64_t bytes;		/* bytes of the last read */
	uint64_t window;		/* bytes read ahead the last time */
	bool promised;		/* the rate is a promise (admission.h) */
	uint64_t behind_ns;	/* delay of its deadlines, so that readers with
				 * a promise come first */
	/* These are only shown to users (traxctl streams). */
	uint64_t ino, ahead;	/* inode number; end of the last read */
	uint64_t reads, late;	/* number of reads, and of those that missed a
				 * deadline */
};

/* Entries for the last reads of threads, found by thread number modulo this
 * power of two.  Two threads that share an entry only make a rest seem longer
 * or shorter. */
#define PACE_THREADS 64u

struct pace_thread {
	uint32_t thread;	/* 0: none */
	uint64_t over_ns;
};

/* A read of a thread (0: not known) was answered now, whatever its file. */
void pace_answered(struct files *files, uint32_t thread, uint64_t now_ns);

/* Time since which the reading thread may have rested: over_ns, when the last
 * read of its file was answered, or the end of a later read of another file by
 * this thread, as of programs that compare or merge files. */
uint64_t pace_rest_begin(const struct files *files, uint32_t thread,
			 uint64_t over_ns);

/* A read of `bytes` at `offset` has come; its thread had no read under way
 * since over_ns (0: it still has, or there was none). */
void pace_read(struct files *files, struct pace *pace, uint64_t offset,
	       uint64_t bytes, bool direct, uint64_t over_ns, uint64_t now_ns);

/* The reader of the last read was promised this rate; 0: it was not, and its
 * deadlines come behind those of readers that were. */
void pace_promise(struct files *files, struct pace *pace, uint64_t rate);

/* When byte `offset` is to be in memory; 0: the pace is not known. */
uint64_t pace_due_ns(const struct pace *pace, uint64_t offset);

/* When the last read, which has just come, at `offset`, should be over; 0: its
 * pace is not known. */
uint64_t pace_read_due_ns(const struct pace *pace, uint64_t offset,
			  uint64_t now_ns);

struct pace_ahead {
	uint64_t ahead;		/* everything before this byte is in memory or
				 * being read */
	bool there;		/* it is in memory */
	uint64_t end;		/* byte at which the last read ended */
	uint64_t most;		/* most bytes to read ahead now */
	uint64_t media_rate;	/* bytes a second that pass under the head */
};

/*
 * Bytes to read ahead for a reader now; 0: enough is read already.
 *
 * While one window is consumed the next one is read, so it is asked for as
 * long before it is wanted as the last one lasts.  All readers may ask in the
 * same moment: a window grows by what all of them together can be given in the
 * time by which the last one came too early.
 */
uint64_t pace_ahead_bytes(struct files *files, struct pace *pace,
			  const struct pace_ahead *ahead);

/* Time until which streams count as being read, as known now; 0: there are
 * none. */
uint64_t pace_streams_until_ns(const struct files *files);

/* About how long the data that was read ahead of a reader lasts. */
uint64_t pace_slack_ns(const struct pace *pace, uint64_t now_ns);

/* The stream is forgotten. */
void pace_end(struct files *files, struct pace *pace);

#endif
