/*
 * scsi_list.h - a drive's list of defects, as a forecast.
 *
 * Lists are incomplete, or wrong, on some drives: what is foretold has to come
 * true in the sum at the end of a leap, and each defect is looked at where the
 * list has it (list_true): then there is no room for any other.
 */
#ifndef TRAX_EXTRACT_SCSI_LIST_H
#define TRAX_EXTRACT_SCSI_LIST_H

#include <stddef.h>

#include "extract/scsi_ask.h"
#include "extract/scsi_model.h"

/* Who makes up for slipped sectors. */
enum list_scheme {
	LIST_PUSH,		/* nobody: all behind them move on */
	LIST_REGION,		/* spares of the region */
	LIST_TRACK,		/* spares of the track */
};

/* A track that holds more or fewer blocks than its slot. */
struct listed {
	uint64_t track;
	int64_t before;		/* sum of `more` of those before it */
	int32_t more;
	int32_t slips;		/* on it, among its blocks */
	uint32_t defects;	/* on it; 0: it makes up for others */
	size_t defect;		/* the first of them */
	bool whole;		/* no blocks on it at all */
	uint32_t runs;		/* of neighbouring defects */
};

struct list {
	const struct scsi_address *defect; /* sorted */
	size_t defects;
	bool *wrong;		/* those that are not there */
	enum list_scheme scheme;
	bool used;
	uint32_t spares;	/* of a track, if those make up */
	struct listed *v;	/* by track; several of one are neighbours */
	size_t n;
	uint64_t right, lies;	/* of those looked at */
};

/* The defects remain the caller's.  -ENOMEM */
int list_init(struct list *list, const struct scsi_address *defect, size_t n);
void list_fini(struct list *list);

/* In the model's order of tracks, from one on. */
void list_arrange(struct list *list, const struct model *model,
		  uint64_t track);

/* The first listed track at or behind this one; list->n: none. */
size_t list_find(const struct list *list, uint64_t track);

/* Blocks that the tracks before this one hold more than their slots say. */
int64_t list_before(const struct list *list, uint64_t track);

/*
 * Are the defects of the tracks [from, to) where they should be?  1, 0 (those
 * that are not are left out from now on: list_arrange) or an error.  Tracks
 * with several runs are not looked at: their ends have to be.
 */
int list_true(struct list *list, struct ask *ask, uint64_t from, uint64_t to);

/* The same of one listed track. */
int list_true_at(struct list *list, struct ask *ask, size_t i);

/* Not worth anything? */
bool list_lies(const struct list *list);

#endif
