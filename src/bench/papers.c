/*
 * papers.c - see papers.h.
 *
 * A measurement gives one figure or several; all of them come from functions
 * that `traxbench sched` and `traxbench replicas` print their tables from.  The
 * papers' figures are those that their texts state: what can only be read off a
 * plot is not here.
 */
#include "bench/papers.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/msg.h"
#include "base/units.h"
#include "bench/replicas.h"
#include "bench/sched_measures.h"

/* Most figures that one measurement gives. */
#define FIGURES 4u

/* Short names, as they are printed. */
#define TRAXTENTS "traxtents FAST'02"
#define FREEBLOCK "freeblock OSDI'00"
#define RANGES "range writes FAST'08"
#define VALIDATION "validation FAST'08"
#define COPIES "FS2 SOSP'05"

struct paper_figure {
	const char *place;	/* figure, table and section of the paper;
				 * NULL: no more figures */
	const char *what, *unit;
	const char *said;	/* the paper's word before its figure, or "" */
	double low, high;	/* the paper's figure; equal: it is one number,
				 * not from one to another */
};

struct paper_measure {
	const char *paper, *drive;
	/* What the paper had that this measurement has not. */
	const char *differs;
	struct paper_figure figure[FIGURES];
	int (*run)(const struct sched_options *options,
		   const struct paper_measure *measure, double *ours);
	/* What `run` makes of them is its own affair. */
	unsigned count, percent;
	bool flag;
	const char *name;
};

/* By how many per cent is a less than b (negative) or more? */
static double change(double a, double b)
{
	return 100 * (a / b - 1);
}

/* ---- Traxtents ---- */

/* count: requests outstanding; flag: reads. */
static int track_change(const struct sched_options *options,
			const struct paper_measure *m, double *ours)
{
	struct sched_track_load load = { .drive = m->drive,
					 .clients = m->count,
					 .read = m->flag };
	struct rig_result anywhere, aligned;
	int err = sched_track_times(options, &load, &anywhere);

	load.aligned = true;
	if (!err)
		err = sched_track_times(options, &load, &aligned);
	if (err)
		return err;
	ours[0] = change(aligned.head_mean_ns, anywhere.head_mean_ns);
	ours[1] = aligned.head_deviation_ns / 1e6;
	ours[2] = anywhere.head_deviation_ns / 1e6;
	return 0;
}

/* count: tracks of a segment. */
static int segment_change(const struct sched_options *options,
			  const struct paper_measure *m, double *ours)
{
	struct sched_segment_cost cost;
	int err = sched_segment_costs(options, 1, m->count, &cost);

	if (!err)
		ours[0] = change(cost.aligned, cost.anywhere);
	return err;
}

/* ---- Freeblock ---- */

static double share(uint64_t part_ns, uint64_t all_ns)
{
	return 100 * (double)part_ns / (double)all_ns;
}

/* name: the policy; count: requests outstanding; percent: KiB of a request. */
static int head_shares(const struct sched_options *options,
		       const struct paper_measure *m, double *ours)
{
	const struct sched_head_load load = {
		.drive = m->drive, .policy = m->name, .clients = m->count,
		.sectors = m->percent * 2,
	};
	struct rig_result use;
	int err = sched_head_uses(options, &load, &use);

	if (err)
		return err;
	ours[0] = share(use.times.rotation_ns, use.ns);
	ours[1] = share(use.times.transfer_ns, use.ns);
	return 0;
}

/* Access time against SPTF, and rotation. */
static int order_change(const struct sched_options *options,
			const struct paper_measure *m, double *ours)
{
	struct sched_head_load load = { .drive = m->drive, .policy = "sptf",
					.clients = 20, .sectors = 8 };
	struct rig_result sptf, use;
	int err = sched_head_uses(options, &load, &sptf);

	load.policy = m->name;
	if (!err)
		err = sched_head_uses(options, &load, &use);
	if (err)
		return err;
	ours[0] = change(use.head_mean_ns, sptf.head_mean_ns);
	ours[1] = share(use.times.rotation_ns, use.ns);
	return 0;
}

