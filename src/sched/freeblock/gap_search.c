/*
 * gap_search.c - the freeblock search.
 *
 *   head free          leave by            arrive by  target's first sector
 *      |--- source track ---|~~~ move ~~~|-- target track --|
 *      |~ move ~|--- third track ---|~~ move ~~|
 *
 * A track is judged by one passing of the head: between the angle it arrives at
 * and the one it has to leave at lies one run of LBNs, or two where the track's
 * end lies between.  What is wanted in there counts.
 *
 * Source and target tracks come first, in every share of the gap that matters.
 * The others are searched best first: the tree of wanted tracks gives for each
 * of its nodes how much a track below it could yield at most, namely
 *   - no more than the most that is wanted on one of its tracks, and
 *   - no more than passes by in what the two moves, at their cheapest for any
 *     of its cylinders, leave of the gap.
 * A node that cannot beat the best found so far is left out with all below it;
 * with the heap in order of that bound, the search is over when the first is.
 * These are the prunings of the paper, in an order that serves them.
 */
#include "sched/freeblock/gap_search.h"

#include <string.h>

#include "sched/freeblock/gap_search_internal.h"

/* Remapped runs that are looked at for one gap, and those that are tried. */
#define MOVED_LOOKS 16u
#define MOVED_TRIES 4u
#define MOVED_HASH 0x9e3779b1u
/* Steps that looking at a third track counts as. */
#define TRACK_STEPS 2u
/* Ways to divide a gap between source and target track that are tried. */
#define SHARES 4u

/* ---- putting a plan together ---- */

static uint64_t pass_end_ns(const struct gap_pass *pass, uint64_t otherwise)
{
	return pass->n ? pass->extent[pass->n - 1].end_ns : otherwise;
}

/* Extents on the target's track before it go in one command with it. */
static bool extent_joins(const struct gap_search_state *s,
			const struct gap_extent *extent)
{
	const struct service_request *target = &s->query->target;

	return s->query->joins && !target->write &&
	       extent->sector >= s->target.first &&
	       extent->sector + extent->sectors <= target->lbn &&
	       target->lbn + target->sectors - extent->sector <=
		       s->query->max_sectors;
}

/* A sequence of commands: when the next one has been decoded at the earliest,
 * and where the head is then. */
struct gap_follow {
	struct service_head head;	/* the head, free for the next
					 * command */
	uint64_t decoded_ns, ahead_ns;
	uint64_t end;			/* where the command before it ends */
};

/* A drive that reads ahead may go on to the next track behind a command, before
 * it serves the next one.  Does it come to the track's end until then? */
static bool follow_goes_on(const struct gap_search_state *s,
			   struct gap_follow *f, uint64_t end_ns)
{
	const struct head_state *head_state = s->head_state;
	struct service_head head = f->head;
	struct geom_track track;
	uint64_t end, left;
	uint32_t rest;

	if (!head_state->goes_on_sectors)
		return false;
	geom_track_of(head_state->geom, f->end - 1, &track);
	end = track.first + track.sectors;
	/* The rest of a physical sector is read with its beginning. */
	rest = (uint32_t)(-f->end % head_state->physical_sectors);
	left = end - f->end > rest ? end - f->end - rest : 0;
	head.at_ns = end_ns + left * service_turn_ns(head_state->mech,
						     track.per_sector);
	if (left >= head_state->goes_on_sectors ||
	    head.at_ns > f->head.at_ns || end >= geom_sectors(head_state->geom))
		return false;
	service_go_on(head_state->geom, head_state->mech, &head, end);
	if (f->head.at_ns < head.at_ns)
		f->head.at_ns = head.at_ns;
	f->head.cylinder = head.cylinder;
	f->head.surface = head.surface;
	return true;
}

/* The command behind that on the medium until end_ns, of a sector, if the head
 * is there by in_ns; false: it cannot be. */
static bool follow_next(const struct gap_search_state *s, struct gap_follow *f,
			uint64_t end_ns, uint64_t lbn, bool write,
			uint64_t in_ns)
{
	const struct head_state *head_state = s->head_state;
	uint64_t begun_ns = f->head.at_ns, ns;
	struct geom_place place;

	f->decoded_ns = begun_ns +
			head_state_behind_ns(head_state, f->ahead_ns) +
			(write ? head_state->write_overhead_ns
			       : head_state->read_overhead_ns);
	f->head.at_ns = f->decoded_ns > end_ns ? f->decoded_ns : end_ns;
	f->ahead_ns = f->head.at_ns - f->decoded_ns;
	if ((lbn == f->end || !follow_goes_on(s, f, end_ns)) &&
	    f->decoded_ns <= end_ns)
		return true;
	geom_place_of(head_state->geom, lbn, &place);
	ns = f->head.at_ns + service_move_ns(head_state->mech, &f->head,
					     place.cylinder, place.surface,
					     write);
	return ns + s->lead_ns <= in_ns + ROUND_IN_NS;
}

