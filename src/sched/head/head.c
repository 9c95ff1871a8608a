/*
 * head.c - predicts where the head of the drive is, and how well.
 *
 * The accesses at the disk are a short list in the order in which they were
 * handed over.  While each begins where the one before it ends, the movement of
 * the head is predicted (access->predicted); when the oldest ends, the others
 * are predicted anew from what really happened.
 *
 * A completion tells two things.  Modulo a revolution: when the last sector
 * passed, and so the phase (spindle.h).  In whole revolutions: whether the head
 * was there in time, and so seeks and overheads (seek_learn.h).
 */
#include "sched/head/head.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sched/head/accuracy.h"
#include "sched/head/head_internal.h"
#include "sched/head/remap_detect.h"
#include "sched/head/seek_learn.h"
#include "sched/head/spindle.h"

/* Predictions are judged only when the standard deviation of the phase is below
 * this (revolutions) and it rests on this many readings. */
#define SIGMA_JUDGED 0.02
#define OBSERVED_JUDGED 8u
/* The profile is updated with learned values only after this many
 * predictions. */
#define LEARNED_ENOUGH 500u
/* A reference read is made for its time only.  It is made when the standard
 * deviation of the phase exceeds SIGMA_WANTED (revolutions) and, while reads
 * are predicted, what one such read can improve, WANTED_OF_NOISE of the noise
 * of readings, and REFERENCE_ACCESSES accesses have not told the phase (one,
 * while nothing is predicted).  One is granted each REFERENCE_NS, and up to
 * REFERENCE_SAVED are saved up: 4 s of reading an hour. */
#define SIGMA_WANTED 0.0025
#define WANTED_OF_NOISE 0.5
#define REFERENCE_ACCESSES 4u
/* No reference read is made later than this after the last access, so that an
 * idle disk may stop. */
#define REFERENCE_BUSY_NS NS_PER_SECOND
/* A reference read is at most this many tracks away, where the drive's
 * read-ahead has not been. */
#define REFERENCE_TRACKS 64u
/* An access that goes on where the last one ended, on the same track, may begin
 * 1/256 of a revolution early: a small move of the phase is no missed turn. */
#define SAME_TRACK 256u
/* Range writes are placed by the head up to PLACES_OFF percent of wrong
 * predictions, and again from PLACES_ON percent down. */
#define PLACES_ON 40u
#define PLACES_OFF 50u
/* A volatile cache counts as writing through when at most THROUGH_ON percent of
 * the writes complete at other times than writes to the medium, until more than
 * THROUGH_OFF percent do. */
/* Percent of the writes of a trial that may be predicted wrongly.  In a trial
 * each is handed over to an idle drive, so a late host makes them wrong that
 * would not be so late otherwise. */
#define TRIAL_ON 12u
#define THROUGH_ON 5u
#define THROUGH_OFF 10u
/* After this many cache hits in a row requests are not ordered by the head. */
#define CACHED_RUN 8u

void head_set_mode(struct head *head, enum head_mode mode)
{
	head->mode = mode;
	head->accesses = 0;
	head->odd_run = head->lost_run = 0;
	head->trial_busy_ns = 0;
	head->observed_before = head->spindle.observed;
	head->outliers_before = head->spindle.outliers;
}

/* ---- making ---- */

static bool options_known(const struct head_options *options)
{
	const struct service_mech *mech = options->mech;

	return mech && mech->period_ps && mech->seek_n &&
	       geom_known(options->geom);
}

static int head_copy_mech(struct head *head, const struct head_options *options)
{
	size_t bytes = options->mech->seek_n * sizeof(*head->mech.seek);

	head->mech = *options->mech;
	head->mech.phase_ns = 0;
	head->mech.phase = 0;
	head->mech.seek = malloc(bytes);
	if (!head->mech.seek)
		return -ENOMEM;
	memcpy(head->mech.seek, options->mech->seek, bytes);
	return seek_learn_init(&head->learn, &head->mech,
			  options->read_overhead_ns,
			  options->write_overhead_ns);
}

int head_open(struct env *env, const struct head_options *options,
	      struct head **out)
{
	struct head *head = calloc(1, sizeof(*head));
	int err = 0;