/* percent: the part of the disk that a scan wants. */
static int free_scan(const struct sched_options *options,
		     const struct paper_measure *m, double *ours)
{
	const struct sched_free_load load = {
		.policy = "sstf", .clients = m->count, .think_ns = 30000000,
		.part = m->percent / 100.0, .requests = 440000,
	};
	struct sched_free_result r;
	int err = sched_free_scans(options, &load, &r);

	if (err)
		return err;
	ours[0] = r.scans_a_day;
	ours[1] = 100 * r.used / r.rotation;
	ours[2] = change(r.with.mean_ns, r.alone.mean_ns);
	/* A short run finishes no scan. */
	ours[3] = r.last_part > 0 ? 100 * r.last_part : NAN;
	return 0;
}

/* ---- Range writes ---- */

/* count: sectors of a range. */
static int range_change(const struct sched_options *options,
			const struct paper_measure *m, double *ours)
{
	struct sched_range_load load = { .depth = 1, .group = true,
					 .slot = 1 };
	struct sched_range_point none, range;
	int err = sched_range_times(options, &load, &none);

	load.range = m->count;
	if (!err)
		err = sched_range_times(options, &load, &range);
	if (!err)
		ours[0] = change(range.positioning_ms, none.positioning_ms);
	return err;
}

/* percent: how full the group is. */
static int create_change(const struct sched_options *options,
			 const struct paper_measure *m, double *ours)
{
	double without = 1, with = 1, empty = 1;
	int err = sched_create_time(options, 1, m->percent, false, &without);

	if (!err)
		err = sched_create_time(options, 1, m->percent, true, &with);
	if (!err)
		err = sched_create_time(options, 1, 0, true, &empty);
	ours[0] = change(with, without);
	ours[1] = change(with, empty);
	return err;
}

/* count: milliseconds that a transaction computes. */
static int journal_times(const struct sched_options *options,
			 const struct paper_measure *m, double *ours)
{
	const uint64_t think_ns = m->count * NS_PER_MS;
	double none = 1, two = 1, skipping = 1, least;
	int err = sched_tpcb_time(options, JOURNAL_NULL, think_ns, &none,
				  &least);

	if (!err)
		err = sched_tpcb_time(options, JOURNAL_TWO, think_ns, &two,
				      &least);
	if (!err)
		err = sched_tpcb_time(options, JOURNAL_SKIPPING, think_ns,
				      &skipping, &least);
	ours[0] = 100 * two / none;
	ours[1] = 100 * skipping / none;
	return err;
}

/* ---- The validation ---- */

/* count: readers; percent: what each thinks between two reads, in 1/100 ms. */
static int two_readers(const struct sched_options *options,
		       const struct paper_measure *m, double *ours)
{
	struct sched_options own = *options;
	const uint64_t think_ns = m->percent * NS_PER_MS / 100;
	double without = 1, with = 1;
	int err;

	own.drive = m->drive;
	err = sched_streams_rate(&own, m->count, think_ns, true, &without);
	if (!err)
		err = sched_streams_rate(&own, m->count, think_ns, false,
					 &with);
	ours[0] = with / without;
	return err;
}

/* ---- FS2 ---- */

static int copies_change(const struct sched_options *options,
			 const struct paper_measure *m, double *ours)
{
	struct replicas_figures with[REPLICAS_RUNS], without[REPLICAS_RUNS];
	const struct replicas_figures *a, *b;
	const struct replicas_options replicas = {
		.drive = m->drive, .workload = m->name, .seed = options->seed,
		.runs = options->quick ? 3 : 7,
		.percent = options->quick ? 10 : 100,
	};
	int err = replicas_measure(&replicas, with, without);

	if (err)
		return err;
	a = &with[replicas.runs - 1];
	b = &without[replicas.runs - 1];
	ours[0] = change(a->seek_ms + a->rotation_ms + a->transfer_ms,
			 b->seek_ms + b->rotation_ms + b->transfer_ms);
	ours[1] = change(a->seek_ms, b->seek_ms);
	ours[2] = change(a->rotation_ms, b->rotation_ms);
	ours[3] = change(a->energy_mj, b->energy_mj);
	return 0;
}

