/*
 * mkfs.traxfs.c - makes a file system.
 *
 * Nothing is written before everything has been looked at: mounts, the
 * kernel's claim on the device, known signatures (libblkid's and ours), the
 * geometry, and where everything would lie.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/env.h"
#include "base/msg.h"
#include "base/text.h"
#include "base/units.h"
#include "diskmodel/profile.h"
#include "diskmodel/spec.h"
#include "extract/drive/identify.h"
#include "extract/measure.h"
#include "extract/probe/prober_disk.h"
#include "fs/mkfs.h"
#include "tools/amounts.h"
#include "tools/device.h"
#include "tools/progress.h"
#include "tools/signature.h"

enum exit_code { EXIT_FAILED = 1, EXIT_WRONG_USE = 2, EXIT_REFUSED = 3 };

struct arguments {
	const char *device;
	const char *profile;
	const char *tracks;
	const char *label;
	uuid_t uuid;
	bool uuid_given;
	uint64_t measure_seconds;	/* UINT64_MAX: as long as it takes */
	bool dry_run;
	bool force;
	bool json;
	bool quiet;
};

const char *argp_program_version = "mkfs.traxfs " PACKAGE_VERSION;

#define MEASURE_SECONDS 20u	/* a user waits for mkfs that long */
#define MOST_MEASURE_SECONDS 1000000u	/* eleven days */

enum { KEY_PROFILE = 256, KEY_TRACKS, KEY_JSON, KEY_MEASURE };

static const struct argp_option options[] = {
	{ "profile", KEY_PROFILE, "FILE", 0,
	  "The drive's profile, as traxtract writes it "
	  "(traxfs-profile(5))", 0 },
	{ "tracks", KEY_TRACKS, "FILE", 0,
	  "The drive's geometry, a plain table of its tracks", 0 },
	{ "measure", KEY_MEASURE, "SECONDS", 0,
	  "Without --profile and --tracks: measure where tracks lie for that "
	  "long; 0: don't, full: until all are known; default: 20", 0 },
	{ "label", 'L', "LABEL", 0, "Name of the file system", 0 },
	{ "uuid", 'U', "UUID", 0, "UUID of the file system; default: random",
	  0 },
	{ "dry-run", 'n', NULL, 0, "Only show what would be done", 0 },
	{ "force", 'f', NULL, 0, "Overwrite what is there", 0 },
	{ "quiet", 'q', NULL, 0, "Say nothing but warnings and errors", 0 },
	{ "json", KEY_JSON, NULL, 0, "Report in JSON", 0 },
	{ 0 },
};

static void take_label(struct arguments *a, const char *label,
		       struct argp_state *state)
{
	if (strlen(label) >= sizeof(((struct super *)0)->label))
		argp_error(state, "the label is longer than 63 bytes");
	a->label = label;
}

static void take_measure(struct arguments *a, const char *arg,
			 struct argp_state *state)
{
	char *end;

	if (!strcmp(arg, "full")) {
		a->measure_seconds = UINT64_MAX;
		return;
	}
	a->measure_seconds = strtoul(arg, &end, 10);
	if (end == arg || *end || *arg == '-' ||
	    a->measure_seconds > MOST_MEASURE_SECONDS)
		argp_error(state, "\"%s\" is neither seconds nor full", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case KEY_PROFILE:
		a->profile = arg;
		return 0;
	case KEY_TRACKS:
		a->tracks = arg;
		return 0;
	case KEY_MEASURE:
		take_measure(a, arg, state);
		return 0;
	case KEY_JSON:
		a->json = true;
		return 0;
	case 'L':
		take_label(a, arg, state);
		return 0;
	case 'U':
		if (uuid_parse(arg, a->uuid))
			argp_error(state, "\"%s\" is not a UUID", arg);
		a->uuid_given = true;
		return 0;
	case 'n':
		a->dry_run = true;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->device)
			return ARGP_ERR_UNKNOWN;
		a->device = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->device)
			argp_usage(state);
		if (a->profile && a->tracks)
			argp_error(state, "--profile and --tracks exclude "
					  "each other");
		if (a->quiet && (a->json || a->dry_run))
			argp_error(state, "-q leaves nothing of --json and "
					  "--dry-run");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- What is there ---- */