	if (!head)
		return -ENOMEM;
	head->env = env;
	head->geom = options->geom;
	head->hit_overhead_ns = options->hit_overhead_ns;
	head->read_ahead_sectors = options->read_ahead_sectors;
	head->physical_sectors = options->physical_sectors ?
					 options->physical_sectors : 1;
	head->known = options_known(options);
	head->places = (struct accuracy){
		.on = true, .on_percent = PLACES_ON, .off_percent = PLACES_OFF,
	};
	head->trial_writes = (struct accuracy){ .on_percent = TRIAL_ON };
	head->through = (struct accuracy){
		.on_percent = THROUGH_ON, .off_percent = THROUGH_OFF,
	};
	head->saved_ns = REFERENCE_SAVED * REFERENCE_NS;
	head->saved_at_ns = env_now_ns(env);
	if (head->known) {
		err = head_copy_mech(head, options);
		spindle_init(&head->spindle, &head->mech);
		head->mode = HEAD_TRIAL;
	}
	if (err) {
		head_close(head);
		return err;
	}
	*out = head;
	return 0;
}

void head_close(struct head *head)
{
	if (!head)
		return;
	seek_learn_fini(&head->learn);
	free(head->mech.seek);
	free(head);
}

void head_set_geom(struct head *head, const struct geom *geom)
{
	int kind;

	head->geom = geom;
	head->remap_detect = (struct remap_detect){ .next = 0 };
	head->grown = 0;
	if (!head->known)
		return;
	seek_learn_forget(&head->learn);
	head->have_sure = false;
	seek_learn_apply(&head->learn, &head->mech);
	for (kind = 0; kind < SEEK_LEARN_KINDS; kind++) {
		accuracy_clear(&head->accuracy[kind]);
		head->accuracy[kind].on = false;
	}
	head_set_mode(head, HEAD_TRIAL);
}

bool head_is_known(const struct head *head)
{
	return head->known;
}

const struct geom *head_geom(const struct head *head)
{
	return head->geom;
}

/* ---- small things ---- */

uint64_t head_period_ns(const struct head *head)
{
	return head->mech.period_ps / 1000;
}

uint64_t head_guard_ns(const struct head *head,
		       enum seek_learn_kind kind,
		       enum seek_learn_when when)
{
	return seek_learn_guard_ns(&head->learn, kind, when,
				   head_period_ns(head));
}

/* The guard of a command that is decoded this long before the head is free: it
 * does not suffer from all of the host's lateness.  The guard of a busy drive
 * tells nothing of an idle one, least of all before it was measured. */
static uint64_t guard_ahead_ns(uint64_t idle_ns, uint64_t busy_ns,
			       uint64_t ahead_ns)
{
	if (!ahead_ns)
		return idle_ns;
	idle_ns -= ahead_ns < idle_ns ? ahead_ns : idle_ns;
	return idle_ns > busy_ns ? idle_ns : busy_ns;
}

uint64_t head_guard_ahead_ns(const struct head *head, enum seek_learn_kind kind,
			     uint64_t ahead_ns)
{
	return guard_ahead_ns(head_guard_ns(head, kind, SEEK_LEARN_IDLE),
			      head_guard_ns(head, kind, SEEK_LEARN_BUSY),
			      ahead_ns);
}

uint64_t head_place_guard_ns(const struct head *head, uint64_t ahead_ns)
{
	return guard_ahead_ns(seek_learn_place_ns(&head->learn,
						  head_period_ns(head)),
			      head_guard_ns(head, SEEK_LEARN_WRITE,
					    SEEK_LEARN_BUSY),
			      ahead_ns);
}

static bool head_chain_known(const struct head *head)
{
	return head->outstanding <= CHAIN_MAX &&
	       (!head->outstanding ||
		head->chain[head->outstanding - 1]->predicted);
}

/* The predicted state of the head when everything outstanding is done. */
static const struct service_head *head_behind(const struct head *head)
{
	if (!head->outstanding || !head_chain_known(head))
		return &head->at;
	return &head->chain[head->outstanding - 1]->expected.head;
}

bool head_phase_is_known(const struct head *head, uint64_t at_ns)
{
	return head->spindle.observed >= OBSERVED_JUDGED &&
	       spindle_sigma(&head->spindle, &head->mech, at_ns) < SIGMA_JUDGED;
}

