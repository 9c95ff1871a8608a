/*
 * confine.h - the process gives up what it does not need to serve a mount.
 *
 * The content of a disk may have been made to mislead the program that reads
 * it.  A daemon that was misled shall be able to do nothing but what it does
 * anyway: transfer data between the disk and the kernel's connection, both of
 * which are open.
 */
#ifndef TRAX_FUSE_CONFINE_H
#define TRAX_FUSE_CONFINE_H

/*
 * To be called at the start of the program: closes descriptors that were
 * inherited and opens 0 to 2 if they are not, so that no file that is opened
 * later becomes one of them.  0 or a negative errno.
 */
int confine_descriptors(void);

/*
 * From this call on the process has only the capabilities that confine.c lists,
 * no program that it executes gets more, its memory cannot be read or dumped by
 * others, and system calls that confine.c does not list fail with EPERM (where
 * libseccomp is there).  Threads that exist already would keep what they have,
 * so there must be none.  0 or a negative errno, reported through msg.
 */
int confine(void);

#endif