/* ---- The table ---- */

#define ATLAS_II "the paper's drive is an Atlas 10K II"
#define NO_BUS "no bus: transfers to the host take no time"
#define FS2_DRIVE "heads and zones of the drive are guesses, programs are " \
	"imitated, compared with no copies instead of Ext2"
#define DISKSIM "the paper's simulator is DiskSim"

/* An element of paper_measures that FS2's tables give. */
#define FS2_TABLE(table, workload, access, seek, rotation, energy) \
	{ COPIES, "wd800", FS2_DRIVE, { \
		{ table, workload ": access time", "%", "", access, access }, \
		{ table, workload ": seek", "%", "", seek, seek }, \
		{ table, workload ": rotation", "%", "", rotation, rotation }, \
		{ table, workload ": energy", "%", "", energy, energy }, \
	}, copies_change

#define TPCB_TABLE(ms)                                                    \
	{ RANGES, "modern", "another drive (the paper's: Deskstar 7K80), "\
	  "the log of traxfs instead of ext3 on Bark", {                  \
		{ "6, Table 3", "TPC-B cached, computing " #ms            \
		  " ms, journal, of none", "%", "", 174, 174 },           \
		{ "6, Table 3", "TPC-B cached, computing " #ms            \
		  " ms, skipping, of none", "%", "", 107.5, 107.5 },      \
	}, journal_times, .count = ms }

static const struct paper_measure paper_measures[] = {
	{ TRAXTENTS, "atlas-10k", NO_BUS
	  "; the paper's deviations are of an Atlas 10K II", {
		{ "5.2, Importance", "head time of aligned reads, one", "%",
		  "", -16, -16 },
		{ "5.2, Figure 8", "deviation of aligned ones", "ms", "",
		  0.4, 0.4 },
		{ "5.2, Figure 8", "deviation of unaligned ones", "ms", "",
		  1.5, 1.5 },
	}, track_change, .count = 1, .flag = true },
	{ TRAXTENTS, "atlas-10k", NO_BUS, {
		{ "5.2, Importance", "head time of aligned reads, two", "%",
		  "", -32, -32 },
	}, track_change, .count = 2, .flag = true },
	{ TRAXTENTS, "atlas-10k", ATLAS_II ", " NO_BUS, {
		{ "5.2, Write", "head time of aligned writes, one", "%", "",
		  -28, -28 },
	}, track_change, .count = 1 },
	{ TRAXTENTS, "atlas-10k", ATLAS_II ", " NO_BUS, {
		{ "5.2, Write", "head time of aligned writes, two", "%", "",
		  -26, -26 },
	}, track_change, .count = 2 },
	{ TRAXTENTS, "ultrastar-18es",
	  "the queue begins a track where the head arrives, " NO_BUS, {
		{ "5.2, Importance", "head time of aligned reads", "%", "",
		  -6, -6 },
	}, track_change, .count = 1, .flag = true },
	{ TRAXTENTS, "atlas-10k",
	  ATLAS_II ", a model of the cleaner instead of the Auspex trace", {
		{ "5.5, Figure 10", "write cost of segments of a track", "%",
		  "", -44, -44 },
	}, segment_change, .count = 1 },

	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.1, Figure 2", "rotation, share of the head's time", "%",
		  "", 27, 36 },
	}, head_shares, .count = 1, .percent = 4, .name = "fcfs" },
	{ FREEBLOCK, "cheetah-9lp", DISKSIM, {
		{ "3.1, Figure 2", "rotation, share of the head's time", "%",
		  "", 27, 36 },
	}, head_shares, .count = 1, .percent = 4, .name = "fcfs" },
	{ FREEBLOCK, "ultrastar-18es", DISKSIM, {
		{ "3.1, Figure 2", "rotation, share of the head's time", "%",
		  "", 27, 36 },
	}, head_shares, .count = 1, .percent = 4, .name = "fcfs" },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.2, Figure 3", "rotation with 256 KB a request", "%", "",
		  15, 15 },
		{ "3.2, Figure 3", "transfer with 256 KB a request", "%",
		  "under", 55, 55 },
	}, head_shares, .count = 1, .percent = 256, .name = "fcfs" },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.3, Figure 5", "rotation with C-LOOK, 20 waiting", "%", "",
		  50, 50 },
	}, head_shares, .count = 20, .percent = 4, .name = "c-look" },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.3, Figure 5", "rotation with SPTF, 20 waiting", "%", "",
		  22, 22 },
	}, head_shares, .count = 20, .percent = 4, .name = "sptf" },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.3, Figure 6", "access time, SPTF-SW40% to SPTF", "%", "",
		  6, 6 },
		{ "3.3, Figure 6", "rotation with SPTF-SW40%", "%", "", 36,
		  36 },
	}, order_change, .name = "sptf-sw40" },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "3.3, Figure 6", "access time, SSTF to SPTF", "%", "", 25,
		  25 },
		{ "3.3, Figure 5", "rotation with SSTF, 20 waiting", "%", "",
		  50, 50 },
	}, order_change, .name = "sstf" },
	{ FREEBLOCK, "atlas-10k",
	  DISKSIM ", ten scans where time suffices for fewer here", {
		{ "6.3, Figure 8", "scans a day beside 10 tasks (OLTP)", "",
		  "over", 47, 47 },
		{ "6.3, Figure 8", "share of the potential", "%", "half,", 50,
		  50 },
		{ "6.3", "delay of the OLTP load", "%", "no,", 0, 0 },
		{ "6.3, Figure 9", "time of a scan for its last 5 %", "%", "",
		  30, 30 },
	}, free_scan, .count = 10, .percent = 100 },
	{ FREEBLOCK, "atlas-10k", DISKSIM, {
		{ "6.3, Figure 10", "samples of any 80 % a day", "", "over",
		  90, 90 },
		{ "6.3, Figure 10", "share of the potential", "%", "", 90,
		  90 },
	}, free_scan, .count = 10, .percent = 80 },

	{ RANGES, "hp-c2247a", DISKSIM, {
		{ "4, Figure 5", "positioning, a track to choose from", "%",
		  "halved,", -50, -50 },
	}, range_change, .count = SCHED_TRACK_RANGE },
	{ RANGES, "hp-c2247a", DISKSIM, {
		{ "4, Figure 6", "positioning, a group to choose from", "%",
		  "essentially", -100, -100 },
	}, range_change, .count = SCHED_GROUP_RANGE },
	{ RANGES, "hp-c2247a", "the queue chooses, no ext2 above it", {
		{ "5.3, Figure 11", "file creation, half full", "%", "roughly",
		  -20, -20 },
	}, create_change, .percent = 50 },
	{ RANGES, "hp-c2247a", "the queue chooses, no ext2 above it", {
		{ "5.3, Figure 11", "file creation, 90 % full", "%",
		  "roughly", -20, -20 },
		{ "5.3, Figure 11", "the same, against an empty group", "%",
		  "roughly", 70, 70 },
	}, create_change, .percent = 90 },
	/* The paper does not say how long its transactions compute. */
	TPCB_TABLE(17),
	TPCB_TABLE(10),
	TPCB_TABLE(5),

	{ VALIDATION, "atlas-10k", "another drive (the paper's: Maxtor 10K V), "
	  "two readers on the disk, with the head known and not, instead of "
	  "diff on ext2", {
		{ "2.5, Figure 6", "speed of two interleaved reads", "x",
		  "almost", 2, 2 },
	}, two_readers, .count = 2, .percent = 20 },

	FS2_TABLE("4.3, Table 2", "TPC-W", -50, -72, -31, -55),
	  .name = "oltp" },
	FS2_TABLE("4.4, Table 3", "CVS", -41, -38, -53, -40),
	  .name = "trees" },
	FS2_TABLE("4.5, Table 4", "X server", -44, -53, -47, -46),
	  .name = "desktop" },
	FS2_TABLE("4.6, Table 5", "SURGE", -69, -78, -68, -71),
	  .name = "web" },
};
#define MEASURES (sizeof(paper_measures) / sizeof(paper_measures[0]))