static int read_geometry(const struct arguments *a, uint64_t sectors,
			 struct profile **profile)
{
	struct geom *geom;
	int rc;

	*profile = NULL;
	if (a->tracks) {
		rc = geom_read_table(a->tracks, sectors, &geom);
		if (rc)
			return rc;
		*profile = profile_from_geom(geom, PROFILE_GIVEN);
		if (*profile)
			return 0;
		geom_free(geom);
		return -ENOMEM;
	}
	if (!a->profile)
		return 0;
	rc = profile_read(a->profile, profile);
	if (!rc && geom_sectors((*profile)->geom) != sectors) {
		msg_error("%s: a drive of %llu sectors, but %s has %llu",
			  a->profile,
			  (unsigned long long)geom_sectors((*profile)->geom),
			  a->device, (unsigned long long)sectors);
		profile_free(*profile);
		*profile = NULL;
		rc = -EINVAL;
	}
	return rc;
}

/* Copies the drive's name; a question mark stands for each byte that is not
 * printable ASCII. */
static void take_name(char *out, const char *name)
{
	for (; *name; name++)
		*out++ = *name < ' ' || *name > '~' ? '?' : *name;
	*out = 0;
}

/* ---- Measuring ---- */

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* With --measure full the first Ctrl-C ends the measurement, and the file
 * system is made with what was found until then; the second one ends the
 * program. */
static void catch_interrupt(bool on)
{
	struct sigaction action = {
		.sa_handler = on ? stop : SIG_DFL,
		.sa_flags = (int)SA_RESETHAND,
	};

	sigaction(SIGINT, &action, NULL);
}

/* A measurement that takes longer than half a second is announced. Most devices
 * that do not rotate are recognised sooner. */
#define SAY_NS (500 * NS_PER_MS)

struct measuring {
	const struct arguments *arguments;
	struct progress progress;
	uint64_t begun_ns;
	bool said;		/* that it is measured was said */
};

static void say_measuring(struct measuring *m)
{
	const struct arguments *a = m->arguments;

	m->said = true;
	if (a->measure_seconds == UINT64_MAX)
		msg_info("%s: measuring all tracks; after Ctrl-C the file "
			 "system is made with what was found by then",
			 a->device);
	else
		msg_info("%s: measuring for up to %llu s (--measure 0 does "
			 "without)", a->device,
			 (unsigned long long)a->measure_seconds);
}

static void measured(void *arg, const char *stage, double part)
{
	struct measuring *m = arg;

	if (!m->said && env_now_ns(env_real()) - m->begun_ns >= SAY_NS)
		say_measuring(m);
	if (part <= 0)
		progress_stage(&m->progress, stage);
	progress_say(&m->progress, part, "");
}

static void say_profile(const struct arguments *a, const struct profile *p)
{
	msg_info("%s: %.2f rpm; the tracks of %.2f %% of it are known",
		 a->device, 60e12 / (double)p->mech.period_ps,
		 100.0 * (double)geom_known_sectors(p->geom) /
			 (double)p->sectors);
}

/* Is the device worth measuring? It is not when it declares that it does not
 * rotate. A loop device declares what lies below it, so it is tried. */
static bool may_rotate(const struct arguments *a, struct identity *id)
{
	*id = (struct identity){ .rotational = true };
	return !identify(a->device, "/sys", id) && !identify_refusal(id) &&
	       (!id->block || id->rotational || id->loop);
}

/* Is there room for a file system? A device that has none is refused later;
 * measuring it would only take time. */
static bool is_large_enough(const struct disk *disk)
{
	const struct mkfs_options o = { .geom = NULL };
	struct mkfs_plan *plan = calloc(1, sizeof(*plan));
	bool is = plan && !mkfs_plan(env_real(), &disk->limits, &o, plan);

	free(plan);
	return is;
}