/* After a rest the first read shows the phase again. */
static bool head_predicts_at(const struct head *head, uint64_t now_ns)
{
	return head->known && head->accuracy[SEEK_LEARN_READ].on &&
	       head_phase_is_known(head, now_ns);
}

bool head_predicts(const struct head *head)
{
	return head_predicts_at(head, env_now_ns(head->env));
}

/* ---- prediction ---- */

uint64_t head_read_end(const struct head *head, uint64_t lbn)
{
	lbn += head->physical_sectors - 1;
	return lbn - lbn % head->physical_sectors;
}

/* Behind a read up to a track's end, before `next`, a drive that reads ahead
 * may go to the next track before it serves another command.  Moves a head
 * there; false: no track begins at `next`. */
static bool head_goes_on(const struct head *head, struct service_head *at,
			 uint64_t next)
{
	return next < geom_sectors(head->geom) &&
	       service_go_on(head->geom, &head->mech, at, next);
}

/* Where the head stops behind the last access. */
struct head_rest {
	struct service_head head;
	/* The track that it may go on to, as head_goes_on has it. */
	uint64_t next;
};

/* Follows the drive's own read-ahead behind the last access. */
static void head_follow(const struct head *head, struct head_state *head_state,
			struct head_rest *rest)
{
	uint64_t until_ns = head_state->now_ns, lbn = head->last_end;
	struct service_head *at = &head_state->head;
	struct service unused = { 0 };
	uint32_t n = 0;

	*rest = (struct head_rest){ *at, UINT64_MAX };
	if (!head->last_read || !head->read_ahead_sectors ||
	    lbn >= geom_sectors(head->geom))
		return;
	if (!head->outstanding && at->at_ns < until_ns)
		n = service_stream(head->geom, &head->mech, at, lbn,
				   head->read_ahead_sectors, until_ns,
				   &unused);
	lbn += n;
	head_state->head_lbn += n;
	rest->head = *at;
	if (n < head->read_ahead_sectors)
		rest->next = head_read_end(head, lbn);
	if (head->goes_on && head_goes_on(head, at, rest->next))
		head_state->head_lbn = rest->next;
}

static void head_state_guards(const struct head *head,
			      struct head_state *head_state)
{
	const struct seek_learn *learn = &head->learn;
	uint64_t turn_ns = head_period_ns(head), ahead_ns[SEEK_LEARN_KINDS];
	uint64_t *guard_ns[] = { &head_state->read_guard_ns,
				 &head_state->write_guard_ns };
	uint64_t *next_ns[] = { &head_state->read_next_guard_ns,
				&head_state->write_next_guard_ns };
	uint64_t *likely_ns[] = { &head_state->read_likely_ns,
				  &head_state->write_likely_ns };
	uint64_t *early_ns[] = { &head_state->read_early_ns,
				 &head_state->write_early_ns };
	int kind;

	ahead_ns[SEEK_LEARN_READ] =
		head_state->now_ns + head_state->read_overhead_ns;
	ahead_ns[SEEK_LEARN_WRITE] =
		head_state->now_ns + head_state->write_overhead_ns;
	for (kind = 0; kind < SEEK_LEARN_KINDS; kind++) {
		uint64_t ahead = head_state->head.at_ns > ahead_ns[kind] ?
			head_state->head.at_ns - ahead_ns[kind] : 0;

		*next_ns[kind] = seek_learn_guard_ns(learn, kind,
						     SEEK_LEARN_BUSY, turn_ns);
		*guard_ns[kind] = head_guard_ahead_ns(head, kind, ahead);
		*likely_ns[kind] = guard_ahead_ns(
			seek_learn_likely_ns(learn, kind, SEEK_LEARN_IDLE,
					     turn_ns),
			seek_learn_likely_ns(learn, kind, SEEK_LEARN_BUSY,
					     turn_ns),
			ahead);
		*early_ns[kind] = seek_learn_early_ns(learn, kind, turn_ns);
	}
	head_state->place_guard_ns = head_place_guard_ns(head,
		head_state->head.at_ns > ahead_ns[SEEK_LEARN_WRITE] ?
			head_state->head.at_ns - ahead_ns[SEEK_LEARN_WRITE] :
			0);
	head_state->late_ns = seek_learn_guard_ns(learn, SEEK_LEARN_READ,
						  SEEK_LEARN_IDLE, turn_ns);
}

