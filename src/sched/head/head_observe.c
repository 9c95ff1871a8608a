/*
 * head_observe.c - learns from the completions of requests: whether predictions
 * came true, the phase of the spindle, seeks, overheads, the drive's cache.
 */
#include "base/units.h"
#include "sched/head/head_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "sched/head/remap_detect.h"
#include "sched/head/head.h"
#include "sched/head/accuracy.h"
#include "sched/head/seek_learn.h"
#include "sched/head/spindle.h"

/* Percent of a revolution by which a prediction may be off before it counts as
 * wrong; a guard that needs more than this is of no use.  A host that is late
 * by half a millisecond at the median stays below it in most cases. */
#define WRONG_PERCENT 20u
/* Of wrong predictions that stand alone, the ones before and after being
 * right, one in this many counts: a busy host makes these, not the head. */
#define EXCUSED 3u
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
#define TRUST_WRONG 6u
/* When prediction fails, the seek corrections return to a saved state.  They
 * are saved while at most this percentage of predictions is wrong. */
#define SURE_PERCENT 3u
/* A reading can make a track doubtful only when the standard deviation of the
 * phase is below this (revolutions).  A doubtful track takes this many tracks
 * on either side with it, which are measured again as well. */
#define SIGMA_REMAP 0.005
#define GROWN_TRACKS 8u
/* Pause after a failed trial: RETRY_TIMES the disk time that it took, at least
 * RETRY_NS, at most RETRY_NS doubled with each failure in a row, up to
 * RETRY_DOUBLES times.  It is bounded because timing may become normal again at
 * any time, and a busy host spoils every second trial. */
#define RETRY_NS (5 * NS_PER_SECOND)
#define RETRY_TIMES 32u
#define RETRY_DOUBLES 1u
/* Prediction that stayed on for this many accesses ends the row of failed
 * trials. */
#define STEADY_ACCESSES 500u
/* A read that takes less than 1/16 of a revolution was not served by the
 * head. */
#define QUICK_TURNS 16u
/* Some targets are met only by a drive that does not go on to the next track
 * behind a read.  When this many more of them were missed than met, the drive
 * does go on: of other targets one in 50 is missed. */
#define GONE_ON 4u
/* Prediction goes off after this many accesses without a known phase: nothing
 * is predicted then, and one request at a time only costs. */
#define LOST_RUN 64u
/* A drive writes the content of its cache when it is idle, and its head is
 * elsewhere then.  It takes a second for some hundred places. */
#define DESTAGE_NS NS_PER_SECOND
/* The drive has a cache if it took most of the last TAKEN_MOST writes. */
#define TAKEN_MOST 8u
/* Writes move the phase when no read has told it for this many accesses.  The
 * delay of writes against reads is known after WRITES_KNOWN of them. */
#define WRITES_AFTER 8u
/* Without any reads, this many writes with wrong predictions mean that the
 * phase is wrong. */
#define WRITES_ALONE 100u
#define WRITES_KNOWN 32u
/* With a smaller standard deviation (revolutions) the phase is as good as just
 * read. */
#define SIGMA_FRESH 0.0025

/* ---- what completions tell ---- */

static void head_predict(const struct head *head, enum seek_learn_kind kind)
{
	msg_info("head: prediction for %s is %s, guard %.3f ms, turn %.4f ms",
		 kind == SEEK_LEARN_READ ? "reads" : "writes",
		 head->accuracy[kind].on ? "on" : "off",
		 (double)head_guard_ns(head, kind, SEEK_LEARN_IDLE) / 1e6,
		 (double)head->mech.period_ps / 1e9);
}

static void head_go_off(struct head *head)
{
	/* What was learned since may come from something else than the head. */
	if (head->have_sure)
		head->learn = head->sure;
	else
		seek_learn_forget(&head->learn);
	seek_learn_apply(&head->learn, &head->mech);
	head_set_mode(head, HEAD_OFF);
	accuracy_clear(&head->accuracy[SEEK_LEARN_READ]);
}

