/*
 * prober_disk.h - a prober that has a disk for itself.
 *
 * Over any struct disk and the clock that it lives by: a simulated drive in
 * virtual time, a device or a file in real time.  It is the caller's duty to
 * give a real one a thread that nothing keeps waiting (SCHED_FIFO, locked
 * memory).
 */
#ifndef TRAX_PROBE_PROBER_DISK_H
#define TRAX_PROBE_PROBER_DISK_H

#include <signal.h>

#include "extract/probe/probe.h"

/*
 * The disk must have nothing else to do while there is an access.  *stop, if
 * not NULL, ends the measuring with -EINTR when it is no longer 0.  Writes are
 * refused with -EROFS unless `scratch`.  NULL: out of memory.
 */
struct prober *prober_disk_new(struct env *env, struct disk *disk,
			       bool scratch,
			       const volatile sig_atomic_t *stop);
void prober_disk_free(struct prober *prober);

#endif