static void follow_at(const struct gap_search_state *s, struct gap_follow *f,
		      const struct gap_extent *extent)
{
	const struct service_request *target = &s->query->target;
	struct geom_place place;

	/* A drive would join them until it reads. */
	if (extent->sector == target->lbn + target->sectors ||
	    extent->sector + extent->sectors == target->lbn)
		f->head.at_ns = extent->begin_ns;
	geom_place_of(s->head_state->geom, extent->sector + extent->sectors - 1,
		      &place);
	f->head.cylinder = place.cylinder;
	f->head.surface = place.surface;
	f->end = extent->sector + extent->sectors;
}

/* The first of these extents, or the target (`n`), whose command would come too
 * late behind a short one; n + 1: none. */
static unsigned plan_late(const struct gap_search_state *s,
			  const struct gap_extent *extent, unsigned n)
{
	uint64_t now_ns =
		s->head_state->now_ns + s->head_state->read_overhead_ns;
	struct gap_follow f = { .head.at_ns = s->free_ns,
			    .ahead_ns = s->free_ns - now_ns };
	unsigned i;

	for (i = 1; i < n; i++) {
		follow_at(s, &f, &extent[i - 1]);
		if (!follow_next(s, &f, extent[i - 1].end_ns, extent[i].sector,
				 false, extent[i].begin_ns))
			return i;
	}
	if (!n || extent_joins(s, &extent[n - 1]))
		return n + 1;
	follow_at(s, &f, &extent[n - 1]);
	return follow_next(s, &f, extent[n - 1].end_ns, s->query->target.lbn,
			   s->query->target.write, s->plan->target_ns) ?
		       n + 1 : n;
}

/* Makes a plan of these passings, in order, if they read more than the best one
 * so far.  Of an extent too short for another command to be ready in time, and
 * the next extent, only one is taken. */
static void plan_offer(struct gap_search_state *s,
		       const struct gap_pass *const *pass, unsigned n)
{
	struct gap_plan *plan = s->plan;
	struct gap_extent extent[GAP_EXTENTS];
	int64_t worth = 0;
	unsigned extents = 0, i, late;

	for (i = 0; i < n; i++) {
		memcpy(extent + extents, pass[i]->extent,
		       pass[i]->n * sizeof(*extent));
		extents += pass[i]->n;
		worth += pass[i]->worth_ns;
	}
	while (worth > plan->worth_ns &&
	       (late = plan_late(s, extent, extents)) <= extents) {
		if (late == extents || extent[late].worth_ns >
					      extent[late - 1].worth_ns)
			late--;
		worth -= extent[late].worth_ns;
		extents--;
		memmove(extent + late, extent + late + 1,
			(extents - late) * sizeof(*extent));
	}
	if (worth <= plan->worth_ns)
		return;
	plan->worth_ns = worth;
	plan->extents_n = extents;
	memcpy(plan->extent, extent, extents * sizeof(*extent));
	for (i = plan->units = 0; i < extents; i++)
		plan->units += extent[i].units;
}

/* The last passing before the target: over its own track, to be there from
 * from_ns.  What is before the target on its track is one command with it. */
static void pass_target(const struct gap_search_state *s, uint64_t from_ns,
			struct gap_pass *pass)
{
	uint64_t target = s->query->target.lbn;
	uint64_t out_ns = s->plan->target_ns;

	pass_over(s, &s->target, from_ns,
		  s->query->target.write || !s->query->joins ?
			  s->leave_ns : out_ns, pass);
	while (pass->n) {
		const struct gap_extent *p = &pass->extent[pass->n - 1];

		if (p->end_ns <= s->leave_ns ||
		    (p->sector + p->sectors <= target &&
		     target + s->query->target.sectors - p->sector <=
			     s->query->max_sectors))
			return;
		/* It is not one command with the target, and it is too late for
		 * two. */
		pass_over(s, &s->target, from_ns, s->leave_ns, pass);
		if (pass->n && pass_end_ns(pass, 0) > s->leave_ns)
			*pass = (struct gap_pass){ 0 };
	}
}

