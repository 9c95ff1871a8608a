/*
 * head.c - what is believed of the drive and how well it holds.
 *
 * The accesses at the disk are a short list in the order in which they were
 * handed over.  While each begins where the one before it ends, what the head
 * does is predicted (access->predicted); when the oldest ends, the others are
 * predicted anew from what really happened.
 *
 * A completion says two things.  Modulo a revolution: when the last sector
 * passed, so the phase (spindle.h).  In whole revolutions: whether the head was
 * there in time, so seeks and overheads (seek_learn.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "sched/head/remap_detect.h"
#include "sched/head/head.h"
#include "sched/head/accuracy.h"
#include "sched/head/seek_learn.h"
#include "sched/head/spindle.h"

/* Accesses at the disk whose order can still be predicted.  With more the drive
 * is free to reorder them. */
#define CHAIN_MAX 5u
/* Percent of a revolution by which a prediction may be off before it counts as
 * wrong; a guard that needs more than this is of no use.  A host that is late
 * by half a millisecond at the median stays below it in most cases. */
#define WRONG_PERCENT 20u
/* Of wrong predictions that stand alone, the ones before and after being
 * right, one in this many counts: a busy host makes these, not the head. */
#define EXCUSED 3u
/* Predictions are judged only when the standard deviation of the phase is below
 * this (revolutions) and it rests on this many readings. */
#define SIGMA_JUDGED 0.02
#define OBSERVED_JUDGED 8u
/* A trial switches prediction on after this many predictions that were good
 * enough, and ends without success after this many accesses. */
#define TRIAL_ENOUGH 40u
#define TRIAL_ACCESSES 250u
/* A trial also ends when reads that were faster than any head outnumber the
 * others by this many: the disk does not rotate, or a cache answers. */
#define TRIAL_HITS 12u
/* A trial also ends after this many readings of the phase that contradict the
 * others. */
#define TRIAL_OUTLIERS 12u
/* A trial that one kind of access (reads or writes) has passed switches the
 * other kind on as well if no more than one in this many of its predictions
 * was wrong. */
#define TRUST_WRONG 10u
/* When prediction fails, the seek corrections return to a saved state.  They
 * are saved while at most this percentage of predictions is wrong. */
#define SURE_PERCENT 3u
/* A reading can make a track doubtful only when the standard deviation of the
 * phase is below this (revolutions).  A doubtful track takes this many tracks
 * on either side with it, which are measured again as well. */
#define SIGMA_REMAP 0.005
#define GROWN_TRACKS 8u
/* The profile is updated with learned values only after this many
 * predictions. */
#define LEARNED_ENOUGH 500u
/* Pause after a failed trial: RETRY_TIMES the disk time that it took, at least
 * RETRY_NS, at most RETRY_NS doubled with each failure in a row, up to
 * RETRY_DOUBLES times.  It is bounded because timing may become normal again at
 * any time, and a busy host spoils every second trial. */
#define RETRY_NS UINT64_C(5000000000)
#define RETRY_TIMES 32u
#define RETRY_DOUBLES 8u
/* Prediction that stayed on for this many accesses ends the row of failed
 * trials. */
#define STEADY_ACCESSES 500u
/* A read that takes less than 1/16 of a revolution was not served by the
 * head. */
#define QUICK_TURNS 16u
/* A reference read is made for its time only.  It is made when the standard
 * deviation of the phase exceeds SIGMA_WANTED (revolutions) and
 * REFERENCE_ACCESSES accesses have not told the phase (one, while nothing is
 * predicted).  One is granted each REFERENCE_NS, and up to REFERENCE_SAVED are
 * saved up: 4 s of reading an hour. */
#define SIGMA_WANTED 0.0025
#define REFERENCE_ACCESSES 4u
#define REFERENCE_SAVED 60u
#define REFERENCE_NS 10000000000u
/* No reference read is made later than this after the last access, so that an
 * idle disk may stop. */
#define REFERENCE_BUSY_NS 1000000000u
/* A reference read is at most this many tracks away, where the drive's
 * read-ahead has not been. */
#define REFERENCE_TRACKS 64u
/* An access that goes on where the last one ended, on the same track, may begin
 * 1/256 of a revolution early: a small move of the phase is no missed turn. */
#define SAME_TRACK 256u
/* A drive may hold in its cache what it read ahead behind this many of the
 * last reads. */
#define READS_KEPT 32u
/* Prediction goes off after this many accesses without a known phase: nothing
 * is predicted then, and one request at a time only costs. */
#define LOST_RUN 64u
/* Range writes are placed by the head up to PLACES_OFF percent of wrong
 * predictions, and again from PLACES_ON percent down. */