static void head_state_at(const struct head *head, uint64_t now_ns,
			  struct head_state *head_state, struct head_rest *rest)
{
	*head_state = (struct head_state){
		.now_ns = now_ns,
		.stream_lbn = UINT64_MAX,
		.geom = head->geom,
		.mech = &head->mech,
		.goes_on_sectors = head->goes_on ? head->read_ahead_sectors : 0,
		.physical_sectors = head->physical_sectors,
	};
	*rest = (struct head_rest){ .next = UINT64_MAX };
	if (!head->known)
		return;
	head_state->reads = head_predicts_at(head, now_ns);
	head_state->writes =
		head_state->reads && head->accuracy[SEEK_LEARN_WRITE].on;
	head_state->stays = now_ns >= head->destage_ns ? !head->away :
		head->destaging[head->away ? HEAD_TIME_AWAY :
					     HEAD_TIME_BUSY].on;
	head_state->places = head->places.on &&
			     head_phase_is_known(head, now_ns) &&
			     head_chain_known(head);
	head_state->head = *head_behind(head);
	head_state->head_lbn = head->last_end - 1;
	head_follow(head, head_state, rest);
	head_state->read_overhead_ns =
		seek_learn_overhead_ns(&head->learn, SEEK_LEARN_READ);
	head_state->write_overhead_ns =
		seek_learn_overhead_ns(&head->learn, SEEK_LEARN_WRITE);
	head_state_guards(head, head_state);
	if (head->last_read &&
	    (head->read_ahead_sectors ||
	     head_state_start_ns(head_state, false) >= now_ns +
			head_state->read_overhead_ns + head_state->late_ns))
		head_state->stream_lbn = head->last_end;
}

void head_get_state(const struct head *head, struct head_state *head_state)
{
	struct head_rest rest;

	head_state_at(head, env_now_ns(head->env), head_state, &rest);
}

static bool head_knows(const struct head *head,
		       const struct head_access *access)
{
	struct geom_track first, last;

	geom_track_of(head->geom, access->lbn, &first);
	if (access->lbn + access->sectors <= first.first + first.sectors)
		return first.known;
	geom_track_of(head->geom, access->lbn + access->sectors - 1, &last);
	return first.known && last.known;
}

void head_expect(const struct head *head, struct head_access *access,
		 const struct service_head *from)
{
	enum seek_learn_kind kind =
		access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ;
	struct service_request req = {
		.write = access->write,
		.lbn = access->lbn,
		.sectors = access->sectors,
	};
	struct service_head at = *from;
	struct geom_place place;
	uint64_t decoded_ns = access->handed_ns +
			      seek_learn_overhead_ns(&head->learn, kind);

	if (at.at_ns < decoded_ns)
		at.at_ns = decoded_ns;
	access->busy = at.at_ns > decoded_ns;
	access->ahead_ns = at.at_ns - decoded_ns;
	access->begin_ns = at.at_ns;
	geom_place_of(head->geom, access->lbn, &place);
	access->cylinders = place.cylinder > at.cylinder ?
		place.cylinder - at.cylinder : at.cylinder - place.cylinder;
	access->switched = place.surface != at.surface;
	access->unknown = !head_knows(head, access);
	/* In time and on the same track: an access that begins right where the
	 * last one has ended is met, however finely the phase has moved
	 * since. */
	if (!access->cylinders && !access->switched && at.at_ns > decoded_ns)
		at.at_ns -= head_period_ns(head) / SAME_TRACK;
	service_estimate(head->geom, &head->mech, &at, &req, &access->expected);
	access->arrive_ns = at.at_ns + service_move_ns(&head->mech, &at,
			place.cylinder, place.surface, access->write);
}

bool head_may_have(const struct head *head, uint64_t lbn)
{
	unsigned i;

	for (i = 0; i < READS_KEPT; i++)
		if (lbn - head->read_ends[i] <= head->read_ahead_sectors)
			return true;
	return false;
}

