/*
 * traxtract.c - what a disk is: measured, written down, compared.
 *
 * The order matters: whatever is changed in the drive's settings has been
 * written to the state file before, and is put back by whoever comes next if
 * this run can't.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/msg.h"
#include "extract/drive/identify.h"
#include "extract/drive/settings.h"
#include "extract/probe/period.h"
#include "extract/probe/prober_disk.h"
#include "tools/device.h"
#include "tools/extract_run.h"
#include "tools/plot.h"
#include "tools/progress.h"
#include "tools/signature.h"

/* Number of boundaries that --verify looks at. If one in a hundred is wrong, a
 * wrong one is among them nine times in ten. */
#define VERIFY_BOUNDARIES 256u
/* The most by which the period, measured for four seconds, may differ from that
 * of the profile, in parts per million. */
#define PERIOD_PPM 100.0
#define PERIOD_NS UINT64_C(4000000000)

struct arguments {
	const char *device;
	const char *output, *state, *plot;
	const char *list, *verify, *scratch;
	bool quick, force, json, restart, scsi, quiet;
};

const char *argp_program_version = "traxtract " PACKAGE_VERSION;

enum { KEY_VERIFY = 256, KEY_LIST, KEY_PLOT, KEY_SCRATCH, KEY_JSON,
       KEY_RESTART, KEY_SCSI, KEY_QUIET };

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "Write the profile there; default: "
	  "standard output", 0 },
	{ "quick", 'q', NULL, 0, "Measure only what takes a minute", 0 },
	{ "quiet", KEY_QUIET, NULL, 0, "Say nothing but warnings and errors",
	  0 },
	{ "state", 's', "FILE", 0, "Keep there how to put settings back and "
	  "what has been measured, so that another run goes on", 0 },
	{ "scsi", KEY_SCSI, NULL, 0, "Ask the drive for its tracks (SCSI "
	  "translation of addresses)", 0 },
	{ "restart", KEY_RESTART, NULL, 0, "Begin anew, not where an earlier "
	  "run ended", 0 },
	{ "destructive-on", KEY_SCRATCH, "SCRATCH", 0,
	  "Overwrite parts of the disk to measure writes too; SCRATCH must "
	  "name DEVICE once more", 0 },
	{ "force", 'f', NULL, 0, "Overwrite SCRATCH even if it holds "
	  "something", 0 },
	{ "json", KEY_JSON, NULL, 0, "Report in JSON on standard error", 0 },
	{ "plot", KEY_PLOT, "FILE", 0, "Draw the profile (SVG)", 0 },
	{ "verify", KEY_VERIFY, "PROFILE", 0,
	  "Only look whether DEVICE is what PROFILE says", 1 },
	{ "list", KEY_LIST, "PROFILE", 0,
	  "Only print a table of PROFILE's tracks", 1 },
	{ 0 },
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'o':
		a->output = arg;
		return 0;
	case 'q':
		a->quick = true;
		return 0;
	case KEY_QUIET:
		a->quiet = true;
		msg_set_level(MSG_WARN);
		return 0;
	case 's':
		a->state = arg;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case KEY_SCSI:
		a->scsi = true;
		return 0;
	case KEY_RESTART:
		a->restart = true;
		return 0;
	case KEY_SCRATCH:
		a->scratch = arg;
		return 0;
	case KEY_JSON:
		a->json = true;
		return 0;
	case KEY_PLOT:
		a->plot = arg;
		return 0;
	case KEY_VERIFY:
		a->verify = arg;
		return 0;
	case KEY_LIST:
		a->list = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->device)
			return ARGP_ERR_UNKNOWN;
		a->device = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->device != !!a->list)
			argp_usage(state);
		if (a->scratch && strcmp(a->scratch, a->device))
			argp_error(state, "--destructive-on: not the device "
					  "to be measured");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- Tables and pictures ---- */

static void list_tracks(const struct geom *geom)
{
	uint64_t from = 0, sectors = 0;
	struct geom_track t;

	printf("# first sectors cylinder surface angle\n");
	for (uint64_t i = 0; i <= geom_tracks(geom); i++) {
		if (i < geom_tracks(geom))
			geom_track_at(geom, i, &t);
		if (i < geom_tracks(geom) && !t.known) {
			from = sectors ? from : t.first;
			sectors += t.sectors;
			continue;
		}
		if (sectors)
			printf("# %" PRIu64 " %" PRIu64 " unknown\n", from,
			       sectors);
		sectors = 0;
		if (i < geom_tracks(geom))
			printf("%" PRIu64 " %u %u %u %.10f\n", t.first,
			       t.sectors, t.cylinder, t.surface,
			       t.start / 4294967296.0);
	}
}