static void head_fail(struct head *head)
{
	uint64_t rest_ns = RETRY_TIMES * head->trial_busy_ns, first_ns;

	if (head->mode == HEAD_ON && head->accesses >= STEADY_ACCESSES)
		head->failures = 0;
	first_ns = RETRY_NS << head->failures;
	head->failures += head->failures < RETRY_DOUBLES;
	rest_ns = rest_ns < first_ns ? rest_ns : first_ns;
	head->retry_ns = env_now_ns(head->env) +
			 (rest_ns > RETRY_NS ? rest_ns : RETRY_NS);
	head_go_off(head);
}

/* Predictions of writes are used though little is known of them yet: a target
 * that is missed costs a turn, as does one that is not aimed at. */
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
	if (!head->writes_trusted)
		return;
	accuracy->on = head->writes_trusted = false;
	head_predict(head, SEEK_LEARN_WRITE);
}

/* Does the completion of the access tell nothing, as far as is known? */
static bool head_is_hidden(const struct head *head,
			   const struct head_access *access)
{
	return access->write && access->cached && !head->through.on;
}

/* Prediction for reads is good: it is used from now on. */
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
	/* Without reads, predictions of writes stand for those of reads. */
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

/* An access that could begin anywhere tells by its completion when its last
 * sector passed only if it is shorter than this part of a turn: few of these
 * are met in the middle, and they stand out. */
#define SHORT_PART 4u

static bool access_has_angle(const struct head *head,
			     const struct head_access *access)
{
	bool anywhere = access->write ? head->mech.zero_latency_write :
					head->mech.zero_latency_read;

	return access->expected.head.at_ns == access->expected.bus_ns &&
	       (!anywhere || access->expected.transfer_ns * SHORT_PART <
			     head_period_ns(head));
}

/* What is decoded only just before the head is free for it is late when the
 * host is, as at an idle drive. */
static enum seek_learn_when access_when(const struct head *head,
					const struct head_access *access)
{
	enum seek_learn_kind kind =
		access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ;

	return access->busy && access->ahead_ns >=
			head_guard_ns(head, kind, SEEK_LEARN_IDLE) ?
		       SEEK_LEARN_BUSY : SEEK_LEARN_IDLE;
}

/* Learns whether the target was met at the pass that was expected. */
static void head_learn(struct head *head, const struct head_access *access,
		       int64_t turns)
{
	const struct seek_learn_access what = {
		.kind = access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ,
		.when = access_when(head, access),
		.cylinders = access->cylinders,
		.switched = access->switched,
		.chosen = access->chosen,
	};
	uint64_t period_ns = head_period_ns(head);
	int64_t offset_ns = (int64_t)(access->expected.media_ns -
				      access->arrive_ns);

	/* The host's lateness counts from when the command is decoded. */
	if (what.when == SEEK_LEARN_IDLE)
		offset_ns += (int64_t)access->ahead_ns;

	/* Takes the pass that is nearer to the expected arrival, before or
	 * after it. */
	if (turns >= 0)
		seek_learn_see(&head->learn, &what, offset_ns, turns == 0,
			  period_ns);
	offset_ns -= (int64_t)period_ns;
	if (turns <= 0 && -offset_ns < (int64_t)period_ns / 4)
		seek_learn_see(&head->learn, &what, offset_ns, turns < 0,
			  period_ns);
	seek_learn_apply(&head->learn, &head->mech);
}

/* Whole turns by which a completion was late.  The rest, *rest_ns, may be an
 * eighth of a turn early at most, as completions are reported late more often
 * than early. */
static int64_t whole_turns(int64_t error_ns, int64_t period_ns,
			   int64_t *rest_ns)
{
	int64_t from = error_ns + period_ns / 8;
	int64_t turns = from / period_ns - (from % period_ns < 0);

	*rest_ns = error_ns - turns * period_ns;
	return turns;
}

/* By how much the angle under the head is ahead of the model when a completion
 * came rest_ns late: in turns, between -1/2 and 1/2. */
static double angle_ahead(int64_t rest_ns, int64_t period_ns)
{
	double late = (double)rest_ns / (double)period_ns;

	return late > 0.5 ? 1 - late : -late;
}

