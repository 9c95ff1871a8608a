/*
 * filelock.c - the backing file of a loop device, and open file description
 * locks on ranges of bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/msg.h"
#include "disk/backing.h"
#include "disk/filelock.h"

/* Opens the file that a loop device stands on. */
static int open_backing(const struct backing *b, bool read_only)
{
	struct stat st;
	/* An exclusive lock needs a descriptor that may write. */
	int fd = open(b->path, O_RDWR | O_CLOEXEC);

	if (fd < 0 && read_only)
		fd = open(b->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_ino == b->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

static int lock_backing(int fd, dev_t dev, bool read_only,
			struct filelock *lock)
{
	struct backing b;
	int backing, rc = backing_find(fd, dev, &b);

	if (rc == -ENOENT)
		return 0;
	backing = rc ? rc : open_backing(&b, read_only);
	*lock = (struct filelock){ backing, true, b.first, b.bytes };
	rc = backing < 0 ? backing : filelock_change(lock, read_only);
	if (!rc)
		return 0;
	filelock_drop(lock);
	if (rc == -EBUSY)
		return rc;
	msg_warn("the file behind loop device %u:%u cannot be locked (%s): "
		 "nobody notices that it is used twice", major(dev),
		 minor(dev), strerror(-rc));
	return 0;
}

int filelock_change(const struct filelock *lock, bool read_only)
{
	struct flock range = {
		.l_type = read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)lock->first,
		.l_len = (off_t)lock->bytes,
	};

	if (lock->fd < 0 || !fcntl(lock->fd, F_OFD_SETLK, &range))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

void filelock_drop(struct filelock *lock)
{
	if (lock->own && lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}

int filelock_take(int fd, const struct stat *st, bool read_only,
		  struct filelock *lock)
{
	*lock = (struct filelock){ .fd = -1 };
	if (S_ISBLK(st->st_mode))
		return lock_backing(fd, st->st_rdev, read_only, lock);
	lock->fd = fd;
	return filelock_change(lock, read_only);
}
