/*
 * disk.h - an asynchronous disk that declares what it guarantees.
 *
 * Units: sector = 512 bytes, whatever the drive's own block is; transfers are
 * multiples of logical_bytes, aligned to it, from buffers aligned to it.  Back
 * ends: io_uring with O_DIRECT on a block device or an image file (disk_open;
 * plain system calls where the kernel refuses io_uring, the page cache where a
 * file system refuses O_DIRECT), the simulated drive (sim/sim.h), and wrappers
 * in tests.
 *
 * A request belongs to the caller, who keeps it and its buffers untouched from
 * disk_submit until done() is called: exactly once, from disk_poll, never from
 * within disk_submit.  Requests may complete in any order; a flush covers the
 * writes that had completed when it was submitted.  Two requests outstanding on
 * the same sectors, one of them a write, are the caller's bug.
 */
#ifndef TRAX_DISK_DISK_H
#define TRAX_DISK_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define SECTOR_BYTES 512u

/* Alignment of buffers that suits every disk, in bytes. */
#define DISK_BUFFER_ALIGN 4096u

/* DISK_DISCARD is used by disk_discard only: nobody needs the content of the
 * sectors. */
enum disk_op { DISK_READ, DISK_WRITE, DISK_FLUSH, DISK_DISCARD };

struct disk_request {
	enum disk_op op;
	bool fua;		/* the write is on the medium when it is done */
	uint64_t sector;
	uint32_t sectors;	/* 0 for a flush */
	struct iovec *iov;	/* sum of lengths = sectors * SECTOR_BYTES */
	unsigned iov_n;		/* at most DISK_MAX_IOV */
	void (*done)(struct disk_request *req);
	void *owner;		/* belongs to the caller */

	/* Set before done() is called. */
	int result;		/* 0, or -EIO, -EREMOTEIO, -ENOSPC ... */
	uint64_t submit_ns, complete_ns;

	struct disk_request *next;	/* belongs to the back end */
};

/* Most entries of an iov: the limit of the kernel (UIO_MAXIOV). */
#define DISK_MAX_IOV 1024u

struct disk_limits {
	uint64_t sectors;
	uint32_t logical_bytes;	 /* smallest unit of transfer */
	uint32_t physical_bytes; /* written whole without read-modify-write */
	uint32_t atomic_bytes;	 /* a power cut tears no aligned unit of this */
	uint32_t max_sectors;	 /* largest request that stays one command */
	bool volatile_cache;	 /* a completed write is durable only after a
				  * flush */
	/* the device says that it rotates; nothing relies on it */
	bool rotational;
	/* its tracks overlap, and the drive hides that */
	bool shingled;
	bool read_only;
};

struct disk;

struct disk_ops {
	void (*submit)(struct disk *disk, struct disk_request *req);
	int (*poll)(struct disk *disk, int64_t timeout_ns);
	int (*event_fd)(struct disk *disk);
	int (*set_read_only)(struct disk *disk, bool read_only); /* or NULL */
	int (*renew_size)(struct disk *disk); /* or NULL */
	bool discards;		/* submit takes DISK_DISCARD */
	void (*close)(struct disk *disk);
};

/* The head of every back end's own structure. */
struct disk {
	const struct disk_ops *ops;
	struct disk_limits limits;
	const char *name;	/* for messages */
};

/* Takes any number of requests: those that the back end has no room for wait in
 * it. */
static inline void disk_submit(struct disk *disk, struct disk_request *req)
{
	disk->ops->submit(disk, req);
}

/*
 * Calls done() of the requests that have completed.  Waits up to timeout_ns for
 * the first (0: not at all, -1: for ever, but not when nothing is outstanding;
 * a signal ends the wait).  A timeout > 0 is waited out also when nothing is
 * outstanding, so that code with timers can wait here.  Returns the number
 * completed, or a negative errno if the disk is gone and nothing will complete
 * any more.
 */
static inline int disk_poll_ns(struct disk *disk, int64_t timeout_ns)
{
	return disk->ops->poll(disk, timeout_ns);
}

/* The same in milliseconds. */
static inline int disk_poll(struct disk *disk, int timeout_ms)
{
	return disk_poll_ns(disk, timeout_ms < 0 ? -1 :
				  (int64_t)timeout_ms * 1000000);
}

/* A descriptor that becomes readable each time there is work for disk_poll. It
 * is never emptied: to be watched edge-triggered (EPOLLET).  -1: none. */
static inline int disk_event_fd(struct disk *disk)
{
	return disk->ops->event_fd(disk);
}

/* Closes the disk; all requests must have completed. */
static inline void disk_close(struct disk *disk)
{
	disk->ops->close(disk);
}

struct disk_open_options {
	bool read_only;
	bool writable_later;	/* with read_only: disk_set_read_only may be
				   called, where writing is allowed at all */
	bool exclusive;		/* implies `locked`, and O_EXCL on a device */
	bool locked;		/* takes a lock on an image, or on the file of a
				 * loop device (filelock.h) */
	unsigned depth;		/* requests that the kernel has at once; 0:
				 * 32 */
};

/*
 * Opens a block device or an image file.  -EBUSY: in use (exclusive);
 * -ENOTBLK: neither a block device nor a regular file; -EOPNOTSUPP: a
 * host-managed zoned device; -EINVAL: shorter than a sector; else what open(2)
 * says.  Reported through msg.  Not to be taken across a fork.
 *
 * A request beyond the end, unaligned, or a write to what is read only
 * completes with -EINVAL or -EROFS.
 */
int disk_open(const char *path, const struct disk_open_options *options,
	      struct disk **disk);

/*
 * Gives up the content of any number of sectors, without buffers.  Completes as
 * other requests do, with -EOPNOTSUPP where the device or file cannot discard;
 * reads of these sectors afterwards return anything.
 */
void disk_discard(struct disk *disk, struct disk_request *req);

/*
 * Allows writes, or refuses them from now on, and changes the lock accordingly;
 * nothing may be outstanding. -EROFS: it cannot be written; -EBUSY: others have
 * the lock; -EOPNOTSUPP: not with this back end.
 */
int disk_set_read_only(struct disk *disk, bool read_only);

/*
 * Sets limits.sectors to the present size; nothing may be outstanding.
 * -EOPNOTSUPP: not with this back end; -errno.
 */
int disk_renew_size(struct disk *disk);

/*
 * Synchronous helpers for tools and tests, of any size: waited for, while
 * others complete.  buf is aligned to 4096.
 */
int disk_read(struct disk *disk, uint64_t sector, uint32_t sectors, void *buf);
int disk_write(struct disk *disk, uint64_t sector, uint32_t sectors,
	       const void *buf);
int disk_flush(struct disk *disk);

#endif
