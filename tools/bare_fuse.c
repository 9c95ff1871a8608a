/*
 * bare_fuse.c - see bare_fuse.h.
 *
 * One thread answers one request after another.  Nodes of unlinked files stay
 * in memory until the process ends, because the kernel may still name them.
 */
#include "tools/bare_fuse.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/csum.h"
#include "base/hashmap.h"
#include "base/msg.h"

#define DATA_BYTES (1u << 20)	/* the largest READ and WRITE, as traxfs has */
#define NAME_BYTES 256u		/* a name of NAME_MAX bytes and its end */
#define VALID_SECONDS 1e9	/* nobody else changes names or attributes */
#define MOUNT_TRIES 1000u	/* looks for the mount, a millisecond apart */

struct bare_node {
	struct stat st;
	fuse_ino_t parent;
	char name[NAME_BYTES];
	bool linked;
};

struct bare {
	struct bare_node **nodes;	/* by inode number; [0] is not used */
	fuse_ino_t count;
	struct hashmap *names;	/* name_key() to node */
	char data[DATA_BYTES];
};

static struct bare *bare_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static struct bare_node *node_of(fuse_req_t req, fuse_ino_t ino)
{
	return bare_of(req)->nodes[ino];
}

/* Two names with equal keys would be taken for one; with 64 bits that is not
 * expected. */
static uint64_t name_key(fuse_ino_t parent, const char *name)
{
	return csum_seeded(name, strlen(name), parent);
}

static int node_name(struct bare *bare, struct bare_node *node,
		     fuse_ino_t parent, const char *name)
{
	node->parent = parent;
	node->linked = true;
	snprintf(node->name, sizeof(node->name), "%s", name);
	return hashmap_put(bare->names, name_key(parent, name), node);
}

/* NULL: out of memory. */
static struct bare_node *node_new(struct bare *bare, fuse_ino_t parent,
			     const char *name, mode_t mode)
{
	fuse_ino_t ino = bare->count;
	struct bare_node *node = calloc(1, sizeof(*node));
	struct bare_node **nodes;

	/* The array doubles whenever the number is a power of two. */
	if (node && (ino & (ino - 1)) == 0) {
		nodes = realloc(bare->nodes, 2 * ino * sizeof(*nodes));
		if (nodes)
			bare->nodes = nodes;
		else
			goto none;
	}
	if (!node || node_name(bare, node, parent, name))
		goto none;
	node->st.st_ino = ino;
	node->st.st_mode = mode;
	node->st.st_nlink = S_ISDIR(mode) ? 2 : 1;
	node->st.st_blksize = 4096;
	clock_gettime(CLOCK_REALTIME, &node->st.st_mtim);
	node->st.st_ctim = node->st.st_atim = node->st.st_mtim;
	bare->nodes[bare->count++] = node;
	return node;
none:
	free(node);
	return NULL;
}

static struct fuse_entry_param entry_of(const struct bare_node *node)
{
	return (struct fuse_entry_param){
		.ino = node->st.st_ino,
		.generation = 1,
		.attr = node->st,
		.attr_timeout = VALID_SECONDS,
		.entry_timeout = VALID_SECONDS,
	};
}

/* ---- Operations ---- */

static void bare_init(void *arg, struct fuse_conn_info *conn)
{
	static const unsigned wanted =
		FUSE_CAP_ASYNC_READ | FUSE_CAP_EXPORT_SUPPORT |
		FUSE_CAP_DONT_MASK | FUSE_CAP_READDIRPLUS |
		FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO |
		FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_PARALLEL_DIROPS |
		FUSE_CAP_POSIX_ACL | FUSE_CAP_CACHE_SYMLINKS |
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
		FUSE_CAP_HANDLE_KILLPRIV_V2 |
#endif
		FUSE_CAP_NO_OPENDIR_SUPPORT;

	(void)arg;
	conn->want = conn->capable & wanted;
	conn->max_write = DATA_BYTES;
	conn->max_readahead = UINT_MAX;
}

static void bare_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct bare_node *node = hashmap_get(bare_of(req)->names,
					      name_key(parent, name));
	struct fuse_entry_param entry = { .entry_timeout = VALID_SECONDS };

	if (node)
		entry = entry_of(node);
	fuse_reply_entry(req, &entry);
}

static void bare_getattr(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *file)
{
	(void)file;
	fuse_reply_attr(req, &node_of(req, ino)->st, VALID_SECONDS);
}

static void bare_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
			 int set, struct fuse_file_info *file)
{
	struct stat *to = &node_of(req, ino)->st;

	(void)file;
	if (set & FUSE_SET_ATTR_MODE)
		to->st_mode = (to->st_mode & S_IFMT) | (st->st_mode & ~S_IFMT);
	if (set & FUSE_SET_ATTR_UID)
		to->st_uid = st->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		to->st_gid = st->st_gid;
	if (set & FUSE_SET_ATTR_SIZE)
		to->st_size = st->st_size;
	if (set & FUSE_SET_ATTR_MTIME)
		to->st_mtim = st->st_mtim;
	fuse_reply_attr(req, to, VALID_SECONDS);
}

static void bare_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		       mode_t mode)
{
	struct bare_node *node = node_new(bare_of(req), parent, name,
				     S_IFDIR | mode);
	struct fuse_entry_param entry;

	if (!node) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	entry = entry_of(node);
	fuse_reply_entry(req, &entry);
}