#define PLACES_ON 40u
#define PLACES_OFF 50u
/* A volatile cache is taken to write through when at most THROUGH_ON percent of
 * the writes complete elsewhere than on the medium, and no more above
 * THROUGH_OFF percent. */
#define THROUGH_ON 5u
#define THROUGH_OFF 10u
/* Writes move the phase when no read has told it for this many accesses.  The
 * delay of writes against reads is known after WRITES_KNOWN of them. */
#define WRITES_AFTER 8u
/* Without any reads, this many writes with wrong predictions mean that the
 * phase is wrong. */
#define WRITES_ALONE 100u
#define WRITES_KNOWN 32u
/* After this many cache hits in a row the head plays no part for now. */
#define CACHED_RUN 8u

struct head {
	struct env *env;
	const struct geom *geom;
	struct service_mech mech;
	struct spindle spindle;
	struct seek_learn learn;
	struct seek_learn sure;		/* `learn` when prediction was good */
	bool have_sure;			/* `sure` has been filled in */
	struct accuracy accuracy[SEEK_LEARN_KINDS];
	struct accuracy places;		/* of writes, see head_state.h */
	struct accuracy trial_writes;	/* in this trial */
	struct accuracy through;	/* do those that a cache may take go to
					 * the medium all the same? */
	bool wrong_last[SEEK_LEARN_KINDS];	/* the prediction before */
	unsigned excused;
	uint64_t hit_overhead_ns;
	uint32_t read_ahead_sectors;
	bool known;			/* there is something to go by */
	enum head_mode mode;
	uint64_t accesses;		/* since the mode changed */
	/* The spindle's counters when the mode changed. */
	uint64_t observed_before, outliers_before;
	uint64_t trial_busy_ns;		/* what accesses of this trial took */
	uint64_t retry_ns;		/* no trial before */
	unsigned failures;		/* one after another */
	unsigned odd_run;		/* random reads answered by a cache,
					 * less those that were not */
	unsigned hits_run;		/* cache hits in a row */
	unsigned writes_run;		/* writes judged since the last read
					 * that was no reference */
	unsigned lost_run;		/* accesses without a phase */
	struct service_head at;		/* behind what has completed */
	uint64_t last_ns;		/* something was handed over */
	bool writes_trusted;		/* writes are on, but not yet judged */
	bool writes_cached;		/* the drive took some in its cache */
	double writes_ahead;		/* phase by writes less that by reads */
	unsigned writes_known;		/* writes behind writes_ahead */
	uint64_t predicted_ns;		/* when a read last told the phase */
	uint64_t last_end;		/* where the last access ended */
	bool last_read;			/* the last access was a read */
	uint64_t read_ends[READS_KEPT];	/* ends of the last reads, a ring */
	unsigned reads;
	bool unsure;			/* the drive has read ahead since */
	struct head_access *chain[CHAIN_MAX];
	unsigned outstanding;		/* the first of them in chain */
	struct remap_detect remap_detect;
	uint64_t grown;			/* a track that is off, + 1; 0: none */
	struct head_kind_stats kind[SEEK_LEARN_KINDS];
	unsigned silent;		/* accesses since the last reading */
	unsigned alone;			/* accesses since the last reading that
					 * was no reference */
	uint64_t reference;		/* where the last reference was read */
	uint64_t references, reference_seed;
	uint64_t saved_ns;		/* time for which none was made */
	uint64_t saved_at_ns;
};

static void head_set_mode(struct head *head, enum head_mode mode)
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
	head->known = options_known(options);
	head->places = (struct accuracy){
		.on = true, .on_percent = PLACES_ON, .off_percent = PLACES_OFF,
	};
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

static uint64_t head_period_ns(const struct head *head)
{
	return head->mech.period_ps / 1000;
}

static uint64_t head_guard_ns(const struct head *head,
			      enum seek_learn_kind kind,
			      enum seek_learn_when when)
{
	return seek_learn_guard_ns(&head->learn, kind, when,
				   head_period_ns(head));
}

/* Of what is handed over so long before the head is free: then it is not late
 * by all that the host is late.  What a busy drive does says nothing of an idle
 * one, least of all before it has been seen. */
static uint64_t guard_ahead_ns(uint64_t idle_ns, uint64_t busy_ns,
			       uint64_t ahead_ns)
{
	if (!ahead_ns)
		return idle_ns;
	idle_ns -= ahead_ns < idle_ns ? ahead_ns : idle_ns;
	return idle_ns > busy_ns ? idle_ns : busy_ns;
}

static bool chain_known(const struct head *head)
{
	return head->outstanding <= CHAIN_MAX &&
	       (!head->outstanding ||
		head->chain[head->outstanding - 1]->predicted);
}