/* ---- source and target ---- */

/* Over the source track.  What goes on where a read has ended needs no care:
 * the head is there. */
static void pass_source(const struct gap_search_state *s, uint64_t out_ns,
			struct gap_pass *pass)
{
	if (s->head_state->stream_lbn == s->head_state->head_lbn + 1) {
		pass_over(s, &s->source, s->free_ns, out_ns, pass);
		if (pass->n &&
		    pass->extent[0].sector == s->head_state->stream_lbn)
			return;
	}
	pass_over(s, &s->source, s->free_ns + s->head_state->read_guard_ns,
		  out_ns, pass);
}

/* Tries what is left for the target's track after a passing over another. */
static void try_rest(struct gap_search_state *s, const struct geom_track *track,
		     const struct gap_pass *before, const struct gap_pass *pass)
{
	uint64_t there_ns = pass_end_ns(pass, s->free_ns) +
		gap_move_ns(s, track, &s->target, false) +
		(pass->n ? s->lead_ns : s->head_state->read_guard_ns);
	struct gap_pass last;
	const struct gap_pass *all[] = { before, pass, &last };

	s->plan->steps++;
	pass_target(s, there_ns, &last);
	if (!last.n && pass_end_ns(pass, 0) +
		    gap_move_ns(s, track, &s->target, s->query->target.write) >
				s->leave_ns)
		return;
	plan_offer(s, all, 3);
}

/* Tries the source track until until_ns at most, and the target track for the
 * rest. */
static void try_share(struct gap_search_state *s, uint64_t until_ns)
{
	const struct gap_pass none = { 0 };
	struct gap_pass first;

	s->plan->steps++;
	pass_source(s, until_ns, &first);
	try_rest(s, &s->source, &none, &first);
}

static void try_same_track(struct gap_search_state *s)
{
	struct gap_pass pass;
	const struct gap_pass *one[] = { &pass };

	s->plan->steps++;
	pass_target(s, s->free_ns + s->head_state->read_guard_ns, &pass);
	plan_offer(s, one, 1);
}

/* The most that any share could bring. */
static int64_t share_bound(const struct gap_search_state *s, uint64_t gap_ns)
{
	int64_t a = gap_units_in(s, gap_ns, &s->source) *
		    gap_unit_ns(s, &s->source);
	int64_t b = gap_units_in(s, gap_ns, &s->target) *
		    gap_unit_ns(s, &s->target);

	return a > b ? a : b;
}

static void search_ends(struct gap_search_state *s)
{
	uint64_t move = gap_move_ns(s, &s->source, &s->target,
				    s->query->target.write);
	uint64_t begin = s->free_ns + s->head_state->read_guard_ns, out;
	struct gap_pass last, first;
	const struct gap_pass *both[] = { &first, &last };
	unsigned i;

	if (s->source.index == s->target.index) {
		try_same_track(s);
		return;
	}
	if (s->leave_ns <= begin + move)
		return;
	out = s->leave_ns - move;
	try_share(s, out);
	s->ends_ns = s->plan->worth_ns;
	if (s->plan->worth_ns >=
	    share_bound(s, out - begin + gap_settle_ns(s)))
		return;
	/* Tries all of the target's track, and spends the rest of the time
	 * elsewhere. */
	s->plan->steps += 2;
	move = gap_move_ns(s, &s->source, &s->target, false);
	pass_target(s, begin + move, &last);
	s->ends_ns += last.worth_ns;
	first = (struct gap_pass){ 0 };
	if (last.n && last.extent[0].begin_ns > begin + move)
		pass_source(s, last.extent[0].begin_ns - move - s->lead_ns,
			    &first);
	plan_offer(s, both, 2);
	for (i = 1; i < SHARES; i++)
		try_share(s, begin + (out - begin) * i / SHARES);
}

/* ---- other tracks ---- */

static void low_fill(struct gap_search_state *s)
{
	const struct service_mech *mech = s->head_state->mech;
	uint64_t least = UINT64_MAX;
	uint32_t i;

	s->low_n = mech->seek_n <= LOW_MAX ? mech->seek_n : 0;
	for (i = s->low_n; i--;) {
		if (mech->seek[i].ns < least)
			least = mech->seek[i].ns;
		s->low_ns[i] = least;
	}
}