static const char *const left_out[] = {
	TRAXTENTS ": figures 1, 3, 6, 7, 9 (plots); Table 2 (FreeBSD FFS on a "
	"disk: `traxbench peers -d atlas-10k` has its workloads); streams of "
	"10 disks",
	FREEBLOCK ": figure 4 (another distribution of places), figure 7 (a "
	"logical disk of segments; `traxbench sched clean` is the nearest)",
	RANGES ": figures 4, 7, 8, 9, 10, 13 (plots); Table 2 (traces that "
	"are not published); Table 3 uncached",
	VALIDATION ": figures 1 to 5 (one drive's own), 7 (start of streams), "
	"8 to 10 (RAID-5)",
	COPIES ": figures 2, 3, 8 (plots); run times, which are those of the "
	"paper's machine",
};

/* ---- What is printed ---- */

static void paper_said(const struct paper_figure *f, char *text, size_t room)
{
	const char *space = *f->said ? " " : "";

	if (f->low < f->high)
		snprintf(text, room, "%s%s%g to %g", f->said, space, f->low,
			 f->high);
	else
		snprintf(text, room, "%s%s%g", f->said, space, f->low);
}

static json_t *figure_json(const struct paper_measure *m,
			   const struct paper_figure *f, double ours)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:[f, f], s:o, s:s}",
			 "paper", m->paper, "place", f->place, "what", f->what,
			 "unit", f->unit, "drive", m->drive, "said", f->said,
			 "published", f->low, f->high, "ours",
			 isnan(ours) ? json_null() : json_real(ours),
			 "differs", m->differs);
}