static int draw(const struct profile *profile, const char *path)
{
	FILE *f = fopen(path, "we");
	int err = f ? plot_write(profile, f) : -errno;

	if (f && fclose(f) && !err)
		err = -EIO;
	if (err)
		msg_error("%s: %s", path, strerror(-err));
	return err;
}

static enum extract_end list(const struct arguments *a)
{
	struct profile *profile;
	int err = profile_read(a->list, &profile);

	if (err)
		return EXTRACT_FAILED;
	list_tracks(profile->geom);
	if (a->plot)
		err = draw(profile, a->plot);
	profile_free(profile);
	return err || fflush(stdout) ? EXTRACT_FAILED : EXTRACT_DONE;
}

/* Can a file be made at this path? That is tried before the measurement, which
 * can take hours. */
static bool may_write(const char *path)
{
	char *copy = strdup(path);
	bool may = copy && !access(dirname(copy), W_OK | X_OK);

	if (!may)
		msg_error("%s: nothing can be written there: %s", path,
			  strerror(errno));
	free(copy);
	return may;
}

/* Writes the profile to a new file, which is then renamed: a file that is
 * written in part must not be taken for a whole profile. */
static int write_profile(const struct profile *profile, const char *path)
{
	char *fresh = NULL;
	FILE *f;
	int err;

	if (!path)
		return profile_write(profile, stdout) || fflush(stdout) ?
			       -EIO : 0;
	if (asprintf(&fresh, "%s.new", path) < 0)
		return -ENOMEM;
	f = fopen(fresh, "we");
	err = f ? profile_write(profile, f) : -errno;
	if (f && !err && (fflush(f) || fsync(fileno(f))))
		err = -errno;
	if (f && fclose(f) && !err)
		err = -EIO;
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		msg_error("%s: %s", path, strerror(-err));
	free(fresh);
	return err;
}

/* ---- The device ---- */

static bool mounted_by_us(const char *device)
{
	char *full = realpath(device, NULL);
	FILE *f = setmntent("/proc/self/mounts", "r");
	struct mntent *e;
	bool found = false;

	while (full && f && !found && (e = getmntent(f))) {
		found = strstr(e->mnt_type, "traxfs") &&
			!strcmp(e->mnt_fsname, full);
		if (found)
			msg_error("%s: mounted on %s, which measures by "
				  "itself: traxctl model %s", device,
				  e->mnt_dir, e->mnt_dir);
	}
	if (f)
		endmntent(f);
	free(full);
	return found;
}

/* Asks for real-time priority and for memory that is not paged out, so that the
 * measuring thread does not wait for others. Without the rights it goes on
 * without both. */
static void run_realtime(void)
{
	struct sched_param param = { .sched_priority = 1 };

	sched_setscheduler(0, SCHED_FIFO, &param);
	mlockall(MCL_CURRENT | MCL_FUTURE);
}

static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = stop };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Reads the state that an earlier run has left, and restores the drive's
 * settings if that run could not. */
static int take_state(const struct arguments *a, const char *path,
		      struct extract_state *state)
{
	int err = extract_state_read(path, state);

	if (err == -ENOENT)
		return 0;
	if (err && err != -EUCLEAN)
		return err;
	if (err) {
		msg_warn("%s: what was measured is not used", path);
		extract_state_forget(state);
	}
	if (state->settings.n)
		msg_info("%s: settings that an earlier run has left are put "
			 "back", path);
	settings_restore(&state->settings);
	state->settings = (struct settings){ 0 };
	if (a->restart)
		extract_state_forget(state);
	return 0;
}

/* ---- How it ended ---- */

/* What --json prints. */
struct outcome {
	const char *verdict;	/* NULL: none */
	uint64_t reads;
	struct verify verify;
	json_t *parts;		/* the parts of the profile; NULL: there are
				 * none */
};

static json_t *parts_of(const struct profile *p)
{
	json_t *parts = json_object();

	for (int i = 0; p && i < PROFILE_PARTS; i++)
		json_object_set_new(parts, profile_part_name(i), json_pack(
			"{s:s, s:f}", "method",
			profile_method_name(p->part[i].method), "confidence",
			p->part[i].confidence_ppm / 1e6));
	return parts;
}