/* No seek over that many cylinders, or more, is shorter. */
static uint64_t low_seek_ns(const struct gap_search_state *s,
			    uint32_t cylinders)
{
	const struct service_mech *mech = s->head_state->mech;
	uint64_t ns = service_seek_ns(mech, 0, cylinders);
	uint32_t lo = 0, hi = s->low_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (mech->seek[mid].cylinders <= cylinders)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!s->low_n)
		return 0;
	return lo < s->low_n && s->low_ns[lo] < ns ? s->low_ns[lo] : ns;
}

/* No move between a track and another in these cylinders is shorter. */
static uint64_t low_move_ns(const struct gap_search_state *s,
			    const struct geom_track *from,
			    const struct geom_bounds *to)
{
	uint64_t seek_ns, switch_ns = s->head_state->mech->head_switch_ns;

	if (from->cylinder < to->low)
		return low_seek_ns(s, to->low - from->cylinder);
	if (from->cylinder > to->high)
		return low_seek_ns(s, from->cylinder - to->high);
	seek_ns = low_seek_ns(s, 1);
	return seek_ns < switch_ns ? seek_ns : switch_ns;
}

/* The most units any track of a node can yield. */
static int64_t node_bound(const struct gap_search_state *s,
			  const struct freeblock_set_node *node,
			  uint64_t *spent_ns)
{
	uint64_t spent = s->free_ns + s->head_state->read_guard_ns +
			 low_move_ns(s, &s->source, &node->geom) +
			 low_move_ns(s, &s->target, &node->geom) +
			 gap_settle_ns(s);
	uint64_t unit = freeblock_set_unit(s->wanted), time;
	int64_t longest, most;

	*spent_ns = spent;
	if (spent >= s->leave_ns)
		return 0;
	longest = (int64_t)(s->turn_ns * unit / node->geom.least + 1);
	time = s->leave_ns - spent;
	if (node->geom.least == node->geom.around)
		time = (time + 500) * node->geom.around / s->turn_ns / unit *
		       (uint64_t)longest;
	most = node->most * longest + s->ends_ns;
	return ((int64_t)time < most ? (int64_t)time : most) +
	       s->query->run_ns;
}

/* Order of the heap: higher bounds first, then nearer nodes, then those nearer
 * the root, then lower addresses. */
static bool entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
	if (a->bound != b->bound)
		return a->bound > b->bound;
	if (a->spent_ns != b->spent_ns)
		return a->spent_ns < b->spent_ns;
	if (a->level != b->level)
		return a->level < b->level;
	return a->index < b->index;
}

static void heap_put(struct gap_search_state *s, const struct heap_entry *entry)
{
	unsigned i = s->heap_n, up;

	if (i == HEAP_MAX) {
		s->plan->complete = false;
		return;
	}
	s->heap_n++;
	for (; i; i = up) {
		up = (i - 1) / 2;
		if (!entry_before(entry, &s->heap[up]))
			break;
		s->heap[i] = s->heap[up];
	}
	s->heap[i] = *entry;
}

static struct heap_entry heap_take(struct gap_search_state *s)
{
	struct heap_entry top = s->heap[0], last = s->heap[--s->heap_n];
	unsigned i = 0, down;

	for (; (down = 2 * i + 1) < s->heap_n; i = down) {
		if (down + 1 < s->heap_n &&
		    entry_before(&s->heap[down + 1], &s->heap[down]))
			down++;
		if (!entry_before(&s->heap[down], &last))
			break;
		s->heap[i] = s->heap[down];
	}
	s->heap[i] = last;
	return top;
}

static void node_put(struct gap_search_state *s, unsigned level, uint64_t index)
{
	struct heap_entry entry = { .level = level, .index = index };
	struct freeblock_set_node node;

	s->plan->steps++;
	if (!freeblock_set_node(s->wanted, level, index, &node))
		return;
	entry.bound = node_bound(s, &node, &entry.spent_ns);
	if (entry.bound > s->plan->worth_ns)
		heap_put(s, &entry);
}

/* A third track from in_ns to out_ns, and what is left of the gap before and
 * after it. */
static void try_between(struct gap_search_state *s,
			const struct geom_track *track,
			const struct gap_pass *pass, uint64_t to_ns)
{
	struct gap_pass first = { 0 };

	if (!pass->n)
		return;
	s->plan->steps++;
	if (s->ends_ns)
		pass_source(s, pass->extent[0].begin_ns - to_ns - s->lead_ns,
			    &first);
	try_rest(s, track, &first, pass);
}

