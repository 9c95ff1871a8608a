/*
 * node_slots.c - node tracks and their slots.
 *
 * Each slot has two bits.  `tree`: the running tree uses it; a cut saves these
 * bits.  `busy`: it may not be taken, because the running tree uses it, or a
 * root that is still needed does.  A slot of the tree is always busy.
 *
 * A node goes next to its neighbour: to the next free slot of the same track,
 * in address order; if that track is full, to the nearest track that is not.
 * Its mirror goes behind the mirror that was placed last.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "space/space_internal.h"

#define WORD_BITS 64u

static size_t track_words(uint32_t slots)
{
	return (slots + WORD_BITS - 1) / WORD_BITS;
}

static uint64_t track_end(const struct node_track *t)
{
	return t->addr + (uint64_t)t->slots * TRAX_NODE_SECTORS;
}

static bool bit_get(const uint64_t *map, uint32_t i)
{
	return map[i / WORD_BITS] >> i % WORD_BITS & 1;
}

static void bit_set(uint64_t *map, uint32_t i)
{
	map[i / WORD_BITS] |= (uint64_t)1 << i % WORD_BITS;
}

static void bit_clear(uint64_t *map, uint32_t i)
{
	map[i / WORD_BITS] &= ~((uint64_t)1 << i % WORD_BITS);
}

/* ---- The table of tracks ------------------------------------------------- */