void head_expect_behind(const struct head *head, struct head_access *access,
			const struct service_head *from, uint64_t next)
{
	struct service_head there = *from;
	uint64_t bus_ns;

	access->went_on = !access->streams && head_goes_on(head, &there, next);
	access->gone_on_ns = 0;
	head_expect(head, access, from);
	if (!access->went_on)
		return;
	bus_ns = access->expected.bus_ns;
	head_expect(head, access, &there);
	if (access->expected.bus_ns > bus_ns + head_period_ns(head) / 2)
		access->gone_on_ns = access->expected.bus_ns;
	if (!head->goes_on)
		head_expect(head, access, from);
}

void head_begin(struct head *head, struct head_access *access, uint64_t now_ns)
{
	struct head_state head_state;
	struct head_rest rest;

	access->handed_ns = head->last_ns = now_ns;
	access->predicted = access->went_on = false;
	access->gone_on_ns = 0;
	head->at_drive++;
	access->aside = access->write && access->cached && !head->through.on &&
			head_takes_writes(head);
	if (access->aside)
		return;
	access->streams = !access->write && head->last_read &&
		access->lbn >= head->last_end &&
		access->lbn - head->last_end <= head->read_ahead_sectors;
	access->follows = !access->write && head_may_have(head, access->lbn);
	if (!access->write)
		head->read_ends[head->reads++ % READS_KEPT] =
			access->lbn + access->sectors;
	access->destages = now_ns < head->destage_ns;
	access->away = head->away && !head->outstanding;
	access->unsure = (head->unsure && !access->streams) ||
			 (access->away && !access->destages);
	head->unsure = access->streams;
	head->accesses++;
	head->lost_run =
		head_phase_is_known(head, now_ns) ? 0 : head->lost_run + 1;
	if (head->known && head->outstanding < CHAIN_MAX &&
	    head_chain_known(head)) {
		head_state_at(head, now_ns, &head_state, &rest);
		head_expect_behind(head, access, &rest.head, rest.next);
		access->predicted = true;
	}
	if (head->outstanding < CHAIN_MAX)
		head->chain[head->outstanding] = access;
	head->outstanding++;
	head->last_end = access->lbn + access->sectors;
	head->last_read = !access->write;
}

void head_learn_reads(struct head *head, const struct head_past_read *reads,
		      size_t n)
{
	struct head_access access;
	size_t i;

	for (i = 0; i < n; i++) {
		access = (struct head_access){
			.lbn = reads[i].lbn,
			.sectors = reads[i].sectors,
		};
		head_begin(head, &access, reads[i].handed_ns);
		head_end(head, &access, reads[i].complete_ns, 0);
	}
}

void head_flushed(struct head *head)
{
	head->destage_ns = 0;
}

bool head_destages(const struct head *head)
{
	return env_now_ns(head->env) < head->destage_ns;
}

uint64_t head_busy_until_ns(const struct head *head)
{
	return head->outstanding && head_chain_known(head) ?
		       head_behind(head)->at_ns : 0;
}

uint64_t head_begun_ns(const struct head *head)
{
	return head->outstanding && head_chain_known(head) ?
		       head->chain[head->outstanding - 1]->begin_ns : 0;
}

uint64_t head_ahead_ns(const struct head *head)
{
	return head->outstanding && head_chain_known(head) ?
		       head->chain[head->outstanding - 1]->ahead_ns : 0;
}

uint64_t head_media_ns(const struct head *head)
{
	return head->outstanding && head_chain_known(head) ?
		       head->chain[head->outstanding - 1]->expected.media_ns :
		       0;
}

bool head_is_beside(const struct head *head, uint64_t lbn, uint32_t sectors)
{
	const struct head_access *last;

	if (!head->outstanding || !head_chain_known(head))
		return false;
	last = head->chain[head->outstanding - 1];
	return last->lbn == lbn + sectors || last->lbn + last->sectors == lbn;
}