static void bare_create(fuse_req_t req, fuse_ino_t parent, const char *name,
			mode_t mode, struct fuse_file_info *file)
{
	struct bare_node *node = node_new(bare_of(req), parent, name,
				     S_IFREG | mode);
	struct fuse_entry_param entry;

	if (!node) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	file->keep_cache = 1;
	entry = entry_of(node);
	fuse_reply_create(req, &entry, file);
}

static void bare_open(fuse_req_t req, fuse_ino_t ino,
		      struct fuse_file_info *file)
{
	(void)ino;
	file->keep_cache = 1;
	fuse_reply_open(req, file);
}

static void bare_done(fuse_req_t req, fuse_ino_t ino,
		      struct fuse_file_info *file)
{
	(void)ino;
	(void)file;
	fuse_reply_err(req, 0);
}

static void bare_fsync(fuse_req_t req, fuse_ino_t ino, int data_only,
		       struct fuse_file_info *file)
{
	(void)data_only;
	bare_done(req, ino, file);
}

static void bare_read(fuse_req_t req, fuse_ino_t ino, size_t bytes,
		      off_t offset, struct fuse_file_info *file)
{
	const off_t left = node_of(req, ino)->st.st_size - offset;

	(void)file;
	if ((off_t)bytes > left)
		bytes = left > 0 ? (size_t)left : 0;
	if (bytes > DATA_BYTES)
		bytes = DATA_BYTES;
	fuse_reply_buf(req, bare_of(req)->data, bytes);
}

static void bare_write(fuse_req_t req, fuse_ino_t ino, const char *data,
		       size_t bytes, off_t offset, struct fuse_file_info *file)
{
	struct stat *st = &node_of(req, ino)->st;

	(void)data;
	(void)file;
	if (st->st_size < offset + (off_t)bytes)
		st->st_size = offset + (off_t)bytes;
	fuse_reply_write(req, bytes);
}

static void bare_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct bare_node *node = hashmap_del(bare_of(req)->names,
					name_key(parent, name));

	if (node)
		node->linked = false;
	fuse_reply_err(req, node ? 0 : ENOENT);
}

static void bare_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
			fuse_ino_t to_parent, const char *to_name,
			unsigned flags)
{
	struct bare *bare = bare_of(req);
	struct bare_node *node, *old;

	if (flags) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	node = hashmap_del(bare->names, name_key(parent, name));
	old = hashmap_del(bare->names, name_key(to_parent, to_name));
	if (old)
		old->linked = false;
	fuse_reply_err(req, !node ? ENOENT :
		       node_name(bare, node, to_parent, to_name) ? ENOMEM : 0);
}

/* The offset of an entry is the number of the node behind it. */
static void bare_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t bytes,
			     off_t offset, struct fuse_file_info *file)
{
	struct bare *bare = bare_of(req);
	size_t used = 0;

	(void)file;
	if (bytes > DATA_BYTES)
		bytes = DATA_BYTES;
	for (fuse_ino_t at = (fuse_ino_t)offset; at < bare->count; at++) {
		const struct bare_node *node = at > 1 ? bare->nodes[at] : NULL;
		struct fuse_entry_param entry;
		size_t n;

		if (!node || node->parent != ino || !node->linked)
			continue;
		entry = entry_of(node);
		n = fuse_add_direntry_plus(req, bare->data + used,
					   bytes - used, node->name, &entry,
					   (off_t)at + 1);
		if (n > bytes - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, bare->data, used);
	memset(bare->data, 0, used);
}

static void bare_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			  size_t bytes)
{
	(void)ino;
	(void)name;
	(void)bytes;
	fuse_reply_err(req, ENODATA);
}

static const struct fuse_lowlevel_ops operations = {
	.init = bare_init,
	.lookup = bare_lookup,
	.getattr = bare_getattr,
	.setattr = bare_setattr,
	.mkdir = bare_mkdir,
	.create = bare_create,
	.open = bare_open,
	.read = bare_read,
	.write = bare_write,
	.release = bare_done,
	.fsync = bare_fsync,
	.unlink = bare_unlink,
	.rename = bare_rename,
	.readdirplus = bare_readdirplus,
	.getxattr = bare_getxattr,
};

/* ---- The process ---- */

static int bare_serve(const char *device, const char *mnt)
{
	struct bare *bare = calloc(1, sizeof(*bare));
	struct fuse_session *session;
	char options[PATH_MAX + 128];
	char *argv[] = { "bare", "-o", options };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	snprintf(options, sizeof(options),
		 "blkdev,fsname=%s,default_permissions,allow_other", device);
	if (!bare)
		return 1;
	bare->names = hashmap_new();
	bare->count = 1;
	/* The root has the number 1, FUSE_ROOT_ID. */
	if (!bare->names || !node_new(bare, 0, "", S_IFDIR | 0755))
		return 1;
	session = fuse_session_new(&args, &operations, sizeof(operations),
				   bare);
	if (!session || fuse_session_mount(session, mnt))
		return 1;
	return fuse_session_loop(session) ? 1 : 0;
}

static bool is_mounted(const char *mnt, dev_t before)
{
	struct stat st;

	return !stat(mnt, &st) && st.st_dev != before;
}

int bare_fuse_mount(const char *device, const char *mnt, pid_t *pid)
{
	struct stat st;

	if (stat(mnt, &st))
		return -errno;
	fflush(NULL);
	*pid = fork();
	if (*pid < 0)
		return -errno;
	if (*pid == 0)
		_exit(bare_serve(device, mnt));
	for (unsigned i = 0; i < MOUNT_TRIES; i++) {
		if (is_mounted(mnt, st.st_dev))
			return 0;
		usleep(1000);
	}
	msg_error("%s: a FUSE server could not be mounted", mnt);
	return -EIO;
}
