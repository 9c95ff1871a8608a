/*
 * platter.c - what lies where on the disk, for trax.platter.
 */
#include <jansson.h>
#include <stdlib.h>

#include "fs/op/fs_internal.h"
#include "fs/table/replica.h"

#define PARTS 240u		/* Equal parts of the disk that are shown, each
				 * an element of the arrays. */
/* Free runs counted of one part in one group, so that the time is bounded; the
 * rest of the part is taken to be like what was counted. */
#define RUNS 64u

struct platter_part {
	struct range is;
	double free, log, copies;	/* sectors */
};

static uint64_t shared(const struct range *a, uint64_t first, uint64_t n)
{
	uint64_t from = a->first > first ? a->first : first;
	uint64_t end = a->first + a->n < first + n ? a->first + a->n :
						     first + n;

	return end > from ? end - from : 0;
}

/* Free sectors of a range that lies in one group whose free set is in
 * memory. */
static double free_by_runs(const struct rangeset *set, const struct range *is)
{
	uint64_t at = is->first, end = is->first + is->n, found = 0;
	struct range run;
	unsigned i;

	for (i = 0; i < RUNS && at < end; i++) {
		uint64_t from, to;

		if (!rangeset_next(set, at, &run) || run.first >= end)
			return (double)found;
		from = run.first > at ? run.first : at;
		to = run.first + run.n < end ? run.first + run.n : end;
		found += to - from;
		at = to;
	}
	if (at >= end)
		return (double)found;
	return (double)found * (double)is->n / (double)(at - is->first);
}

static double free_of(const struct fs *fs, const struct range *is)
{
	const struct space *space = tree_space(fs->tree);
	uint64_t sectors = tree_super(fs->tree)->sectors;
	uint64_t at = is->first, end = is->first + is->n;
	double all = 0;

	while (at < end) {
		uint32_t group = (uint32_t)(at / TRAX_GROUP_SECTORS);
		uint64_t begin = (uint64_t)group * TRAX_GROUP_SECTORS;
		uint64_t next = begin + TRAX_GROUP_SECTORS;
		struct range part = { at, (next < end ? next : end) - at };

		/* The last group is smaller. */
		if (next > sectors)
			next = sectors;
		if (space_group_loaded(space, group))
			all += free_by_runs(space_free_set(space), &part);
		else
			all += (double)space_group_free(space, group) *
			       (double)part.n / (double)(next - begin);
		at = part.first + part.n;
	}
	return all;
}

static void fill(const struct fs *fs, struct platter_part *part)
{
	const struct super *super = tree_super(fs->tree);
	struct replica_regions *regions = fs->replicas->regions;
	uint64_t end = part->is.first + part->is.n;
	size_t i;

	part->free = free_of(fs, &part->is);
	for (i = 0; i < super->log_tracks; i++)
		part->log += (double)shared(&part->is, super->log[i].sector,
					    super->log[i].sectors);
	for (i = regions_index(regions, part->is.first);
	     i < regions_count(regions); i++) {
		const struct replica_region *r = regions_at(regions, i);

		if (r->sector >= end)
			break;
		part->copies += (double)shared(&part->is, r->sector,
					       r->sectors);
	}
}

char *fs_platter_json(struct fs *fs)
{
	uint64_t sectors = tree_super(fs->tree)->sectors, i;
	json_t *object = json_object(), *parts = json_array();
	char *text;

	for (i = 0; i < PARTS; i++) {
		uint64_t first = sectors * i / PARTS;
		struct platter_part part = {
			.is = { first, sectors * (i + 1) / PARTS - first },
		};
		struct geom_track track;

		if (!part.is.n)
			continue;
		fill(fs, &part);
		geom_track_of(fs->geom, first + part.is.n / 2, &track);
		json_array_append_new(parts, json_pack(
			"[f,f,f,I,b]", part.free / (double)part.is.n,
			part.log / (double)part.is.n,
			part.copies / (double)part.is.n,
			(json_int_t)track.sectors, track.known));
	}
	json_object_set_new(object, "sectors",
			    json_integer((json_int_t)sectors));
	json_object_set_new(object, "parts", parts);
	text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	return text;
}