static int measure_row(const struct papers_options *options,
		       const struct paper_measure *m, json_t *rows)
{
	const struct sched_options sched = { .seed = options->seed,
					     .quick = options->quick };
	double ours[FIGURES] = { 0 };
	char said[64], value[32];
	int err = m->run(&sched, m, ours);

	for (unsigned i = 0; i < FIGURES && m->figure[i].place && !err; i++) {
		const struct paper_figure *f = &m->figure[i];

		paper_said(f, said, sizeof(said));
		snprintf(value, sizeof(value), "%.*f",
			 *f->unit == '%' || !*f->unit ? 1 : 2, ours[i]);
		printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", m->paper,
		       f->place, f->what, said, isnan(ours[i]) ? "-" : value,
		       f->unit, m->drive, m->differs);
		json_array_append_new(rows, figure_json(m, f, ours[i]));
	}
	fflush(stdout);
	return err;
}

static bool wanted(const struct papers_options *options, const char *paper)
{
	return !options->only || strstr(paper, options->only);
}

int papers_run(const struct papers_options *options)
{
	json_t *rows = json_array();
	int err = 0;

	printf("| paper | place | what | paper | here | unit | drive | what "
	       "differs |\n|---|---|---|--:|--:|---|---|---|\n");
	for (unsigned i = 0; i < MEASURES && !err; i++)
		if (wanted(options, paper_measures[i].paper))
			err = measure_row(options, &paper_measures[i], rows);
	printf("\nLeft out:\n\n");
	for (unsigned i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (wanted(options, left_out[i]))
			printf("* %s.\n", left_out[i]);
	if (!err && options->json &&
	    json_dump_file(rows, options->json, JSON_INDENT(1))) {
		msg_error("%s: cannot be written", options->json);
		err = -EIO;
	}
	json_decref(rows);
	return err;
}