/* Is a single wrong prediction excused?  A busy host reports late now and then,
 * though the head was where it was predicted to be: of those that stand alone
 * one in EXCUSED counts. */
static bool head_excuses(struct head *head, enum seek_learn_kind kind)
{
	return !head->wrong_last[kind] && ++head->excused % EXCUSED;
}

/* Notices a track that the drive has moved. */
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

/* Writes to the medium pass known angles, too, once they have shown that they
 * do; but as a rule a little later than reads. */
static void head_follow_write(struct head *head, uint64_t at_ns, double ahead)
{
	if (!head->accuracy[SEEK_LEARN_WRITE].on || head->writes_trusted)
		return;
	if (head->silent < WRITES_AFTER ||
	    (head->writes_known < WRITES_KNOWN &&
	     spindle_sigma(&head->spindle, &head->mech, at_ns) <
		     SIGMA_FRESH)) {
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

/* Takes in the outcome of a write that a cache may take. */
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

/* Takes in whether an access that ends much later on a drive that goes on to
 * the next track first has done so. */
static void head_see_going_on(struct head *head,
			      const struct head_access *access,
			      uint64_t complete_ns)
{
	uint64_t sooner_ns = access->expected.bus_ns;

	if (head->goes_on || !access->gone_on_ns || access->unsure ||
	    head_is_hidden(head, access) ||
	    !head_phase_is_known(head, complete_ns))
		return;
	if (complete_ns > sooner_ns + (access->gone_on_ns - sooner_ns) / 2)
		head->gone_on++;
	else if (head->gone_on)
		head->gone_on--;
	head->goes_on = head->gone_on == GONE_ON;
}

/* Takes in whether a read was predicted rightly while the drive may have been
 * bringing writes to the medium.  True: the head stays where it was then, and
 * the read is like any other. */
static bool head_see_destaging(struct head *head,
			       const struct head_access *access, bool wrong)
{
	struct accuracy *accuracy = &head->destaging[access->away ?
					HEAD_TIME_AWAY : HEAD_TIME_BUSY];
	bool was = accuracy->on;

	if (accuracy_see(accuracy, wrong, TRIAL_ENOUGH))
		msg_info("head: prediction %s is %s while the drive's cache is "
			 "written", access->away ? "after a pause" :
			 "between commands", accuracy->on ? "on" : "off");
	return was && accuracy->on;
}

/* Takes in a completion from the medium, at a known place. */
static void head_observe(struct head *head, const struct head_access *access,
			 uint64_t complete_ns)
{
	enum seek_learn_kind kind =
		access->write ? SEEK_LEARN_WRITE : SEEK_LEARN_READ;
	int64_t period_ns = (int64_t)head_period_ns(head);
	int64_t error_ns = (int64_t)(complete_ns - access->expected.bus_ns);
	int64_t rest_ns, turns = whole_turns(error_ns, period_ns, &rest_ns);
	bool judged = head_phase_is_known(head, complete_ns);
	bool wrong = llabs(rest_ns) * 100 > period_ns * WRONG_PERCENT;
	uint64_t guard_ns = access->chosen ?
		head_place_guard_ns(head, access->ahead_ns) :
		head_guard_ahead_ns(head, kind, access->ahead_ns);
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
	if (!judged || access->unsure || access->gone_on_ns ||
	    (access->destages && !access->write &&
	     !head_see_destaging(head, access, useless || late || wrong)))
		return;
	head_count_error(head, kind, error_ns);
	head->kind[kind].wrong += wrong || late;
	head->kind[kind].misses += late;
	if (!wrong && !access->streams && !access->went_on)
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

/* Was the access done before the head can have been there?  Then a cache
 * answered. */
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

/* A write was completed before the head can have been there, so a cache took
 * it.  Some are by chance, if the prediction is wrong. */
static void head_cache_takes(struct head *head, uint64_t complete_ns)
{
	head->taken += head->taken < TAKEN_MOST;
	if (head_takes_writes(head))
		head->destage_ns = complete_ns + DESTAGE_NS;
}

bool head_takes_writes(const struct head *head)
{
	return head->taken > TAKEN_MOST / 2;
}

/* The head has been there, or will be when the cache has been emptied. */
static void head_go_to(struct head *head, const struct head_access *access,
		       uint64_t complete_ns)
{
	struct geom_place place;

	geom_place_of(head->geom, access->lbn + access->sectors - 1, &place);
	head->at = (struct service_head){ complete_ns, place.cylinder,
					  place.surface };
}

static void head_hit(struct head *head, const struct head_access *access,
		     uint64_t complete_ns)
{
	if (access->write) {
		if (access_is_quick(head, access, complete_ns))
			head_cache_takes(head, complete_ns);
		/* A write shows nothing of the phase. */
		head->silent++;
		head->alone++;
		head_see_through(head, access, true);
		if (head_is_hidden(head, access))
			head_go_to(head, access, complete_ns);
		else
			head_rate(head, SEEK_LEARN_WRITE, true);
		return;
	}
	head->hits_run++;
	if (!access->follows && ++head->odd_run >= TRIAL_HITS &&
	    head->mode == HEAD_TRIAL)
		head_fail(head);
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
		head_hit(head, access, complete_ns);
		if (access->follows) {
			head_go_to(head, access, complete_ns);
			head->unsure = true;
		}
		return;
	}
	if (!access->write) {
		head->hits_run = 0;
		head->odd_run -= head->odd_run > 0;
	} else {
		head->taken /= 2;
	}
	head->away = false;
	head->silent += !access->streams;
	head->alone += !access->streams;
	head_see_going_on(head, access, complete_ns);
	if (access_has_angle(head, access) && !access->streams)
		head_observe(head, access, complete_ns);
	/* If it is late by whole turns, the head was late; if by less, only the
	 * host was. */
	if (head->mode == HEAD_ON)
		shift_ns = whole_turns(shift_ns, (int64_t)head_period_ns(head),
				       &rest_ns) *
			   (int64_t)head_period_ns(head);
	head->at = access->expected.head;
	head->at.at_ns += (uint64_t)shift_ns;
}

/* Removes an access from the chain; false: it was not the first. */
static bool head_chain_remove(struct head *head,
			      const struct head_access *access)
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

/* Predicts the accesses behind one anew, from where that has really ended. */
static void head_chain_expect(struct head *head,
			      const struct head_access *before)
{
	const struct service_head *from = &head->at;
	unsigned i;

	for (i = 0; i < head->outstanding && i < CHAIN_MAX &&
	     head->chain[i]->predicted; i++) {
		head_expect_behind(head, head->chain[i], from,
				   before->write || !head->read_ahead_sectors ?
				   UINT64_MAX :
				   head_read_end(head, before->lbn +
						       before->sectors));
		before = head->chain[i];
		from = &before->expected.head;
	}
}

static void chain_doubt(struct head *head)
{
	unsigned i;

	for (i = 0; i < head->outstanding && i < CHAIN_MAX; i++)
		head->chain[i]->predicted = false;
}

/* Whatever the drive did before, it is known when the last sector of a short
 * read passed, but for whole turns. */
static void head_observe_phase(struct head *head, struct head_access *access,
			       uint64_t complete_ns)
{
	int64_t period_ns = (int64_t)head_period_ns(head), rest_ns;

	head_expect(head, access, &head->at);
	if (access->unknown || !access_has_angle(head, access))
		return;
	whole_turns((int64_t)(complete_ns - access->expected.bus_ns), period_ns,
		    &rest_ns);
	head_report_phase(head, access, complete_ns,
			  angle_ahead(rest_ns, period_ns));
}

/* Was it too soon for a head that had other accesses as well? */
static bool access_is_taken(const struct head *head,
			    const struct head_access *access,
			    uint64_t complete_ns)
{
	return complete_ns - access->handed_ns <
	       2 * head->hit_overhead_ns + head_period_ns(head) / 16;
}

/* For one access among many at the drive only the phase is taken in, and
 * whether a cache answered. */
static void head_guess(struct head *head, struct head_access *access,
		       uint64_t complete_ns)
{
	bool quick = access_is_taken(head, access, complete_ns);

	if (!access->write)
		head->hits_run = quick ? head->hits_run + 1 : 0;
	if (quick && access->write)
		head_cache_takes(head, complete_ns);
	if (quick)
		return;
	if (access->write)
		head->taken /= 2;
	if (head->mode == HEAD_ON && !access->write && !access->part &&
	    !access->follows)
		head_observe_phase(head, access, complete_ns);
	head_go_to(head, access, complete_ns);
}

/* Do the readings of the phase contradict each other?  Then the angles are
 * wrong, and more readings are a waste. */
static bool trial_contradicts(const struct head *head)
{
	uint64_t taken = head->spindle.observed - head->observed_before;
	uint64_t outliers = head->spindle.outliers - head->outliers_before;

	return outliers >= TRIAL_OUTLIERS && outliers > taken;
}

/* Puts off the next trial until the drive has written the content of its cache,
 * or for some time: meanwhile it tells nothing. */
static void head_put_off(struct head *head, uint64_t now_ns)
{
	uint64_t rest_ns = RETRY_TIMES * head->trial_busy_ns;

	head->destage_retry_ns = now_ns + (rest_ns > RETRY_NS ? rest_ns :
								RETRY_NS);
	head->retry_ns = 0;
	head_go_off(head);
}

static bool trial_is_over(const struct head *head)
{
	return head->accesses >= TRIAL_ACCESSES || trial_contradicts(head);
}

static void head_try_again(struct head *head)
{
	uint64_t now_ns = env_now_ns(head->env);
	bool destages = now_ns < head->destage_ns;

	if (head->mode == HEAD_ON && head->lost_run >= LOST_RUN)
		head_lose(head);
	if (destages && head->mode == HEAD_TRIAL && trial_is_over(head))
		head_put_off(head, now_ns);
	if (destages && now_ns < head->destage_retry_ns)
		return;
	if (head->mode == HEAD_OFF && now_ns >= head->retry_ns) {
		accuracy_clear(&head->accuracy[SEEK_LEARN_READ]);
		accuracy_clear(&head->trial_writes);
		head->trial_writes.on = false;
		head_set_mode(head, HEAD_TRIAL);
		/* There are no other reads, so reference reads get all the time
		 * that they need. */
		head->saved_ns = REFERENCE_SAVED * REFERENCE_NS;
	} else if (head->mode == HEAD_TRIAL && trial_is_over(head)) {
		head_fail(head);
	}
}

/* The drive has one command less.  Without any it may bring writes to the
 * medium. */
static void head_left(struct head *head, uint64_t now_ns)
{
	head->at_drive--;
	head->away |= !head->at_drive && now_ns < head->destage_ns;
}

/* Did the cache take the write after all?  If it is full the write goes to the
 * medium, and moves the head. */
static void head_end_aside(struct head *head, const struct head_access *access,
			   uint64_t complete_ns)
{
	if (access_is_taken(head, access, complete_ns)) {
		head_cache_takes(head, complete_ns);
	} else {
		head->taken /= 2;
		head->away = true;
		chain_doubt(head);
	}
	head_left(head, complete_ns);
}

void head_end(struct head *head, struct head_access *access,
	      uint64_t complete_ns, int result)
{
	bool first;

	if (access->aside) {
		head_end_aside(head, access, complete_ns);
		return;
	}
	first = head_chain_remove(head, access);
	if (!head->known) {
		head_left(head, complete_ns);
		return;
	}
	if (head_is_hidden(head, access) && !head->writes_cached)
		head_see_cache(head);
	if (head->mode == HEAD_TRIAL)
		head->trial_busy_ns += complete_ns - access->handed_ns;
	if (access->predicted && first && !result)
		head_take(head, access, complete_ns);
	else
		head_guess(head, access, complete_ns);
	if (first)
		head_chain_expect(head, access);
	else
		chain_doubt(head);
	head_left(head, complete_ns);
	if (!head->outstanding)
		head_try_again(head);
}

void head_drop(struct head *head, const struct head_access *access)
{
	head->at_drive--;
	if (access->aside)
		return;
	head_chain_remove(head, access);
	chain_doubt(head);
	/* It is not known how far the drive came with it. */
	head->unsure = true;
}
