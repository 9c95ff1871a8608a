/*
 * burst.h - what the loop does while requests follow each other at once.
 *
 * A program that has just been answered often asks again within microseconds,
 * and both sides would wait longer for processors to wake up than a request
 * takes.  So the loop looks for the next request for a moment instead of
 * sleeping; and while many follow each other, processors are kept from sleeping
 * deeply, by the limit that Linux has for that (/dev/cpu_dma_latency: PM QoS,
 * Documentation/power/pm_qos_interface.rst).  The program that asks gains from
 * that as well as the loop: its processor is idle while it waits for an answer.
 */
#ifndef TRAX_FUSE_BURST_H
#define TRAX_FUSE_BURST_H

#include <stdbool.h>
#include <stdint.h>

struct burst;

/*
 * NULL: no memory.  `awake`: processors are kept awake, where the process may
 * ask for that (as a rule root) and where it makes a difference; the device is
 * opened here and stays open, for it cannot be opened later (confine.h).
 */
struct burst *burst_new(bool awake);

/* A turn of the loop, from begin_ns to end_ns, has taken requests. */
void burst_asked(struct burst *burst, uint64_t begin_ns, uint64_t end_ns);

/* Is it worth while to look for requests again without sleeping? */
bool burst_spins(const struct burst *burst, uint64_t now_ns);

/* Lets processors sleep when the last request is some time ago.  Returns when
 * to call it again; UINT64_MAX: after the next request. */
uint64_t burst_run(struct burst *burst, uint64_t now_ns);

/* Lets processors sleep, frees; NULL is allowed. */
void burst_free(struct burst *burst);

#endif