/* Number of tracks that begin at or before addr. */
static size_t tracks_upto(const struct space *s, uint64_t addr)
{
	size_t low = 0, high = s->tracks;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (s->track[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The track and slot that begin at addr; NULL: none does. */
static struct node_track *slot_find(const struct space *s, traxaddr addr,
				    uint32_t *slot)
{
	const size_t i = tracks_upto(s, addr);
	struct node_track *t = i ? &s->track[i - 1] : NULL;

	if (!t || addr >= track_end(t) ||
	    (addr - t->addr) % TRAX_NODE_SECTORS)
		return NULL;
	*slot = (uint32_t)((addr - t->addr) / TRAX_NODE_SECTORS);
	return t;
}

static int tracks_grow(struct space *s)
{
	const size_t room = s->tracks_room ? 2 * s->tracks_room : 16;
	struct node_track *more;

	if (s->tracks < s->tracks_room)
		return 0;
	more = realloc(s->track, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->track = more;
	s->tracks_room = room;
	return 0;
}

int space_reserve_track(struct space *s, uint64_t slots)
{
	const size_t words = track_words((uint32_t)slots);

	if (s->spare_words < words) {
		free(s->spare_busy);
		s->spare_busy = malloc(2 * words * sizeof(*s->spare_busy));
		s->spare_words = s->spare_busy ? words : 0;
	}
	return s->spare_busy ? tracks_grow(s) : -ENOMEM;
}

/* Allocates the bits of a track; if there is no memory it uses what was
 * reserved. */
static uint64_t *track_bits(struct space *s, size_t words)
{
	uint64_t *bits = calloc(2 * words, sizeof(*bits));

	if (bits || s->spare_words < words)
		return bits;
	bits = s->spare_busy;
	s->spare_busy = NULL;
	s->spare_words = 0;
	memset(bits, 0, 2 * words * sizeof(*bits));
	return bits;
}

static int track_init(struct space *s, struct node_track *t, uint64_t addr,
		      uint32_t slots)
{
	const size_t words = track_words(slots);

	*t = (struct node_track){ .addr = addr, .slots = slots };
	t->busy = track_bits(s, words);
	if (!t->busy)
		return -ENOMEM;
	t->tree = t->busy + words;
	for (uint32_t i = slots; i < words * WORD_BITS; i++)
		bit_set(t->busy, i);
	return 0;
}

int slots_add_track(struct space *s, uint64_t addr, uint32_t slots)
{
	const size_t at = tracks_upto(s, addr);
	const uint64_t end = addr + (uint64_t)slots * TRAX_NODE_SECTORS;
	struct node_track t;
	int rc;

	if (!slots || slots > UINT16_MAX || end > s->sectors ||
	    (at && track_end(&s->track[at - 1]) > addr) ||
	    (at < s->tracks && s->track[at].addr < end)) {
		msg_error("node track at sector %" PRIu64 " of %u slots: "
			  "overlaps another or the end of the disk", addr,
			  slots);
		return -EUCLEAN;
	}
	rc = tracks_grow(s);
	if (!rc)
		rc = track_init(s, &t, addr, slots);
	if (rc)
		return rc;
	memmove(&s->track[at + 1], &s->track[at],
		(s->tracks - at) * sizeof(t));
	t.fresh = true;
	s->track[at] = t;
	s->tracks++;
	s->slots_total += slots;
	return 0;
}

/* Free slots of a track that count as failed. */
static uint64_t track_failed(const struct node_track *t)
{
	return t->failed && !t->leaving ? t->slots - t->busy_n : 0;
}

static void leaving_set(struct space *s, struct node_track *t, bool leaving)
{
	s->failed_free -= track_failed(t);
	t->leaving = s->leaves = leaving;
	s->failed_free += track_failed(t);
	s->leaving_free = leaving ? t->slots - t->busy_n : 0;
}

int slots_del_track(struct space *s, uint64_t addr, uint32_t slots)
{
	uint32_t slot;
	struct node_track *t = slot_find(s, addr, &slot);

	if (!t || slot || t->slots != slots || t->busy_n ||
	    (!t->leaving && space_slots_free(s) < slots)) {
		msg_error("node track at sector %" PRIu64 " cannot go: %s",
			  addr, t && !slot && t->slots == slots ?
			  "it is in use" : "there is none");
		return -EUCLEAN;
	}
	if (t->leaving)
		leaving_set(s, t, false);
	s->failed_free -= track_failed(t);
	free(t->busy);
	s->tracks--;
	memmove(t, t + 1, (size_t)(s->track + s->tracks - t) * sizeof(*t));
	s->slots_total -= slots;
	return 0;
}

void slots_clear(struct space *s)
{
	for (size_t i = 0; i < s->tracks; i++)
		free(s->track[i].busy);
	free(s->track);
	free(s->spare_busy);
	s->spare_busy = NULL;
	s->spare_words = 0;
	s->track = NULL;
	s->tracks = s->tracks_room = 0;
	s->slots_total = s->slots_busy = 0;
	s->leaving_free = s->failed_free = 0;
	s->leaves = false;
}

/* ---- Taking and freeing -------------------------------------------------- */

uint64_t space_slots_total(const struct space *s)
{
	return s->slots_total;
}

uint64_t space_slots_free(const struct space *s)
{
	return s->slots_total - s->slots_busy - s->slots_reserved -
	       s->leaving_free;
}

bool space_slots_have(struct space *s, uint64_t n)
{
	if (space_slots_free(s) < n)
		space_track_stay(s);
	return space_slots_free(s) >= n;
}

bool space_slots_reserve(struct space *s, unsigned n)
{
	if (!space_slots_have(s, n))
		return false;
	s->slots_reserved += n;
	if (s->slots_reserved > s->reserved_most)
		s->reserved_most = s->slots_reserved;
	return true;
}

void space_slots_release(struct space *s, unsigned n)
{
	assert(s->slots_reserved >= n);
	s->slots_reserved -= n;
}

static bool track_is_full(const struct node_track *t)
{
	return t->leaving || t->busy_n == t->slots;
}

void space_slot_written(struct space *s, traxaddr addr, bool good)
{
	uint32_t slot;
	struct node_track *t = slot_find(s, addr, &slot);

	if (!t)
		return;
	s->failed_free -= track_failed(t);
	t->failed = !good;
	s->failed_free += track_failed(t);
}

uint64_t space_slots_failed(const struct space *s)
{
	return s->failed_free;
}

/* Finds the nearest track to addr with a free slot, not counting `skip`; a
 * track on which a write has failed only when there is no other. */
static struct node_track *track_nearest(const struct space *s, uint64_t addr,
					const struct node_track *skip)
{
	struct node_track *failed = NULL;
	size_t above = tracks_upto(s, addr), below = above;

	for (;;) {
		struct node_track *t;

		if (!below && above == s->tracks)
			return failed;
		if (above == s->tracks ||
		    (below && addr - s->track[below - 1].addr <=
		     s->track[above].addr - addr))
			t = &s->track[--below];
		else
			t = &s->track[above++];
		if (t == skip || track_is_full(t))
			continue;
		if (!t->failed)
			return t;
		failed = failed ? failed : t;
	}
}

/* Finds the first free slot at or behind `from`, else the first of the track.
 * There is one. */
static uint32_t track_free_slot(const struct node_track *t, uint32_t from)
{
	const size_t words = track_words(t->slots);
	size_t w = from / WORD_BITS;
	uint64_t word = from < t->slots ?
		~t->busy[w] & UINT64_MAX << from % WORD_BITS : 0;

	while (!word) {
		w = w + 1 < words ? w + 1 : 0;
		word = ~t->busy[w];
	}
	return (uint32_t)(w * WORD_BITS) + (uint32_t)__builtin_ctzll(word);
}

static traxaddr slot_mark_taken(struct space *s, struct node_track *t,
				uint32_t slot)
{
	assert(s->slots_reserved);
	bit_set(t->busy, slot);
	bit_set(t->tree, slot);
	s->failed_free -= track_failed(t) > 0;
	t->busy_n++;
	s->slots_busy++;
	s->slots_reserved--;
	return t->addr + (uint64_t)slot * TRAX_NODE_SECTORS;
}

traxaddr space_slot_take(struct space *s, traxaddr near, bool apart)
{
	const traxaddr from = near ? near : s->last_slot;
	uint32_t slot = 0;
	struct node_track *own = slot_find(s, from, &slot), *t = own;
	traxaddr addr;

	if (!t || track_is_full(t) || t->failed || (apart && near))
		t = track_nearest(s, from, own);
	if (!t || (t->failed && own && !own->failed && !track_is_full(own)))
		t = own;
	assert(t && !track_is_full(t));
	slot = track_free_slot(t, t == own ? slot + 1 : 0);
	addr = slot_mark_taken(s, t, slot);
	if (!near)
		s->last_slot = addr;
	return addr;
}

/* Finds the track with the most free slots, not counting `skip`. */
static struct node_track *track_emptiest(const struct space *s,
					 const struct node_track *skip)
{
	struct node_track *best = NULL;

	for (size_t i = 0; i < s->tracks; i++) {
		struct node_track *t = &s->track[i];

		if (t == skip || track_is_full(t) ||
		    (t->failed && best && !best->failed))
			continue;
		if (!best || (best->failed && !t->failed) ||
		    t->slots - t->busy_n > best->slots - best->busy_n)
			best = t;
	}
	return best;
}

/* May mirrors go to this track?  An eighth of it stays free, so that nodes on
 * it that are changed find slots there. */
static bool track_takes_mirrors(const struct node_track *t)
{
	return !t->leaving && t->busy_n + t->slots / 8 < t->slots;
}

traxaddr space_slot_take_mirror(struct space *s, traxaddr of)
{
	uint32_t slot = 0, mine = 0;
	const struct node_track *own = slot_find(s, of, &mine);
	struct node_track *t = slot_find(s, s->last_mirror, &slot);

	if (!t || t == own || t->failed || !track_takes_mirrors(t)) {
		t = track_emptiest(s, own);
		slot = 0;
	}
	/* There is only one track with room: the mirror goes half of it
	 * away. */
	if (!t || (t->failed && own && !own->failed && !track_is_full(own))) {
		t = slot_find(s, of, &mine);
		assert(t && !track_is_full(t));
		slot = (mine + t->slots / 2) % t->slots;
	}
	s->last_mirror = slot_mark_taken(s, t, track_free_slot(t, slot));
	return s->last_mirror;
}

traxaddr space_slot_take_next(struct space *s)
{
	uint32_t slot = 0, unused;
	const struct node_track *mirrors = slot_find(s, s->last_mirror,
						     &unused);
	struct node_track *t = slot_find(s, s->last_run, &slot);

	if (!t || t == mirrors || t->failed || !track_takes_mirrors(t)) {
		t = track_emptiest(s, mirrors);
		slot = 0;
	}
	if (!t || t->failed || !track_takes_mirrors(t))
		return 0;
	s->last_run = slot_mark_taken(s, t, track_free_slot(t, slot));
	return s->last_run;
}

void space_run_begin(struct space *s)
{
	s->last_run = 0;
}

traxaddr space_slot_take_other(struct space *s, traxaddr bad,
			       traxaddr other, bool frozen)
{
	uint32_t slot = 0, unused;
	const struct node_track *of_bad = slot_find(s, bad, &slot);
	const struct node_track *of_other = slot_find(s, other, &unused);
	struct node_track *best = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < s->tracks; i++) {
		struct node_track *t = &s->track[i];
		const uint64_t away = t->addr > bad ? t->addr - bad :
						      bad - t->addr;
		/* A track with a failed write, or that of the bad slot, is
		 * worse by more than any distance. */
		const uint64_t cost =
			away + (t->failed ? s->sectors * 4 : 0) +
			(t == of_bad ? s->sectors * 2 : 0) +
			(t == of_other ? s->sectors : 0);

		if (track_is_full(t) || (frozen && t->fresh) || cost >= least)
			continue;
		best = t;
		least = cost;
	}
	if (!best)
		return 0;
	return slot_mark_taken(
		s, best, track_free_slot(best, best == of_bad ? slot + 1 : 0));
}

static void slot_unbusy(struct space *s, struct node_track *t, uint32_t slot)
{
	bit_clear(t->busy, slot);
	t->busy_n--;
	s->failed_free += t->failed && !t->leaving;
	s->slots_busy--;
	s->leaving_free += t->leaving;
}

/* False: out of memory. */
static bool pending_add_slot(struct pending *p, traxaddr addr)
{
	if (p->slots_n == p->slots_room) {
		const size_t room = p->slots_room ? 2 * p->slots_room : 64;
		traxaddr *more = realloc(p->slots, room * sizeof(*more));

		if (!more)
			return false;
		p->slots = more;
		p->slots_room = room;
	}
	p->slots[p->slots_n++] = addr;
	return true;
}

/*
 * A damaged tree may name a slot twice, or one that does not exist: that is
 * reported, and nothing is freed.  Without memory for the list the slot stays
 * busy until the next mount.
 */
void space_slot_free(struct space *s, traxaddr addr, uint64_t node_gen)
{
	uint32_t slot;
	struct node_track *t = slot_find(s, addr, &slot);

	if (!t || !bit_get(t->tree, slot)) {
		msg_error("node at sector %" PRIu64 " is freed but not in use",
			  addr);
		return;
	}
	bit_clear(t->tree, slot);
	if (node_gen == s->gen)
		slot_unbusy(s, t, slot);
	else if (!pending_add_slot(pending_running(s), addr))
		msg_warn("node slot at sector %" PRIu64 " is lost until the "
			 "next mount: out of memory", addr);
}

bool space_slot_used(const struct space *s, traxaddr addr)
{
	uint32_t slot;
	const struct node_track *t = slot_find(s, addr, &slot);

	return t && bit_get(t->tree, slot);
}

void slots_release(struct space *s, struct pending *p, size_t most)
{
	for (size_t n = 0; n < most && p->slots_n; n++) {
		uint32_t slot;
		struct node_track *t = slot_find(s, p->slots[--p->slots_n],
						 &slot);

		assert(t && bit_get(t->busy, slot) && !bit_get(t->tree, slot));
		slot_unbusy(s, t, slot);
	}
}

bool space_slots_next_track(const struct space *s, traxaddr from,
			    struct range *track)
{
	size_t i = from ? tracks_upto(s, from - 1) : 0;

	if (i == s->tracks)
		return false;
	*track = (struct range){ s->track[i].addr,
				 track_end(&s->track[i]) - s->track[i].addr };
	return true;
}

/* ---- Tracks that go back ------------------------------------------------- */

/* Slots that are needed at once come and go: their number fades by this part
 * from one look to the next. */
#define RESERVED_FADE 8u

/* Would the others do without this track?  Half of them stays free, beside what
 * has lately been reserved at a time: a new track is made when three quarters
 * are in use. */
static bool track_may_leave(const struct space *s, const struct node_track *t,
			    uint64_t least)
{
	const uint64_t others = s->slots_total - t->slots;
	const uint64_t used = s->slots_busy + s->reserved_most;

	return s->tracks > 2 && others >= least && used <= others / 2;
}

bool space_track_leave(struct space *s, uint64_t least, bool used)
{
	struct node_track *best = NULL;

	assert(!s->leaves);
	for (size_t i = 0; i < s->tracks; i++) {
		struct node_track *t = &s->track[i];

		if ((used || !t->busy_n) && track_may_leave(s, t, least) &&
		    (!best || t->busy_n < best->busy_n))
			best = t;
	}
	s->reserved_most -= s->reserved_most / RESERVED_FADE;
	if (s->reserved_most < s->slots_reserved)
		s->reserved_most = s->slots_reserved;
	if (best)
		leaving_set(s, best, true);
	return best;
}

bool space_track_leave_unused(struct space *s, traxaddr addr)
{
	uint32_t slot;
	struct node_track *t = slot_find(s, addr, &slot);

	assert(!s->leaves);
	if (!t || t->busy_n)
		return false;
	leaving_set(s, t, true);
	return true;
}

static struct node_track *track_leaving(const struct space *s)
{
	size_t i = 0;

	while (s->leaves && !s->track[i].leaving)
		i++;
	return s->leaves ? &s->track[i] : NULL;
}

bool space_track_leaves(const struct space *s, struct range *track,
			unsigned *busy)
{
	const struct node_track *t = track_leaving(s);

	if (!t)
		return false;
	*track = (struct range){ t->addr, track_end(t) - t->addr };
	*busy = t->busy_n;
	return true;
}

void space_track_stay(struct space *s)
{
	struct node_track *t = track_leaving(s);

	if (t)
		leaving_set(s, t, false);
}

bool slots_meet(const struct space *s, uint64_t addr, uint64_t n)
{
	const size_t upto = tracks_upto(s, addr + n - 1);

	return upto && track_end(&s->track[upto - 1]) > addr;
}

/* ---- The map in a root --------------------------------------------------- */

static size_t map_bytes(uint32_t slots)
{
	return (slots + 7) / 8;
}

size_t slots_map_bytes(const struct space *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->tracks; i++)
		bytes += sizeof(struct slot_track) +
			 map_bytes(s->track[i].slots);
	return bytes;
}

/* Copies whole words, as there may be millions of slots. */
static void bits_save(const struct node_track *t, uint8_t *map)
{
	const size_t bytes = map_bytes(t->slots);

	for (size_t i = 0; i < bytes; i += sizeof(le64)) {
		const le64 word = le64_put(t->tree[i / sizeof(le64)]);

		memcpy(map + i, &word, bytes - i < sizeof(word) ?
				       bytes - i : sizeof(word));
	}
}

void slots_map_save(struct space *s, uint8_t *map)
{
	size_t at = 0;

	for (size_t i = 0; i < s->tracks; i++) {
		struct node_track *t = &s->track[i];
		const struct slot_track head = {
			le64_put(t->addr), le16_put((uint16_t)t->slots),
		};

		memcpy(map + at, &head, sizeof(head));
		at += sizeof(head);
		t->fresh = false;
		t->saved_at = at;
		bits_save(t, map + at);
		at += map_bytes(t->slots);
	}
}

void space_cut_mark(const struct space *s, void *payload, traxaddr addr,
		    bool used)
{
	uint32_t slot = 0;
	const struct node_track *t = slot_find(s, addr, &slot);
	const uint8_t bit = (uint8_t)(1u << slot % 8);
	uint8_t *map;

	if (!payload || !t || t->fresh)
		return;
	map = (uint8_t *)payload + t->saved_at + slot / 8;
	*map = used ? *map | bit : *map & (uint8_t)~bit;
}

static void track_load(struct space *s, struct node_track *t,
		       const uint8_t *map)
{
	for (uint32_t k = 0; k < t->slots; k++) {
		if (!(map[k / 8] >> k % 8 & 1))
			continue;
		bit_set(t->busy, k);
		bit_set(t->tree, k);
		t->busy_n++;
		s->slots_busy++;
	}
}

int slots_map_load(struct space *s, const uint8_t *map, size_t bytes)
{
	while (bytes) {
		struct slot_track head;
		uint32_t slots;
		int rc;

		if (bytes < sizeof(head))
			return -EUCLEAN;
		memcpy(&head, map, sizeof(head));
		map += sizeof(head);
		bytes -= sizeof(head);
		slots = le16_get(head.slots);
		if (bytes < map_bytes(slots) || !slots ||
		    le64_get(head.addr) > s->sectors ||
		    tracks_upto(s, le64_get(head.addr)) != s->tracks ||
		    (slots % 8 && map[slots / 8] >> slots % 8))
			return -EUCLEAN;
		rc = slots_add_track(s, le64_get(head.addr), slots);
		if (rc)
			return rc;
		track_load(s, &s->track[s->tracks - 1], map);
		map += map_bytes(slots);
		bytes -= map_bytes(slots);
	}
	return 0;
}