static void tell_json(const struct outcome *o, enum extract_end end)
{
	static const char *const ends[] = {
		"done", "failed", "wrong use", "refused", "not measurable",
		"incomplete", "gone", "does not fit", "too small",
		"too noisy", "unreadable"
	};
	json_t *all = json_pack("{s:s, s:s?, s:I, s:I, s:I, s:I, s:O?}",
				"end", ends[end], "verdict", o->verdict,
				"reads", (json_int_t)o->reads, "verified",
				(json_int_t)o->verify.right, "wrong",
				(json_int_t)o->verify.wrong, "undecided",
				(json_int_t)o->verify.undecided, "parts",
				o->parts);

	if (all) {
		json_dumpf(all, stderr, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		fputc('\n', stderr);
	}
	json_decref(all);
}

/* ---- Measuring ---- */

static void report(const struct arguments *a, const struct extract_run *run,
		   enum extract_end end)
{
	if (end == EXTRACT_GONE)
		msg_error("%s: has vanished", a->device);
	else if (run->verdict)
		msg_error("%s: %s", a->device, run->verdict);
	else if (end == EXTRACT_UNREADABLE)
		msg_error("%s: cannot be read", a->device);
	if (end == EXTRACT_INCOMPLETE)
		msg_info("interrupted: run again to go on");
	if (run->verify.wrong && end == EXTRACT_DONE)
		msg_warn("%s: %u of %u boundaries did not look like one",
			 a->device, run->verify.wrong,
			 run->verify.wrong + run->verify.right);
	else if (run->verify.wrong)
		msg_error("%s: %u of %u boundaries looked at are wrong",
			  a->device, run->verify.wrong,
			  run->verify.wrong + run->verify.right);
}

static int deliver(const struct arguments *a, const struct profile *profile)
{
	int err = write_profile(profile, a->output);

	if (!err && a->plot)
		err = draw(profile, a->plot);
	return err;
}

static bool has_learned(const struct extract_state *state)
{
	for (int i = 0; state->profile && i < PROFILE_PARTS; i++) {
		if (state->profile->part[i].confidence_ppm)
			return true;
	}
	return state->map;
}

/* Has the drive been taken away? Some kernels report only read errors as long
 * as it is open, so it is opened anew. */
static bool is_gone(const char *device)
{
	int fd = open(device, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int err = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return err == ENXIO || err == ENODEV || err == ENOENT ||
	       err == ENOTCONN;
}

/* Measures with the drive's settings changed, and restores them. */
static enum extract_end measure_set(const struct arguments *a,
				    struct extract_run *run)
{
	struct extract_state *state = run->state;
	enum extract_end end = EXTRACT_FAILED;

	settings_look(run->identity, a->device, a->scratch != NULL,
		      &state->settings);
	if (extract_state_write(run->state_path, state))
		return EXTRACT_FAILED;
	settings_apply(&state->settings);
	end = extract_run(run);
	if (end && end != EXTRACT_INCOMPLETE && is_gone(a->device))
		end = EXTRACT_GONE;
	if (!settings_restore(&state->settings))
		state->settings = (struct settings){ 0 };
	report(a, run, end);
	if ((end == EXTRACT_DONE ||
	     (end == EXTRACT_NOISY && has_learned(state))) &&
	    deliver(a, state->profile))
		end = EXTRACT_FAILED;
	/* The state file is removed when no setting is to be restored and no
	 * later run can go on from it. */
	if (!state->settings.n && (end == EXTRACT_DONE || !has_learned(state)))
		unlink(run->state_path);
	else
		extract_state_write(run->state_path, state);
	return end;
}

static enum extract_end measure(const struct arguments *a, struct disk *disk,
				const struct identity *id,
				struct outcome *outcome)
{
	struct extract_state state = { 0 };
	char *path = a->state ? strdup(a->state) : extract_state_path(id);
	struct progress progress;
	struct extract_run run = {
		.state = &state,
		.state_path = path,
		.identity = id,
		.scsi = a->scsi ? a->device : NULL,
		.quick = a->quick,
		.scratch = a->scratch,
		.progress = a->quiet ? NULL : &progress,
		.stopped = &stopped,
	};
	enum extract_end end = EXTRACT_FAILED;

	progress_begin(&progress, a->device);
	run.prober = prober_disk_new(env_real(), disk, a->scratch != NULL,
				     &stopped);
	if (path && run.prober && !take_state(a, path, &state)) {
		catch_signals();
		run_realtime();
		end = measure_set(a, &run);
		outcome->verdict = run.verdict;
		outcome->reads = run.prober->accesses;
		outcome->verify = run.verify;
		outcome->parts = parts_of(state.profile);
	}
	prober_disk_free(run.prober);
	extract_state_free(&state);
	free(path);
	return end;
}

/* ---- Does a profile fit? ---- */

/* Compares the drive's period with the profile's; -ESTALE: they differ. Where
 * the period cannot be measured only boundaries are compared. */
static int compare_period(const struct arguments *a, struct prober *prober,
			  const struct profile *p)
{
	double is, said = (double)p->mech.period_ps;
	struct rotation period;
	int err = period_measure(prober, PERIOD_NS, &period);

	if (err || period.verdict != PERIOD_GOOD)
		return err;
	is = (double)period.period_ps;
	if (fabs(is / said - 1) <= PERIOD_PPM / 1e6)
		return 0;
	msg_info("%s: turns in %.6f ms, not in %.6f", a->device, is / 1e9,
		 said / 1e9);
	return -ESTALE;
}

static enum extract_end compare(const struct arguments *a, struct disk *disk,
				const struct profile *p,
				struct outcome *outcome)
{
	struct prober *prober = prober_disk_new(env_real(), disk, false,
						&stopped);
	struct verify v = { 0 };
	bool same;
	int err;

	if (!prober)
		return EXTRACT_FAILED;
	catch_signals();
	run_realtime();
	same = p->sectors == disk->limits.sectors;
	err = same ? 0 : -ESTALE;
	if (!err && p->mech.period_ps)
		err = compare_period(a, prober, p);
	if (!err && p->mech.period_ps && geom_known(p->geom))
		err = verify_boundaries(prober, p->geom, p->mech.period_ps,
					VERIFY_BOUNDARIES, &v);
	outcome->reads = prober->accesses;
	outcome->verify = v;
	prober_disk_free(prober);
	if (err == -EINTR)
		return EXTRACT_INCOMPLETE;
	if (err && err != -ESTALE)
		return err == -ENODEV ? EXTRACT_GONE : EXTRACT_FAILED;
	msg_info("%s: boundaries: %u right, %u wrong, %u undecided%s",
		 a->device, v.right, v.wrong, v.undecided,
		 same ? "" : "; not the same capacity");
	if (!v.right && !v.wrong && v.unreadable)
		return EXTRACT_UNREADABLE;
	return err || v.wrong || !v.right ? EXTRACT_UNFIT : EXTRACT_DONE;
}

static enum extract_end verify(const struct arguments *a, struct disk *disk,
			       struct outcome *outcome)
{
	struct profile *profile;
	enum extract_end end;

	if (profile_read(a->verify, &profile))
		return EXTRACT_FAILED;
	end = compare(a, disk, profile, outcome);
	profile_free(profile);
	return end;
}

static enum extract_end run(const struct arguments *a, struct outcome *outcome)
{
	struct identity id;
	struct disk *disk;
	enum extract_end end;
	const char *why;
	int err;

	if ((a->output && !may_write(a->output)) ||
	    (a->plot && !may_write(a->plot)))
		return EXTRACT_FAILED;
	if (mounted_by_us(a->device))
		return EXTRACT_REFUSED;
	err = identify(a->device, "/sys", &id);
	if (err) {
		msg_error("%s: %s", a->device, strerror(-err));
		return EXTRACT_FAILED;
	}
	why = identify_refusal(&id);
	if (why) {
		msg_error("%s: %s", a->device, why);
		outcome->verdict = why;
		return EXTRACT_REFUSED;
	}
	err = device_open(a->device, !a->scratch, &disk);
	if (err)
		return err == -EBUSY ? EXTRACT_REFUSED : EXTRACT_FAILED;
	if (a->scratch && !a->force && signature_found(a->device, disk))
		end = EXTRACT_REFUSED;
	else
		end = a->verify ? verify(a, disk, outcome) :
				  measure(a, disk, &id, outcome);
	disk_close(disk);
	return end;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "DEVICE\n--list PROFILE",
		"Finds out by measuring where a disk's tracks lie and how its "
		"head moves, and writes that as a profile "
		"(traxfs-profile(5)).",
		NULL, NULL, NULL
	};
	struct outcome outcome = { 0 };
	struct arguments a = { 0 };
	enum extract_end end;

	argp_err_exit_status = EXTRACT_WRONG_USE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	end = a.list ? list(&a) : run(&a, &outcome);
	if (a.json)
		tell_json(&outcome, end);
	json_decref(outcome.parts);
	return (int)end;
}
