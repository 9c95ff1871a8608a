/*
 * trax_stream.h - asks a mounted traxfs to keep a rate for readers of a file:
 *
 *	struct trax_stream stream = { .rate = 500000 };
 *
 *	if (ioctl(fd, TRAX_IOC_STREAM, &stream) && errno == EBUSY)
 *		... the disk can't do that beside what it has promised
 *
 * Then a program that reads the file in order, by reads of any size, at up to
 * `rate` bytes a second, gets its data in time.  The promise ends when it is
 * given back (rate 0), when nothing was read of the file for a minute, when it
 * is deleted, and with the unmount.  A second call replaces the first.  Anybody
 * who may read a file may ask.  The files of one user, but for root and the
 * user who mounted it, have half of what the disk can do at most.
 *
 * Errors: EBUSY, see above; EDQUOT: it would be more than the user's half;
 * EPERM: another user has a promise for this file; EOPNOTSUPP: what the disk
 * can do is not known; ENOTTY: this is no file of a traxfs; ENOMEM.
 */
#ifndef TRAX_FUSE_TRAX_STREAM_H
#define TRAX_FUSE_TRAX_STREAM_H

#include <stdint.h>
#include <sys/ioctl.h>

struct trax_stream {
	uint64_t rate;		/* in: bytes a second; 0: no promise any more */
	uint64_t promised;	/* out: bytes a second, of all files together */
	uint64_t streams;	/* out: number of these files */
};

#define TRAX_IOC_STREAM _IOWR('t', 0x5d, struct trax_stream)

#endif
