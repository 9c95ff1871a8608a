/*
 * confine.h - the process gives up what it does not need to serve a mount.
 *
 * Whoever writes to a disk can try to mislead what reads it.  A daemon that is
 * misled shall be able to do nothing but what it does anyway: transfer data
 * between the disk and the kernel's connection, both of which are open.
 */
#ifndef TRAX_FUSE_CONFINE_H
#define TRAX_FUSE_CONFINE_H

/*
 * At the start of the program: descriptors that were inherited are closed, and
 * 0 to 2 are open, so that no file that is opened later becomes one of them.
 * 0 or a negative errno.
 */
int confine_descriptors(void);

/*
 * For good: capabilities are dropped but for those that confine.c lists, no
 * program that is executed gets more, memory cannot be read or dumped by
 * others, and system calls that confine.c does not list fail with EPERM (where
 * libseccomp is there).  Threads that are there already keep what they have, so
 * there must be none.  0 or a negative errno; what failed is said through msg.
 */
int confine(void);

#endif
