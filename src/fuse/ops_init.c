/*
 * ops_init.c - the first and the last request.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/msg.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/uring.h"

/*
 * Requests that nobody waits for (read-ahead, write-back, asynchronous direct
 * I/O), as a share of the large buffers, or of the slots of a queue of
 * io_uring: the rest is there for those that somebody waits for, however many
 * WRITEs wait for memory.
 */
#define BACKGROUND_PERCENT 75u
/*
 * The connection never counts as congested.  When it does, the kernel drops
 * what it was about to read ahead (fuse_readahead), and where it takes pages
 * that somebody waits for to be of that kind, it reads them one by one: 200
 * readers of video then got 53 MB/s of a disk with 200.
 */
#define CONGESTION_NEVER UINT16_MAX
/* More than any kernel's own limit on read-ahead, which therefore decides. */
#define MAX_READAHEAD_BYTES (64u << 20)
/* Minor version of the protocol that is answered: later ones change nothing
 * that this file system sends. */
#define MINOR 39u
#define MIN_MINOR 31u		/* older kernels lack what NEEDED asks for */

/* Features that this file system can use; it asks for those that the kernel
 * has offered. */
#define WANTED (FUSE_ASYNC_READ | FUSE_EXPORT_SUPPORT | FUSE_BIG_WRITES |   \
		FUSE_DONT_MASK | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | \
		FUSE_ASYNC_DIO | FUSE_WRITEBACK_CACHE |                     \
		FUSE_PARALLEL_DIROPS |                                      \
		FUSE_POSIX_ACL | FUSE_ABORT_ERROR | FUSE_MAX_PAGES |        \
		FUSE_CACHE_SYMLINKS | FUSE_HANDLE_KILLPRIV_V2 |             \
		FUSE_SETXATTR_EXT)

/* Without these the file system would be wrong, not slow. */
#define NEEDED (FUSE_WRITEBACK_CACHE | FUSE_POSIX_ACL | FUSE_DONT_MASK |    \
		FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT)

/* Bit 41 of the flags, from protocol 7.42 on; here in the upper half. */
#define OVER_IO_URING (1u << (41 - 32))

static bool offers_uring(const struct request *req)
{
	const struct fuse_init_in *in = req->fixed;
	uint32_t flags2;

	if (!(in->flags & FUSE_INIT_EXT) || req->data_bytes < sizeof(flags2))
		return false;
	memcpy(&flags2, req->data, sizeof(flags2));
	return flags2 & OVER_IO_URING;
}

void ops_init(struct request *req)
{
	const struct fuse_init_in *in = req->fixed;
	struct session *session = req->session;
	unsigned buffers = session->large_most;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = in->minor < MINOR ? in->minor : MINOR,
		.max_readahead = MAX_READAHEAD_BYTES,
		.flags = in->flags & WANTED,
		.max_write = REQUEST_MAX_WRITE,
		.time_gran = 1,
		/* A direct read is bounded by nothing else: on pages of 64 KiB
		 * a fixed number would let it be longer than what is taken. */
		.max_pages = (uint16_t)(REQUEST_MAX_WRITE /
					sysconf(_SC_PAGESIZE)),
	};

	if (session->started || in->major != FUSE_KERNEL_VERSION ||
	    in->minor < MIN_MINOR || (in->flags & NEEDED) != NEEDED) {
		msg_error("FUSE: protocol %u.%u, flags %#x: this kernel is too "
			  "old", in->major, in->minor, in->flags);
		request_reply(req, -EPROTO, NULL, 0);
		return;
	}
	if (offers_uring(req) && session_make_uring(session)) {
		out.flags |= FUSE_INIT_EXT;
		out.flags2 = OVER_IO_URING;
		buffers = uring_queue_slots(session->uring);
	}
	out.max_background = (uint16_t)(buffers * BACKGROUND_PERCENT / 100);
	session->max_background = out.max_background;
	out.congestion_threshold = CONGESTION_NEVER;
	session->started = true;
	request_reply(req, 0, &out, sizeof(out));
	session_register_uring(session);
}

/*
 * The last request of a fuseblk mount.  umount(2) waits for the answer, which
 * session_free gives when everything is on the medium.
 */
void ops_destroy(struct request *req)
{
	req->session->destroyed = true;
	req->session->destroy_unique = req->unique;
	req->session->destroy_slot = req->slot;
	req->session->ended = true;
	req->session->attached = false;
	request_drop(req);
}
