/*
 * device_file.h - what the back ends for real disks share: the open descriptor
 * of a block device or image file and what it guarantees.
 */
#ifndef TRAX_DISK_DEVICE_FILE_H
#define TRAX_DISK_DEVICE_FILE_H

#include <fcntl.h>

#include "disk/disk.h"
#include "disk/filelock.h"

/* How fallocate(2) discards on a block device and in a file. */
#define DEVICE_FILE_DISCARD (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

struct device_file {
	struct disk disk;	/* its ops are the back end's */
	int fd;
	int event_fd;
	bool may_write;		/* fd is open for writing */
	struct filelock lock;
	/* Requests that were completed without the kernel: refused, or done at
	 * once. */
	struct disk_request *finished, **finished_end;
};

/* Errors are those of disk_open. On success the caller ends the file with
 * fini. */
int device_file_init(struct device_file *file, const char *path,
	      const struct disk_open_options *options);
void device_file_fini(struct device_file *file);

/* disk_set_read_only, for both back ends; `disk` is the head of a file. */
int device_file_set_read_only(struct disk *disk, bool read_only);
/* disk_renew_size, likewise. */
int device_file_renew_size(struct disk *disk);

/* 0, -EINVAL or -EROFS: may this request be given to the kernel? */
int device_file_check(const struct device_file *file,
		      const struct disk_request *req);

/* Completes a request: stamps it; done() is called by the next
 * device_file_deliver. */
void device_file_finish(struct device_file *file, struct disk_request *req,
			int result);

/* The same from within disk_submit: it also makes event_fd readable. */
void device_file_finish_now(struct device_file *file, struct disk_request *req,
			    int result);

/* Calls done() of the finished requests; returns their number. */
int device_file_deliver(struct device_file *file);

/* Sleeps; a signal ends it. */
void device_file_pass_time(int64_t ns);

/*
 * The back ends.  They take the file over when they succeed.  ring_open:
 * -ENOSYS, -EPERM, -ENOMEM: the kernel has or lends no io_uring.
 */
int ring_open(const struct device_file *file, unsigned depth,
	      struct disk **disk);
int plain_open(const struct device_file *file, struct disk **disk);

#endif
