/*
 * ops_init.c - the first and the last request.
 */
#include <errno.h>

#include "base/msg.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"

#define CONGESTION 192u
#define MAX_READAHEAD_BYTES (64u << 20)	/* the kernel's own limit rules */
/* The protocol we answer to: nothing newer changes what is sent. */
#define MINOR 39u
#define MIN_MINOR 31u

/* Of what we want, the kernel gets what it has offered. */
#define WANTED (FUSE_ASYNC_READ | FUSE_EXPORT_SUPPORT | FUSE_BIG_WRITES |   \
		FUSE_DONT_MASK | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | \
		FUSE_ASYNC_DIO | FUSE_WRITEBACK_CACHE |                     \
		FUSE_PARALLEL_DIROPS |                                      \
		FUSE_POSIX_ACL | FUSE_ABORT_ERROR | FUSE_MAX_PAGES |        \
		FUSE_CACHE_SYMLINKS | FUSE_NO_OPENDIR_SUPPORT |             \
		FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT)

/* Without these the file system would be wrong, not slow. */
#define NEEDED (FUSE_WRITEBACK_CACHE | FUSE_POSIX_ACL | FUSE_DONT_MASK |    \
		FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT)

void ops_init(struct request *req)
{
	const struct fuse_init_in *in = req->fixed;
	struct session *session = req->session;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = in->minor < MINOR ? in->minor : MINOR,
		.max_readahead = MAX_READAHEAD_BYTES,
		.flags = in->flags & WANTED,
		.max_background = OPS_MAX_BACKGROUND,
		.congestion_threshold = CONGESTION,
		.max_write = REQUEST_MAX_WRITE,
		.time_gran = 1,
		.max_pages = REQUEST_MAX_WRITE / 4096,
	};

	if (session->started || in->major != FUSE_KERNEL_VERSION ||
	    in->minor < MIN_MINOR || (in->flags & NEEDED) != NEEDED) {
		msg_error("FUSE: protocol %u.%u, flags %#x: this kernel is too "
			  "old", in->major, in->minor, in->flags);
		request_reply(req, -EPROTO, NULL, 0);
		return;
	}
	session->started = true;
	request_reply(req, 0, &out, sizeof(out));
}

/*
 * The last request of a fuseblk mount.  umount(2) waits for the answer, which
 * session_free gives when everything is on the medium.
 */
void ops_destroy(struct request *req)
{
	req->session->destroyed = true;
	req->session->destroy_unique = req->unique;
	req->session->ended = true;
	req->session->attached = false;
	request_drop(req);
}