/* Measures the device when no profile was given. A file system can be made
 * without any of the results, so errors are reported and ignored. */
static void measure(const struct arguments *a, struct disk *disk,
		    struct profile **profile)
{
	const bool full = a->measure_seconds == UINT64_MAX;
	struct measuring m = { .arguments = a,
			       .begun_ns = env_now_ns(env_real()) };
	const struct measure_options o = {
		.most_ns = full ? 0 : a->measure_seconds * NS_PER_SECOND,
		.full = full, .progress = measured, .arg = &m,
	};
	enum period_verdict verdict = PERIOD_GOOD;
	struct identity id;
	struct prober *prober;
	int rc;

	if (*profile || !a->measure_seconds || !may_rotate(a, &id) ||
	    !is_large_enough(disk))
		return;
	prober = prober_disk_new(env_real(), disk, false, &stopped);
	if (!prober)
		return;
	catch_interrupt(full);
	if (full)
		say_measuring(&m);
	progress_begin(&m.progress, "period");
	device_realtime(true);
	rc = measure_some(prober, &o, &verdict, profile);
	device_realtime(false);
	progress_clear(&m.progress);
	catch_interrupt(false);
	prober_disk_free(prober);
	/* Nobody expects an image file to rotate, so it is not reported that it
	 * does not. */
	if (rc || (verdict != PERIOD_GOOD &&
		   (verdict != PERIOD_FLAT || (id.block && !id.loop))))
		msg_info("%s: %s: %s", a->device, *profile ?
			 "not all is measured" : "not measured",
			 rc == -EINTR ? "interrupted" : rc ? strerror(-rc) :
			 period_verdict_text(verdict));
	if (!*profile)
		return;
	take_name((*profile)->model, id.model);
	take_name((*profile)->serial, id.serial);
	take_name((*profile)->firmware, id.firmware);
	say_profile(a, *profile);
}

/* ---- The report ---- */

struct report {
	char uuid[37];
	const char *label;
	const char *device;
	uint64_t bytes, data_bytes, log_bytes;
	uint64_t tracks;
	double known;			/* share of the disk */
	uint32_t log_tracks, node_tracks;
	uint32_t track_bytes;		/* length of a pseudo-track */
};

static void make_report(const struct arguments *a,
			const struct mkfs_plan *plan, const struct geom *geom,
			struct report *r)
{
	uint32_t i;

	*r = (struct report){
		.label = plan->super.label,
		.device = a->device,
		.bytes = plan->super.sectors * SECTOR_BYTES,
		.data_bytes = plan->data_sectors * SECTOR_BYTES,
		.known = geom ? (double)geom_known_sectors(geom) /
				(double)geom_sectors(geom) : 0,
		.log_tracks = plan->super.log_tracks,
		.node_tracks = plan->node_tracks,
		.track_bytes = plan->super.pseudo_track_sectors * SECTOR_BYTES,
	};
	uuid_unparse(plan->super.shown_uuid, r->uuid);
	for (i = 0; i < plan->super.log_tracks; i++)
		r->log_bytes += (uint64_t)plan->super.log[i].sectors *
				SECTOR_BYTES;
	if (geom)
		r->tracks = geom_tracks(geom);
}

static int print_json(const struct report *r)
{
	json_t *o = json_pack(
		"{s:s,s:s,s:s,s:I,s:I,s:I,s:i,s:i,s:b}", "device", r->device,
		"uuid", r->uuid, "label", r->label, "bytes",
		(json_int_t)r->bytes, "data_bytes", (json_int_t)r->data_bytes,
		"log_bytes", (json_int_t)r->log_bytes, "log_tracks",
		(int)r->log_tracks, "node_tracks", (int)r->node_tracks,
		"tracks_known", r->known > 0);

	if (!o)
		return -ENOMEM;
	if (r->tracks)
		json_object_set_new(o, "tracks",
				    json_integer((json_int_t)r->tracks));
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(o);
	return 0;
}

