/*
 * view.h - the attributes that people look at: trax.*.
 *
 * They are made when they are asked for; they are neither stored nor listed.
 *   trax.extents   JSON array: one object for each extent of the file, as
 *                  extent_view.h cuts them
 *   trax.tracks    text: one line for each track of the file
 *   trax.replicas  JSON array of the copies of a file; of the root directory
 *                  an object of counts
 *   trax.stats, trax.model, trax.scrub, trax.moves, trax.tasks   JSON, on
 *                  the root directory only; the model has no serial
 *                  number for others than root and the mounting user
 *   trax.errors, trax.heat, trax.streams   likewise, but for root and the
 *                  mounting user only
 * An attribute holds at most 64 KiB: "trax.extents:OFFSET" and
 * "trax.tracks:OFFSET" begin at a byte offset of the file, as does
 * "trax.replicas:OFFSET"; "trax.heat:N" at access number N.  A program that
 * wants all of it asks again behind the last extent until nothing comes.
 */
#ifndef TRAX_FUSE_VIEW_H
#define TRAX_FUSE_VIEW_H

#include <stdbool.h>

#include "fuse/request.h"

struct view;

/* Makes what a session needs for these attributes, of constant size.
 * -ENOMEM. */
int view_new(struct session *session, struct view **view);
void view_free(struct view *view);

bool view_is_name(const char *name);

/* GETXATTR of such a name; req->room is the caller's buffer (0: asks for the
 * size).  Takes the request over. */
void view_get(struct request *req, const char *name);

/* Makes one step of a value that is asked for, in less than about 0.1 ms. */
void view_run(struct view *view);

/* When view_run will have something to do; UINT64_MAX: not before something
 * happens. */
uint64_t view_next_ns(const struct view *view);

/* To be called when the session ends: answers the requests that wait with EIO;
 * the value that is being made is over soon. */
void view_stop(struct view *view);

#endif