static void try_track(struct gap_search_state *s,
		      const struct geom_track *track)
{
	uint64_t to = gap_move_ns(s, &s->source, track, false);
	uint64_t on = gap_move_ns(s, track, &s->target, s->query->target.write);
	uint64_t in = s->free_ns + to + s->head_state->read_guard_ns, out;
	struct gap_pass pass;

	if (in + on >= s->leave_ns ||
	    gap_units_in(s, s->leave_ns - on - in, track) *
				    gap_unit_ns(s, track) +
			    s->query->run_ns <= s->plan->worth_ns)
		return;
	out = s->leave_ns - on;
	s->plan->steps += TRACK_STEPS;
	pass_over(s, track, in, out, &pass);
	if (pass.worth_ns + s->ends_ns > s->plan->worth_ns)
		try_between(s, track, &pass, to);
}

static void search_leaf(struct gap_search_state *s, uint64_t leaf)
{
	uint64_t bits = freeblock_set_tracks(s->wanted, leaf);
	struct geom_track track;

	for (; bits; bits &= bits - 1) {
		uint64_t index = leaf * FREEBLOCK_SET_LEAF_TRACKS +
				 (unsigned)__builtin_ctzll(bits);

		if (s->plan->steps >= s->query->steps) {
			s->plan->complete = false;
			return;
		}
		s->plan->steps++;
		if (index == s->source.index || index == s->target.index)
			continue;
		geom_track_at(s->head_state->geom, index, &track);
		if (freeblock_set_on(s->wanted, &track) *
				    gap_unit_ns(s, &track) +
			    s->ends_ns + s->query->run_ns > s->plan->worth_ns)
			try_track(s, &track);
	}
}

static void search_others(struct gap_search_state *s)
{
	unsigned level = freeblock_set_levels(s->wanted) - 1;
	struct heap_entry entry;
	uint64_t i, end;

	node_put(s, level, 0);
	while (s->heap_n) {
		entry = heap_take(s);
		if (entry.bound <= s->plan->worth_ns)
			return;
		if (s->plan->steps >= s->query->steps) {
			s->plan->complete = false;
			return;
		}
		if (!entry.level) {
			search_leaf(s, entry.index);
			continue;
		}
		i = entry.index * FREEBLOCK_SET_FANOUT;
		end = i + FREEBLOCK_SET_FANOUT;
		if (end > freeblock_set_nodes(s->wanted, entry.level - 1))
			end = freeblock_set_nodes(s->wanted, entry.level - 1);
		for (; i < end; i++)
			node_put(s, entry.level - 1, i);
	}
}

/* ---- sectors that are not on their track ---- */

/* Tries a unit with a remapped sector by itself. */
static void try_alone(struct gap_search_state *s, uint64_t first)
{
	uint32_t unit = freeblock_set_unit(s->wanted);
	struct service_head head = s->head_state->head;
	struct service_request req = { .lbn = first, .sectors = unit };
	struct geom_track track;
	struct gap_pass pass = { .n = 1 };
	const struct gap_pass *one[] = { &pass };
	struct service service;

	s->plan->steps += TRACK_STEPS;
	geom_track_of(s->head_state->geom, first, &track);
	head.at_ns = s->free_ns + s->head_state->read_guard_ns;
	service_estimate(s->head_state->geom, s->head_state->mech, &head, &req,
			 &service);
	if (service.head.at_ns + s->lead_ns +
		    service_move_ns(s->head_state->mech, &service.head,
				    s->target.cylinder, s->target.surface,
				    s->query->target.write) > s->leave_ns)
		return;
	pass.extent[0] = (struct gap_extent){
		.sector = first,
		.sectors = unit,
		.begin_ns = service.media_ns,
		.end_ns = service.head.at_ns,
		.units = 1,
	};
	pass.worth_ns = pass.extent[0].worth_ns =
		gap_unit_ns(s, &track) + s->query->run_ns;
	plan_offer(s, one, 1);
}

/* Looks at some remapped sectors, which all other plans leave out.  They lie
 * anywhere, so it is left to chance which. */
static void search_moved(struct gap_search_state *s)
{
	uint64_t at = s->query->target.lbn * MOVED_HASH %
		      geom_sectors(s->head_state->geom), moved, end;
	uint32_t unit = freeblock_set_unit(s->wanted), n;
	unsigned looks = MOVED_LOOKS, tries = MOVED_TRIES;
	struct range r;

	while (looks-- && tries &&
	       (geom_remap_next(s->head_state->geom, at, &moved, &n) ||
		geom_remap_next(s->head_state->geom, at = 0, &moved, &n))) {
		end = moved + n;
		if (moved < at)
			moved = at;
		moved -= moved % unit;
		at = moved + unit;
		if (end > at)
			end = at;
		if (!freeblock_set_next(s->wanted, moved, &r) || r.first >= end)
			continue;
		try_alone(s, moved);
		tries--;
	}
}