bool head_get_learned(const struct head *head, struct head_learned *learned)
{
	const struct head_kind_stats *kind = head->kind;

	if (!head->known || head->mode != HEAD_ON ||
	    kind[SEEK_LEARN_READ].predictions < LEARNED_ENOUGH)
		return false;
	*learned = (struct head_learned){
		.mech = &head->mech,
		.writes = head->accuracy[SEEK_LEARN_WRITE].on &&
			  !head->writes_trusted &&
			  kind[SEEK_LEARN_WRITE].predictions >= LEARNED_ENOUGH,
		.read_overhead_ns = seek_learn_overhead_ns(&head->learn,
						      SEEK_LEARN_READ),
		.write_overhead_ns = seek_learn_overhead_ns(&head->learn,
						       SEEK_LEARN_WRITE),
	};
	return true;
}

bool head_is_cached(const struct head *head)
{
	return head->hits_run >= CACHED_RUN;
}

enum head_mode head_mode(const struct head *head)
{
	return head->mode;
}

/* ---- reference reads ---- */

/* Has enough time been saved up for a reference read? */
static bool reference_afford(struct head *head, uint64_t now_ns)
{
	head->saved_ns += now_ns - head->saved_at_ns;
	head->saved_at_ns = now_ns;
	if (head->saved_ns > REFERENCE_SAVED * REFERENCE_NS)
		head->saved_ns = REFERENCE_SAVED * REFERENCE_NS;
	if (head->saved_ns < REFERENCE_NS)
		return false;
	head->saved_ns -= REFERENCE_NS;
	return true;
}

/* Returns a sector on another track near the head, so chosen that no cache can
 * have it. */
static uint64_t reference_sector(struct head *head)
{
	uint64_t tracks = geom_tracks(head->geom), index, seed;
	struct geom_track track;

	seed = head->reference_seed * UINT64_C(6364136223846793005) +
	       UINT64_C(1442695040888963407);
	head->reference_seed = seed;
	geom_track_of(head->geom, head->last_end ? head->last_end - 1 : 0,
		      &track);
	index = track.index + 1 + (seed >> 33) % REFERENCE_TRACKS;
	if (index >= tracks)
		index = (seed >> 33) % tracks;
	geom_track_at(head->geom, index, &track);
	return track.first + (seed >> 20) % track.sectors;
}

static bool reference_improves(const struct head *head, uint64_t now_ns)
{
	double wanted = SIGMA_WANTED;

	/* While nothing is predicted the noise may be a wrong phase. */
	if (head->mode == HEAD_ON)
		wanted = fmax(wanted, WANTED_OF_NOISE * head->spindle.noise);
	return spindle_sigma(&head->spindle, &head->mech, now_ns) >= wanted;
}

bool head_wants_reference(struct head *head, uint64_t *sector)
{
	uint64_t now_ns = env_now_ns(head->env);
	bool off = head->mode == HEAD_OFF;
	bool known = head_phase_is_known(head, now_ns);
	bool judged = known && (off ? head->places.on
				    : head->accuracy[SEEK_LEARN_READ].on);
	/* The last reading contradicts the phase: it is late by chance, or the
	 * phase is wrong. */
	bool sure = judged && !head->spindle.outliers_run;

	if (!head->known || (off && !judged) ||
	    head->alone < REFERENCE_ACCESSES ||
	    head->silent < (sure || (known && head->places.on) ?
				    REFERENCE_ACCESSES : 1) ||
	    now_ns > head->last_ns + REFERENCE_BUSY_NS ||
	    (sure && now_ns - head->predicted_ns < REFERENCE_NS &&
	     !reference_improves(head, now_ns)) ||
	    !reference_afford(head, now_ns))
		return false;
	*sector = head->reference = reference_sector(head);
	head->silent = 0;
	head->references++;
	return true;
}

static void head_fill_kind(const struct head *head, enum seek_learn_kind kind,
			   struct head_kind_stats *stats)
{
	*stats = head->kind[kind];
	if (!head->known)
		return;
	stats->on = head->accuracy[kind].on;
	stats->overhead_ns = seek_learn_overhead_ns(&head->learn, kind);
}

void head_get_stats(const struct head *head, struct head_stats *stats)
{
	*stats = (struct head_stats){
		.mode = head->mode,
		.period_ps = head->mech.period_ps,
		.observed = head->spindle.observed,
		.outliers = head->spindle.outliers,
		.references = head->references,
	};
	head_fill_kind(head, SEEK_LEARN_READ, &stats->read);
	head_fill_kind(head, SEEK_LEARN_WRITE, &stats->write);
}
