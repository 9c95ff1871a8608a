/*
 * scsi_list.c - defects in the order of tracks, and looking at them.
 *
 * A run of neighbouring defects is looked at once; all of them are: a defect
 * that is listed elsewhere leaves all sums as they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extract/scsi_list.h"

#define LIES_MOST 500u

int list_init(struct list *list, const struct scsi_address *defect, size_t n)
{
	memset(list, 0, sizeof(*list));
	list->defect = defect;
	list->defects = n;
	list->used = n > 0;
	list->wrong = calloc(n + 1, sizeof(*list->wrong));
	list->v = calloc(2 * n + 1, sizeof(*list->v));
	if (list->wrong && list->v)
		return 0;
	list_fini(list);
	return -ENOMEM;
}

void list_fini(struct list *list)
{
	free(list->wrong);
	free(list->v);
	list->wrong = NULL;
	list->v = NULL;
}

static int listed_compare(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return x->defect < y->defect ? -1 : x->defect > y->defect;
}

/* Defects [i, j) are on one track of the model. */
static void list_add(struct list *list, const struct model *model,
		     uint64_t track, size_t i, size_t j)
{
	uint64_t in_slot, last;
	uint32_t at = 0, nominal = model->cycle.slot[cycle_slot_of(
		&model->cycle, track, &in_slot)].blocks;
	struct listed l = { .track = track, .defect = i,
			    .defects = (uint32_t)(j - i) };

	for (; i < j; i++) {
		if (list->wrong[i])
			continue;
		if (list->defect[i].at == SCSI_WHOLE_TRACK)
			l.whole = true;
		/* Behind the last block there are only spares. */
		else if (list->defect[i].at < nominal + (uint32_t)l.slips)
			l.slips++;
		if (!l.runs || list->defect[i].at != at + 1)
			l.runs++;
		at = list->defect[i].at;
	}
	if (!l.slips && !l.whole)
		return;
	last = list->scheme == LIST_REGION ? model_region_last(model, track) :
					     track;
	if (l.whole)
		l.more = -(int32_t)nominal;
	else if (list->scheme == LIST_PUSH || last != track)
		l.more = -l.slips;
	else if (list->scheme == LIST_TRACK &&
		 l.slips > (int32_t)list->spares)
		l.more = (int32_t)list->spares - l.slips;
	list->v[list->n++] = l;
	if (last == track || l.whole)
		return;
	l = (struct listed){ .track = last, .more = l.slips };
	list->v[list->n++] = l;
}

void list_arrange(struct list *list, const struct model *model, uint64_t from)
{
	const struct scsi_address *d = list->defect;
	uint64_t track;
	int64_t sum = 0;
	size_t i, j;

	list->n = 0;
	for (i = 0; list->used && i < list->defects; i = j) {
		const struct cycle_place place = { d[i].cylinder, d[i].head };

		for (j = i; j < list->defects &&
		     d[j].cylinder == place.cylinder &&
		     d[j].head == place.head; j++)
			;
		if (!cycle_find(&model->cycle, &place, &track))
			continue;
		/* Earlier ones of its region may matter. */
		if (track + CYCLE_MAX_SLOTS >= from)
			list_add(list, model, track, i, j);
	}
	qsort(list->v, list->n, sizeof(*list->v), listed_compare);
	for (i = j = 0; i < list->n; i++) {
		if (list->v[i].track < from)
			continue;
		list->v[j] = list->v[i];
		list->v[j].before = sum;
		sum += list->v[j++].more;
	}
	list->n = j;
}

size_t list_find(const struct list *list, uint64_t track)
{
	size_t lo = 0, hi = list->n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (list->v[mid].track < track)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int64_t list_before(const struct list *list, uint64_t track)
{
	size_t i = list_find(list, track);

	if (i < list->n)
		return list->v[i].before;
	return i ? list->v[i - 1].before + list->v[i - 1].more : 0;
}

/* ---- looking at them ---- */

static int defect_true(struct list *list, struct ask *ask, size_t i,
		       bool whole)
{
	struct scsi_address address = list->defect[i];
	int rc;

	if (whole)
		address.at = 0;
	rc = ask_hole(ask, &address);
	if (rc == 1)
		list->right++;
	if (!rc) {
		list->wrong[i] = true;
		list->lies++;
	}
	return rc;
}

/* The next run of neighbouring defects of [i, end): its first, and where the
 * one after it begins. */
static size_t run_of(const struct list *list, size_t i, size_t end,
		     size_t *next)
{
	size_t first;

	while (i < end && list->wrong[i])
		i++;
	first = i;
	while (i < end && !list->wrong[i] &&
	       list->defect[i].at == list->defect[first].at + (i - first))
		i++;
	*next = i;
	return first;
}

int list_true_at(struct list *list, struct ask *ask, size_t at)
{
	const struct listed *l = &list->v[at];
	size_t end = l->defect + l->defects, i = l->defect, next;
	int rc = 1;

	if (l->whole)
		return defect_true(list, ask, end - 1, true);
	while (rc == 1 && i < end) {
		i = run_of(list, i, end, &next);
		if (i < end)
			rc = defect_true(list, ask, i, false);
		if (i + 1 < next && rc == 1 && list->lies)
			rc = defect_true(list, ask, next - 1, false);
		i = next;
	}
	return rc;
}

int list_true(struct list *list, struct ask *ask, uint64_t from, uint64_t to)
{
	bool good = true;
	size_t i;
	int rc;

	for (i = list_find(list, from);
	     i < list->n && list->v[i].track < to; i++) {
		if (!list->v[i].defects || list->v[i].runs > 1 ||
		    (!list->v[i].more && list->scheme != LIST_REGION))
			continue;
		rc = list_true_at(list, ask, i);
		if (rc < 0)
			return rc;
		good = good && rc;
	}
	return good;
}

bool list_lies(const struct list *list)
{
	return list->lies > 20 && (list->lies > LIES_MOST ||
				   list->lies > list->right);
}