/* Where the head will be when all that is outstanding is done. */
static const struct service_head *head_behind(const struct head *head)
{
	if (!head->outstanding || !chain_known(head))
		return &head->at;
	return &head->chain[head->outstanding - 1]->expected.head;
}

static bool phase_is_known(const struct head *head, uint64_t at_ns)
{
	return head->spindle.observed >= OBSERVED_JUDGED &&
	       spindle_sigma(&head->spindle, &head->mech, at_ns) < SIGMA_JUDGED;
}

/* ---- prediction ---- */

/* The head of an idle drive follows what it reads ahead. */
static void head_follow(const struct head *head, struct head_state *head_state)
{
	struct service_head *at = &head_state->head;
	uint64_t until_ns = head_state->now_ns;
	struct service unused = { 0 };

	if (!head->outstanding && head->last_read && head->read_ahead_sectors &&
	    at->at_ns < until_ns && head->last_end < geom_sectors(head->geom))
		head_state->head_lbn += service_stream(
			head->geom, &head->mech, at, head->last_end,
			head->read_ahead_sectors, until_ns, &unused);
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
		*guard_ns[kind] = guard_ahead_ns(
			seek_learn_guard_ns(learn, kind, SEEK_LEARN_IDLE,
					    turn_ns),
			*next_ns[kind], ahead);
		*likely_ns[kind] = guard_ahead_ns(
			seek_learn_likely_ns(learn, kind, SEEK_LEARN_IDLE,
					     turn_ns),
			seek_learn_likely_ns(learn, kind, SEEK_LEARN_BUSY,
					     turn_ns),
			ahead);
		*early_ns[kind] = seek_learn_early_ns(learn, kind, turn_ns);
	}
	head_state->late_ns = seek_learn_guard_ns(learn, SEEK_LEARN_READ,
						  SEEK_LEARN_IDLE, turn_ns);
}