/* ---- the interface ---- */

/* Time between a request's first and last sector, on one track. */
static uint64_t target_length_ns(const struct head_state *head_state,
				 const struct service_request *req)
{
	struct geom_place a, b;
	struct geom_track track;

	geom_track_of(head_state->geom, req->lbn, &track);
	if (req->lbn + req->sectors > track.first + track.sectors)
		return head_state->mech->period_ps / 1000;
	geom_place_of(head_state->geom, req->lbn, &a);
	geom_place_of(head_state->geom, req->lbn + req->sectors - 1, &b);
	return service_turn_ns(head_state->mech, (uint64_t)(angle)(b.start -
							       a.start) +
						     track.per_sector);
}

void gap_measure(const struct gap_query *query, struct gap_plan *plan)
{
	const struct head_state *head_state = query->head_state;
	struct service_head head = head_state->head;
	struct geom_place place;
	uint64_t there_ns, wait_ns, over_ns;
	uint64_t guard_ns = query->target.write ? head_state->write_guard_ns :
						  head_state->read_guard_ns;
	uint64_t early_ns = query->target.write ? head_state->write_early_ns :
						  head_state->read_early_ns;
	struct service service;

	*plan = (struct gap_plan){ .complete = true };
	head.at_ns = head_state_start_ns(head_state, query->target.write);
	service_estimate(head_state->geom, head_state->mech, &head,
			 &query->target, &service);
	geom_place_of(head_state->geom, query->target.lbn, &place);
	there_ns = head.at_ns + service_move_ns(head_state->mech, &head,
						place.cylinder, place.surface,
						query->target.write);
	plan->target_ns = service.media_ns;
	plan->over_ns = service.bus_ns;
	plan->rotation_ns = service.rotation_ns;
	/* The head meets it inside, where the drive just goes on: there is no
	 * gap.  But if that is so near its end that it is not reliable, it may
	 * as well begin at its beginning. */
	wait_ns = service_wait_ns(head_state->mech, there_ns, place.start);
	over_ns = there_ns + wait_ns + target_length_ns(head_state,
							&query->target);
	if (service.media_ns - there_ns + ROUND_IN_NS >= wait_ns)
		plan->gap_ns = service.media_ns - there_ns;
	else if (over_ns <= service.head.at_ns + guard_ns) {
		plan->gap_ns = wait_ns;
		plan->target_ns = there_ns + wait_ns;
	}
	/* A command handed over at once may still meet the target a turn
	 * earlier. */
	if (plan->gap_ns + early_ns > head_state->mech->period_ps / 1000)
		plan->gap_ns = 0;
}

/* Finds where the head is; false: unknown, as after a remapped sector. */
static bool find_source(struct gap_search_state *s)
{
	const struct service_head *head = &s->head_state->head;

	if (s->head_state->head_lbn >= geom_sectors(s->head_state->geom))
		return false;
	geom_track_of(s->head_state->geom, s->head_state->head_lbn, &s->source);
	return s->source.cylinder == head->cylinder &&
	       s->source.surface == head->surface;
}

void gap_search(const struct gap_query *query,
		const struct freeblock_set *wanted, struct gap_plan *plan)
{
	const struct head_state *head_state = query->head_state;
	uint64_t guard_ns = query->target.write
				    ? head_state->write_next_guard_ns
				    : head_state->read_next_guard_ns;
	struct gap_search_state s = {
		.query = query,
		.head_state = head_state,
		.wanted = wanted,
		.plan = plan,
		.turn_ns = head_state->mech->period_ps / 1000,
	};

	gap_measure(query, plan);
	geom_track_of(head_state->geom, query->target.lbn, &s.target);
	s.free_ns = head_state_start_ns(head_state, false);
	s.lead_ns = head_state->read_next_guard_ns + query->handover_ns;
	s.leave_ns = plan->target_ns - guard_ns - query->handover_ns;
	if (!head_state->reads || !plan->gap_ns || !s.target.known ||
	    !freeblock_set_sectors(wanted) || !find_source(&s) ||
	    s.leave_ns <= s.free_ns)
		return;
	search_ends(&s);
	low_fill(&s);
	search_others(&s);
	search_moved(&s);
}
