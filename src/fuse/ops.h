/*
 * ops.h - the table of opcodes: how each request becomes an operation.
 *
 * Private to src/fuse.  An opcode that is not in the table is answered ENOSYS.
 * The kernel remembers that and does without, which is meant for
 *   FLUSH                  the kernel writes the file's dirty pages at close
 *                          anyway, and RELEASE reports the last close
 *   BMAP                   a program that knows sectors writes to them, as
 *                          swapon(8) does: past checksums, while blocks move
 *   GETLK, SETLK, POLL, ACCESS  the kernel does these by itself.
 */
#ifndef TRAX_FUSE_OPS_H
#define TRAX_FUSE_OPS_H

#include "fuse/request.h"

/* Kernel timeouts for names and attributes: nobody else changes them. */
#define OPS_VALID_SECONDS (1ull << 30)

/*
 * Returns for how long the kernel may keep attributes.  After an UNLINK the
 * kernel decrements the link count by itself, as soon as the calling process
 * runs again.  Attributes that it gets before that have the new count already,
 * and would be decremented, too.  So the attributes of a file that has lost a
 * name lately are not to be kept, nor those that each write(2) is to ask for
 * (room.h).
 */
uint64_t ops_valid_seconds(struct session *session,
			   const struct fs_attr *attr);

/* Takes the request over; it is ended sooner or later. */
void ops_dispatch(struct request *req);

/* Shared by the handlers. */
void ops_fill_attr(const struct fs_attr *attr, struct fuse_attr *out);
void ops_fill_entry(struct session *session, const struct fs_attr *attr,
		    struct fuse_entry_out *out);
/* To be called before the reply with attributes of a file that the kernel
 * knows: if writes to it are to ask, it does not apply them (ops_attr.c). */
void ops_forget_asking(struct session *session, uint64_t ino);
/* done(): replies with nothing but op->rc. */
void ops_done_status(struct fs_op *op);
/* Answers an IOCTL, with as many bytes as the kernel asked for. */
void ops_reply_ioctl(struct request *req, const void *data, size_t bytes);

/* Handlers.  ops_names.c: */
void ops_lookup(struct request *req);
void ops_forget(struct request *req);
void ops_batch_forget(struct request *req);
void ops_readlink(struct request *req);
void ops_symlink(struct request *req);
void ops_mknod(struct request *req);
void ops_mkdir(struct request *req);
void ops_create(struct request *req);
void ops_tmpfile(struct request *req);
void ops_unlink(struct request *req);
void ops_rmdir(struct request *req);
void ops_rename(struct request *req);
void ops_rename2(struct request *req);
void ops_link(struct request *req);
void ops_opendir(struct request *req);
void ops_releasedir(struct request *req);
void ops_readdir(struct request *req);
void ops_readdirplus(struct request *req);

/* ops_attr.c: */
void ops_getattr(struct request *req);
/* Goes on now that the pages behind the end of the file have been written. */
void ops_getattr_looked(struct request *req);
void ops_setattr(struct request *req);
void ops_statx(struct request *req);
void ops_statfs(struct request *req);
void ops_setxattr(struct request *req);
void ops_getxattr(struct request *req);
void ops_listxattr(struct request *req);
void ops_removexattr(struct request *req);

/* ops_data.c: */
/* The kernel's FOPEN_* for a file that has just been opened. */
uint32_t ops_open_flags(const struct session *session);
/* Set in the handle of a file that is open for writing. */
#define OPS_HANDLE_WRITABLE (UINT64_C(1) << 62)
/* The handle of a file that has just been opened with these O_* flags. */
uint64_t ops_new_handle(struct session *session, uint32_t flags);
void ops_open(struct request *req);
void ops_release(struct request *req);
/* Drops a handle that was in a reply which the kernel did not take. */
void ops_drop_handle(struct session *session, uint64_t ino);
void ops_read(struct request *req);
void ops_write(struct request *req);

/* Goes on with a direct WRITE, an LSEEK or a GETATTR, now that the kernel's
 * pages have been dropped. */
void ops_noticed(struct request *req);
/* Counts an open (1) or a close (-1) of a file, if these flags of open(2) are
 * for writing. */
void ops_note_writer(struct session *session, uint64_t ino, uint32_t flags,
		     int change);
void ops_lseek(struct request *req);
void ops_fsync(struct request *req);
void ops_syncfs(struct request *req);
void ops_fallocate(struct request *req);
void ops_copy_file_range(struct request *req);

/* ops_ioctl.c: */
void ops_ioctl(struct request *req);
/* TRAX_CONTROL_SYNC once it need not wait any more (sync.c). */
void ops_syncfs_control(struct request *req);

/* TRAX_CONTROL_REMOUNT, _GROW once nothing else is outstanding (session.c). */
void ops_alone(struct request *req);

/* ops_init.c: */
void ops_init(struct request *req);
void ops_destroy(struct request *req);

#endif