static void head_state_at(const struct head *head, uint64_t now_ns,
		      struct head_state *head_state)
{
	*head_state = (struct head_state){
		.now_ns = now_ns,
		.stream_lbn = UINT64_MAX,
		.geom = head->geom,
		.mech = &head->mech,
	};
	if (!head->known)
		return;
	/* After a rest the first read tells the phase anew. */
	head_state->reads = head->accuracy[SEEK_LEARN_READ].on &&
			phase_is_known(head, now_ns);
	head_state->writes =
		head_state->reads && head->accuracy[SEEK_LEARN_WRITE].on;
	head_state->places = head->places.on && phase_is_known(head, now_ns) &&
			 chain_known(head);
	head_state->head = *head_behind(head);
	head_state->head_lbn = head->last_end - 1;
	head_follow(head, head_state);
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

uint32_t head_read_ahead(const struct head *head)
{
	return head->read_ahead_sectors;
}

void head_get_state(const struct head *head, struct head_state *head_state)
{
	head_state_at(head, env_now_ns(head->env), head_state);
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

/* Predicts an access that begins where `from` says, when it was handed over. */
static void head_expect(const struct head *head, struct head_access *access,
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
	/* In time and on the same track: what begins right where the last has
	 * ended is met, however finely the phase has moved since. */
	if (!access->cylinders && !access->switched && at.at_ns > decoded_ns)
		at.at_ns -= head_period_ns(head) / SAME_TRACK;
	service_estimate(head->geom, &head->mech, &at, &req, &access->expected);
	access->arrive_ns = at.at_ns + service_move_ns(&head->mech, &at,
			place.cylinder, place.surface, access->write);
}

/* May the drive have read it ahead? */
static bool head_may_have(struct head *head, const struct head_access *access)
{
	bool may = false;
	unsigned i;

	if (access->write)
		return false;
	for (i = 0; i < READS_KEPT; i++)
		may |= access->lbn - head->read_ends[i] <=
		       head->read_ahead_sectors;
	head->read_ends[head->reads++ % READS_KEPT] =
		access->lbn + access->sectors;
	return may;
}

static void begin_at(struct head *head, struct head_access *access,
		     uint64_t now_ns)
{
	struct head_state head_state;

	access->handed_ns = head->last_ns = now_ns;
	access->predicted = false;
	access->streams = !access->write && head->last_read &&
		access->lbn >= head->last_end &&
		access->lbn - head->last_end <= head->read_ahead_sectors;
	access->follows = head_may_have(head, access);
	access->unsure = head->unsure && !access->streams;
	head->unsure = access->streams;
	head->accesses++;
	head->lost_run = phase_is_known(head, now_ns) ? 0 : head->lost_run + 1;
	if (head->known && head->outstanding < CHAIN_MAX &&
	    chain_known(head)) {
		head_state_at(head, now_ns, &head_state);
		head_expect(head, access, &head_state.head);
		access->predicted = true;
	}
	if (head->outstanding < CHAIN_MAX)
		head->chain[head->outstanding] = access;
	head->outstanding++;
	head->last_end = access->lbn + access->sectors;
	head->last_read = !access->write;
}

void head_begin(struct head *head, struct head_access *access)
{
	begin_at(head, access, env_now_ns(head->env));
}

uint64_t head_busy_until_ns(const struct head *head)
{
	return head->outstanding && chain_known(head) ?
		       head_behind(head)->at_ns : 0;
}

uint64_t head_begun_ns(const struct head *head)
{
	return head->outstanding && chain_known(head) ?
		       head->chain[head->outstanding - 1]->begin_ns : 0;
}

uint64_t head_ahead_ns(const struct head *head)
{
	return head->outstanding && chain_known(head) ?
		       head->chain[head->outstanding - 1]->ahead_ns : 0;
}

uint64_t head_media_ns(const struct head *head)
{
	return head->outstanding && chain_known(head) ?
		       head->chain[head->outstanding - 1]->expected.media_ns :
		       0;
}

bool head_is_beside(const struct head *head, uint64_t lbn, uint32_t sectors)
{
	const struct head_access *last;

	if (!head->outstanding || !chain_known(head))
		return false;
	last = head->chain[head->outstanding - 1];
	return last->lbn == lbn + sectors || last->lbn + last->sectors == lbn;
}

/* ---- what completions say ---- */

static void head_predict(const struct head *head, enum seek_learn_kind kind)
{
	msg_info("head: prediction for %s is %s, guard %.3f ms, turn %.4f ms",
		 kind == SEEK_LEARN_READ ? "reads" : "writes",
		 head->accuracy[kind].on ? "on" : "off",
		 (double)head_guard_ns(head, kind, SEEK_LEARN_IDLE) / 1e6,
		 (double)head->mech.period_ps / 1e9);
}

static void head_fail(struct head *head)
{
	uint64_t rest_ns = RETRY_TIMES * head->trial_busy_ns, first_ns;

	if (head->mode == HEAD_ON && head->accesses >= STEADY_ACCESSES)
		head->failures = 0;
	first_ns = RETRY_NS << head->failures;
	head->failures += head->failures < RETRY_DOUBLES;
	rest_ns = rest_ns < first_ns ? rest_ns : first_ns;
	/* What has been learned since may have been of something else. */
	if (head->have_sure)
		head->learn = head->sure;
	else if (head->odd_run >= TRIAL_HITS)
		seek_learn_forget(&head->learn);
	seek_learn_apply(&head->learn, &head->mech);

	head->retry_ns = env_now_ns(head->env) +
			 (rest_ns > RETRY_NS ? rest_ns : RETRY_NS);
	head_set_mode(head, HEAD_OFF);
	accuracy_clear(&head->accuracy[SEEK_LEARN_READ]);
}

/* Writes of which little is known yet are believed in: a target that is missed
 * costs a turn, as one does that is not aimed at. */
static void head_trust_writes(struct head *head)
{
	struct accuracy *accuracy = &head->accuracy[SEEK_LEARN_WRITE];

	if (accuracy->switched || head->writes_cached ||
	    accuracy->wrongs * TRUST_WRONG > accuracy->n)
		return;
	accuracy->on = head->writes_trusted = true;
	head_predict(head, SEEK_LEARN_WRITE);
}

/* A cache takes writes, and nothing will be learned from them. */
static void head_see_cache(struct head *head)
{
	struct accuracy *accuracy = &head->accuracy[SEEK_LEARN_WRITE];

	head->writes_cached = true;
	head->places.on = head->accuracy[SEEK_LEARN_WRITE].on &&
			  !head->writes_trusted;
	if (!head->writes_trusted)
		return;
	accuracy->on = head->writes_trusted = false;
	head_predict(head, SEEK_LEARN_WRITE);
}

/* Does its completion say nothing, for all that is known? */
static bool head_is_hidden(const struct head *head,
			   const struct head_access *access)
{
	return access->write && access->cached && !head->through.on;
}

/* Prediction for reads is good, and so it is used. */
static void head_accept(struct head *head)
{
	head_set_mode(head, HEAD_ON);
	head_trust_writes(head);
}

static void head_rate_write(struct head *head, bool wrong)
{
	struct accuracy *reads = &head->accuracy[SEEK_LEARN_READ];

	if (accuracy_see(&head->places, wrong, TRIAL_ENOUGH))
		msg_info("head: places of writes are %schosen by rotation",
			 head->places.on ? "" : "not ");
	if (head->accuracy[SEEK_LEARN_WRITE].n >= TRIAL_ENOUGH)
		head->writes_trusted = false;
	/* Who does not read: what holds for writes will hold for reads. */
	if (head->mode != HEAD_TRIAL)
		return;
	accuracy_see(&head->trial_writes, wrong, TRIAL_ENOUGH);
	if (!head->trial_writes.on || reads->wrongs * TRUST_WRONG > reads->n)
		return;
	accuracy_clear(reads);
	reads->on = true;
	head->kind[SEEK_LEARN_READ].switched++;
	head_predict(head, SEEK_LEARN_READ);
	head_accept(head);
}

static void head_lose(struct head *head)
{
	head->accuracy[SEEK_LEARN_READ].on = false;
	head->kind[SEEK_LEARN_READ].switched++;
	head_predict(head, SEEK_LEARN_READ);
	head_fail(head);
}

static void head_rate(struct head *head, enum seek_learn_kind kind, bool wrong)
{
	struct accuracy *accuracy = &head->accuracy[kind];
	bool was = accuracy->on;

	if (kind == SEEK_LEARN_WRITE)
		head_rate_write(head, wrong);
	head->writes_run += kind == SEEK_LEARN_WRITE;
	if (accuracy_see(accuracy, wrong, TRIAL_ENOUGH)) {
		head_predict(head, kind);
		head->kind[kind].switched++;
		if (kind == SEEK_LEARN_WRITE && !accuracy->on &&
		    head->mode == HEAD_ON && head->writes_run >= WRITES_ALONE)
			head_lose(head);
	}
	if (accuracy->on && accuracy->n == ACCURACY_WINDOW && !accuracy->next &&
	    accuracy->wrongs * 100 <= ACCURACY_WINDOW * SURE_PERCENT) {
		head->sure = head->learn;
		head->spindle.sure_ps = head->spindle.period_ps;
		head->have_sure = true;
	}
	if (kind != SEEK_LEARN_READ)
		return;
	if (accuracy->on && !was) {
		head_accept(head);
	} else if ((was && !accuracy->on) ||
		   (head->mode == HEAD_TRIAL && accuracy_hopeless(accuracy))) {
		head_fail(head);
	}
}

static void head_count_error(struct head *head, enum seek_learn_kind kind,
			     int64_t error_ns)
{
	struct head_kind_stats *stats = &head->kind[kind];
	int64_t bin = (int64_t)HEAD_BINS / 2 + error_ns * 64 /
		      (int64_t)head_period_ns(head);

	if (bin < 0)
		bin = 0;
	if (bin >= (int64_t)HEAD_BINS)
		bin = HEAD_BINS - 1;
	stats->error_bins[bin]++;
	stats->predictions++;
}

/* Does the completion of an access say when its last sector passed?  Not when
 * it could begin anywhere. */
static bool access_has_angle(const struct head *head,
			     const struct head_access *access)
{
	bool anywhere = access->write ? head->mech.zero_latency_write :
					head->mech.zero_latency_read;

	return access->expected.head.at_ns == access->expected.bus_ns &&
	       (!anywhere || access->expected.transfer_ns * 8 <
			     head_period_ns(head));
}

static enum seek_learn_when access_when(const struct head_access *access)
{
	return access->busy ? SEEK_LEARN_BUSY : SEEK_LEARN_IDLE;
}

/* Whether the target was met at the pass that was expected. */
static void head_learn(struct head *head, const struct head_access *access,
		       int64_t turns)
{
	const struct seek_learn_access what = {
		.kind = access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ,
		.when = access_when(access),
		.cylinders = access->cylinders,
		.switched = access->switched,
	};
	uint64_t period_ns = head_period_ns(head);
	int64_t offset_ns = (int64_t)(access->expected.media_ns -
				      access->arrive_ns);

	/* Of the passes before and after the expected arrival, the nearer. */
	if (turns >= 0)
		seek_learn_see(&head->learn, &what, offset_ns, turns == 0,
			  period_ns);
	offset_ns -= (int64_t)period_ns;
	if (turns <= 0 && -offset_ns < (int64_t)period_ns / 4)
		seek_learn_see(&head->learn, &what, offset_ns, turns < 0,
			  period_ns);
	seek_learn_apply(&head->learn, &head->mech);
}

/* Whole turns of lateness; the rest, *rest_ns, is from 1/8 turn early on: we
 * are told late more often than early. */
static int64_t whole_turns(int64_t error_ns, int64_t period_ns,
			   int64_t *rest_ns)
{
	int64_t from = error_ns + period_ns / 8;
	int64_t turns = from / period_ns - (from % period_ns < 0);

	*rest_ns = error_ns - turns * period_ns;
	return turns;
}

/* How far the angle under the head is ahead of what is believed, when
 * something was told rest_ns late: in turns, the nearer way round. */
static double angle_ahead(int64_t rest_ns, int64_t period_ns)
{
	double late = (double)rest_ns / (double)period_ns;

	return late > 0.5 ? 1 - late : -late;
}

/* A busy host tells late now and then, and the head was where it was believed
 * to be: of what is off by itself one in EXCUSED counts. */
static bool head_excuses(struct head *head, enum seek_learn_kind kind)
{
	return !head->wrong_last[kind] && ++head->excused % EXCUSED;
}

/* Is the track where it was? */
static void head_detect_remap(struct head *head,
			      const struct head_access *access, int64_t rest_ns)
{
	double turns = (double)rest_ns / (double)head_period_ns(head);
	struct geom_track track;

	if (head->mode != HEAD_ON ||
	    spindle_sigma(&head->spindle, &head->mech, head->last_ns) >
		    SIGMA_REMAP)
		return;
	geom_track_of(head->geom, access->lbn + access->sectors - 1, &track);
	if (remap_detect_see(&head->remap_detect, track.index,
			turns > 0.5 ? turns - 1 : turns))
		head->grown = track.index + 1;
}

bool head_take_grown(struct head *head, uint64_t *first, uint64_t *n)
{
	uint64_t at, last, tracks = geom_tracks(head->geom);
	struct geom_track track;

	if (!head->grown)
		return false;
	at = head->grown - 1;
	geom_track_at(head->geom, at > GROWN_TRACKS ? at - GROWN_TRACKS : 0,
		      &track);
	*first = track.first;
	last = at + GROWN_TRACKS;
	geom_track_at(head->geom, last < tracks ? last : tracks - 1, &track);
	*n = track.first + track.sectors - *first;
	head->grown = 0;
	return true;
}

/* Writes that come from the medium pass known angles, too, once it has shown
 * that they do; always a little later than reads, as a rule. */
static void head_follow_write(struct head *head, uint64_t at_ns, double ahead)
{
	if (!head->accuracy[SEEK_LEARN_WRITE].on || head->writes_trusted)
		return;
	if (head->silent < WRITES_AFTER) {
		if (head->writes_known < WRITES_KNOWN)
			head->writes_known++;
		head->writes_ahead += (ahead - head->writes_ahead) /
				      head->writes_known;
	} else if (head->writes_known == WRITES_KNOWN) {
		spindle_follow(&head->spindle, &head->mech, at_ns,
			       ahead - head->writes_ahead);
	}
}

static void head_report_phase(struct head *head,
			      const struct head_access *access,
			      uint64_t complete_ns, double ahead)
{
	if (access->write) {
		head_follow_write(head, complete_ns, ahead);
		return;
	}
	spindle_observe(&head->spindle, &head->mech, complete_ns, ahead);
	head->predicted_ns = complete_ns;
	head->silent = 0;
	if (head->reference - access->lbn >= access->sectors)
		head->alone = head->writes_run = 0;
}

/* A write that a cache may take. */
static void head_see_through(struct head *head,
			     const struct head_access *access, bool wrong)
{
	if (!access->cached ||
	    !accuracy_see(&head->through, wrong, TRIAL_ENOUGH))
		return;
	msg_info("head: writes %s", head->through.on ?
		 "go to the medium, whatever the drive says" :
		 "are taken by a cache");
	head->writes_cached = false;
}

/* A completion from the medium, at a known place. */
static void head_observe(struct head *head, const struct head_access *access,
			 uint64_t complete_ns)
{
	enum seek_learn_kind kind =
		access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ;
	int64_t period_ns = (int64_t)head_period_ns(head);
	int64_t error_ns = (int64_t)(complete_ns - access->expected.bus_ns);
	int64_t rest_ns, turns = whole_turns(error_ns, period_ns, &rest_ns);
	bool judged = phase_is_known(head, complete_ns);
	bool wrong = llabs(rest_ns) * 100 > period_ns * WRONG_PERCENT;
	uint64_t guard_ns = head_guard_ns(head, kind, access_when(access));
	bool late = !wrong && turns > 0 && access->expected.media_ns -
		access->arrive_ns >= guard_ns;
	bool useless = (int64_t)guard_ns > period_ns * WRONG_PERCENT / 100;

	if (judged && !access->unsure)
		head_see_through(head, access, wrong);
	if (head_is_hidden(head, access))
		return;
	head_report_phase(head, access, complete_ns,
			angle_ahead(rest_ns, period_ns));
	if (judged && !access->write)
		head_detect_remap(head, access, rest_ns);
	if (!judged || access->unsure)
		return;
	head_count_error(head, kind, error_ns);
	head->kind[kind].wrong += wrong || late;
	head->kind[kind].misses += late;
	if (!wrong && !access->streams)
		head_learn(head, access, turns);
	head_rate(head, kind, useless || late ||
				       (wrong && !head_excuses(head, kind)));
	head->wrong_last[kind] = wrong;
}

static bool access_is_quick(const struct head *head,
			    const struct head_access *access,
			    uint64_t complete_ns)
{
	return !access->busy && complete_ns - access->handed_ns <
				head_period_ns(head) / QUICK_TURNS;
}

/* Done before the head can have been there: a cache answered. */
static bool access_is_hit(const struct head *head,
			  const struct head_access *access,
			  uint64_t complete_ns)
{
	if (access->follows && complete_ns + head_period_ns(head) / 16 <
				       access->expected.bus_ns)
		return true;
	if (!access->write && access_is_quick(head, access, complete_ns))
		return true;
	return complete_ns + head_period_ns(head) / 4 <
	       access->arrive_ns + access->expected.transfer_ns;
}

static void head_hit(struct head *head, const struct head_access *access)
{
	head->kind[access->write].hits++;
	if (access->write) {
		/* Or the phase is wrong; it has not been told, anyway. */
		head->silent++;
		head->alone++;
		head_see_through(head, access, true);
		if (!head_is_hidden(head, access))
			head_rate(head, SEEK_LEARN_WRITE, true);
		return;
	}
	head->hits_run++;
	if (!access->follows && ++head->odd_run >= TRIAL_HITS &&
	    head->mode == HEAD_TRIAL)
		head_fail(head);
}

/* Nothing is known of when it was done; but the head has been there. */
static void head_go_to(struct head *head, const struct head_access *access,
		       uint64_t complete_ns)
{
	struct geom_place place;

	geom_place_of(head->geom, access->lbn + access->sectors - 1, &place);
	head->at = (struct service_head){ complete_ns, place.cylinder,
					  place.surface };
}

static void head_take(struct head *head, struct head_access *access,
		      uint64_t complete_ns)
{
	int64_t shift_ns = (int64_t)(complete_ns - access->expected.bus_ns);
	int64_t rest_ns;

	if (access->part || access->unknown) {
		head_go_to(head, access, complete_ns);
		head->unsure = true;
		return;
	}
	if (access_is_hit(head, access, complete_ns)) {
		head_hit(head, access);
		if (access->follows) {
			head_go_to(head, access, complete_ns);
			head->unsure = true;
		}
		return;
	}
	if (!access->write) {
		head->hits_run = 0;
		head->odd_run -= head->odd_run > 0;
	}
	head->silent += !access->streams;
	head->alone += !access->streams;
	if (access_has_angle(head, access) && !access->streams)
		head_observe(head, access, complete_ns);
	/* Late by so many turns is the head; late by less, only the news. */
	if (head->mode == HEAD_ON)
		shift_ns = whole_turns(shift_ns, (int64_t)head_period_ns(head),
				       &rest_ns) *
			   (int64_t)head_period_ns(head);
	head->at = access->expected.head;
	head->at.at_ns += (uint64_t)shift_ns;
}

/* Takes an access out of the chain; false: it was not the first. */
static bool chain_remove(struct head *head, const struct head_access *access)
{
	unsigned n = head->outstanding < CHAIN_MAX ? head->outstanding :
						     CHAIN_MAX;
	unsigned i = 0;

	head->outstanding--;
	while (i < n && head->chain[i] != access)
		i++;
	if (i < n)
		memmove(&head->chain[i], &head->chain[i + 1],
			(n - i - 1) * sizeof(head->chain[0]));
	return i == 0;
}

/* Those behind begin where the first has really ended. */
static void chain_expect(struct head *head)
{
	const struct service_head *from = &head->at;
	unsigned i;

	for (i = 0; i < head->outstanding && i < CHAIN_MAX &&
	     head->chain[i]->predicted; i++) {
		head_expect(head, head->chain[i], from);
		from = &head->chain[i]->expected.head;
	}
}

static void chain_doubt(struct head *head)
{
	unsigned i;

	for (i = 0; i < head->outstanding && i < CHAIN_MAX; i++)
		head->chain[i]->predicted = false;
}

/* Of one among many it is only seen whether a cache answered. */
static void head_guess(struct head *head, const struct head_access *access,
		       uint64_t complete_ns)
{
	bool quick = complete_ns - access->handed_ns <
		     2 * head->hit_overhead_ns + head_period_ns(head) / 16;

	if (!access->write)
		head->hits_run = quick ? head->hits_run + 1 : 0;
	if (!quick)
		head_go_to(head, access, complete_ns);
}

/* Readings of the phase that do not agree with each other: the angles are
 * wrong, and more of them are a waste. */
static bool trial_contradicts(const struct head *head)
{
	uint64_t taken = head->spindle.observed - head->observed_before;
	uint64_t outliers = head->spindle.outliers - head->outliers_before;

	return outliers >= TRIAL_OUTLIERS && outliers > taken;
}

static void head_try_again(struct head *head)
{
	if (head->mode == HEAD_ON && head->lost_run >= LOST_RUN)
		head_lose(head);
	if (head->mode == HEAD_OFF &&
	    env_now_ns(head->env) >= head->retry_ns) {
		accuracy_clear(&head->accuracy[SEEK_LEARN_READ]);
		accuracy_clear(&head->trial_writes);
		head->trial_writes.on = false;
		head_set_mode(head, HEAD_TRIAL);
		/* Its readings are its own when nobody reads. */
		head->saved_ns = REFERENCE_SAVED * REFERENCE_NS;
	} else if (head->mode == HEAD_TRIAL &&
		   (head->accesses >= TRIAL_ACCESSES ||
		    trial_contradicts(head))) {
		head_fail(head);
	}
}

void head_end(struct head *head, struct head_access *access,
	      uint64_t complete_ns, int result)
{
	bool first = chain_remove(head, access);

	if (!head->known)
		return;
	if (head_is_hidden(head, access) && !head->writes_cached)
		head_see_cache(head);
	if (head->mode == HEAD_TRIAL)
		head->trial_busy_ns += complete_ns - access->handed_ns;
	if (access->predicted && first && !result)
		head_take(head, access, complete_ns);
	else
		head_guess(head, access, complete_ns);
	if (first)
		chain_expect(head);
	else
		chain_doubt(head);
	if (!head->outstanding)
		head_try_again(head);
}

void head_hear(struct head *head, const struct head_heard *heard, size_t n)
{
	struct head_access access;
	size_t i;

	for (i = 0; i < n; i++) {
		access = (struct head_access){
			.lbn = heard[i].lbn,
			.sectors = heard[i].sectors,
		};
		begin_at(head, &access, heard[i].handed_ns);
		head_end(head, &access, heard[i].complete_ns, 0);
	}
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

/* Is there time for one, of what is saved up? */
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

/* A sector on another track near the head; which, no cache can guess. */
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

bool head_wants_reference(struct head *head, uint64_t *sector)
{
	uint64_t now_ns = env_now_ns(head->env);
	bool off = head->mode == HEAD_OFF;
	bool known = phase_is_known(head, now_ns);
	bool judged = known && (off ? head->places.on
				    : head->accuracy[SEEK_LEARN_READ].on);
	/* What was read last contradicts the phase: it is late by chance, or
	 * the phase is wrong. */
	bool sure = judged && !head->spindle.outliers_run;

	if (!head->known || (off && !judged) ||
	    head->alone < REFERENCE_ACCESSES ||
	    head->silent < (sure || (known && head->places.on) ?
				    REFERENCE_ACCESSES : 1) ||
	    now_ns > head->last_ns + REFERENCE_BUSY_NS ||
	    (sure && now_ns - head->predicted_ns < REFERENCE_NS &&
	     spindle_sigma(&head->spindle, &head->mech, now_ns) <
			       SIGMA_WANTED) ||
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
	stats->guard_ns = head_guard_ns(head, kind, SEEK_LEARN_IDLE);
	stats->overhead_ns = seek_learn_overhead_ns(&head->learn, kind);
}

void head_get_stats(const struct head *head, struct head_stats *stats)
{
	uint64_t now_ns = env_now_ns(head->env);

	*stats = (struct head_stats){
		.mode = head->mode,
		.period_ps = head->mech.period_ps,
		.observed = head->spindle.observed,
		.outliers = head->spindle.outliers,
		.reacquired = head->spindle.reacquired,
		.references = head->references,
		.places = head->known && head->places.on,
	};
	if (head->known) {
		stats->period_sigma_ppm =
			spindle_period_sigma_ppm(&head->spindle);
		stats->phase_sigma_revs =
			spindle_sigma(&head->spindle, &head->mech, now_ns);
	}
	head_fill_kind(head, SEEK_LEARN_READ, &stats->read);
	head_fill_kind(head, SEEK_LEARN_WRITE, &stats->write);
}