static void add_line(struct libscols_table *table, const char *name,
		     const char *value)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);

	if (!line)
		return;
	scols_line_set_data(line, 0, name);
	scols_line_set_data(line, 1, value);
}

static void add_lines(struct libscols_table *table, const struct report *r)
{
	char text[128];

	add_line(table, "device", r->device);
	add_line(table, "UUID", r->uuid);
	add_line(table, "label", *r->label ? r->label : "(none)");
	add_line(table, "size", size_text((double)r->bytes).s);
	add_line(table, "for files", size_text((double)r->data_bytes).s);
	if (r->known >= 1)
		snprintf(text, sizeof(text), "%llu, known",
			 (unsigned long long)r->tracks);
	else if (r->known > 0)
		snprintf(text, sizeof(text), "known for %.2f %% of it",
			 100 * r->known);
	else
		snprintf(text, sizeof(text), "not known: taken as %s each",
			 size_text(r->track_bytes).s);
	add_line(table, "tracks", text);
	snprintf(text, sizeof(text), "%s, %s",
		 count_text(r->log_tracks, "track").s,
		 size_text((double)r->log_bytes).s);
	add_line(table, "log", text);
	snprintf(text, sizeof(text), "%s at first",
		 count_text(r->node_tracks, "track").s);
	add_line(table, "tree nodes", text);
}

static int print_table(const struct report *r)
{
	struct libscols_table *table = scols_new_table();

	if (!table)
		return -ENOMEM;
	scols_table_enable_noheadings(table, 1);
	scols_table_new_column(table, "name", 0, 0);
	scols_table_new_column(table, "value", 0, 0);
	add_lines(table, r);
	scols_print_table(table);
	scols_unref_table(table);
	return 0;
}

/* ---- Doing it ---- */

static int make(const struct arguments *a, struct disk *disk,
		const struct profile *profile)
{
	const struct geom *geom = profile ? profile->geom : NULL;
	struct mkfs_options o = {
		.geom = geom,
		.profile = profile,
		.label = a->label,
		.uuid = a->uuid_given ? a->uuid : NULL,
		.root_uid = getuid(),
		.root_gid = getgid(),
	};
	struct mkfs_plan *plan = calloc(1, sizeof(*plan));
	struct report report;
	int rc;

	if (!plan)
		return -ENOMEM;
	rc = mkfs_plan(env_real(), &disk->limits, &o, plan);
	if (rc)
		msg_error("%s: %s", a->device, rc == -ENOSPC ? "too small; a "
			  "file system takes 16 MiB, with long tracks more" :
			  strerror(-rc));
	if (!rc && !a->dry_run)
		rc = mkfs_write(env_real(), disk, &o, plan);
	if (!rc && !a->quiet) {
		make_report(a, plan, geom, &report);
		rc = a->json ? print_json(&report) : print_table(&report);
	}
	free(plan);
	return rc;
}

static enum exit_code run(const struct arguments *a)
{
	struct profile *profile = NULL;
	struct disk *disk;
	int rc = device_open(a->device, a->dry_run, &disk);

	if (rc)
		return rc == -EBUSY ? EXIT_REFUSED : EXIT_FAILED;
	if (!a->force && signature_found(a->device, disk)) {
		disk_close(disk);
		return EXIT_REFUSED;
	}
	rc = read_geometry(a, disk->limits.sectors, &profile);
	if (!rc)
		measure(a, disk, &profile);
	if (!rc)
		rc = make(a, disk, profile);
	profile_free(profile);
	disk_close(disk);
	return rc ? EXIT_FAILED : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "DEVICE",
		"Makes a traxfs file system on a disk or an image file.",
		NULL, NULL, NULL,
	};
	struct arguments a = { .measure_seconds = MEASURE_SECONDS };

	argp_err_exit_status = EXIT_WRONG_USE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.quiet) {
		msg_set_level(MSG_WARN);
		progress_mute();
	}
	return run(&a);
}
