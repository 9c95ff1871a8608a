/*
 * traxdisk.c - serves an emulated drive as a file, DIRECTORY/disk, and its
 * statistics as DIRECTORY/stats.
 *
 * Bytes go to and from a sparse image as soon as a request arrives; the answer
 * is held back until the drive would have given it (sim/emul.h).
 *
 * Open, read, write and fsync of the disk are taken from the FUSE channel
 * before libfuse sees them, and answered with writev: the answer comes from
 * another thread later, and open asks for parallel direct writes, which libfuse
 * 3.14 does not know.  libfuse handles everything else.
 *
 * Opening for direct I/O keeps the page cache out: each read or write of the
 * caller is a request here, in parts of up to 1 MiB.
 */
#include "tools/traxdisk.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"
#include "diskmodel/spec.h"
#include "sim/emul.h"
#include "sim/named.h"

enum { OPT_SLOW = 256, OPT_FAST, OPT_TRACE, OPT_SEED, OPT_PROFILE, OPT_TRACKS,
       OPT_INFO, OPT_JSON };

/* Opens the image, makes it as large as the drive.  A descriptor or -errno. */
static int server_image(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err = -EBUSY;
		msg_error("%s: in use by another drive", path);
	} else if ((uint64_t)st.st_size > bytes) {
		err = -EINVAL;
		msg_error("%s: larger than the drive", path);
	} else if (ftruncate(fd, (off_t)bytes) < 0) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
	}
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int run(const struct spec *spec, const struct geom *geom,
	       const struct arguments *a)
{
	struct server s = {
		.spec = spec,
		.bytes = geom_sectors(geom) * SECTOR_BYTES,
		.slow = a->slow,
		.fast = a->fast,
		.started = time(NULL),
	};
	struct emul_options options = {
		.seed = a->seed,
		.slow = a->slow,
		.fast = a->fast,
	};
	int err = 0;

	s.image = server_image(a->args[1], s.bytes);
	if (s.image < 0)
		return s.image;
	if (a->trace) {
		options.trace = fopen(a->trace, "we");
		if (!options.trace) {
			err = -errno;
			msg_error("%s: %s", a->trace, strerror(errno));
		}
	}
	if (!err)
		err = server_run(&s, a, &options);
	if (options.trace && fclose(options.trace) && !err)
		err = -EIO;
	close(s.image);
	return err;
}

/* ---- facts ---- */

static void show_tracks(const struct geom *geom, bool json)
{
	struct geom_track t;

	if (!json)
		printf("# first sectors cylinder surface angle\n");
	for (uint64_t i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		printf(json ? "%s{ \"first\": %" PRIu64 ", \"sectors\": %u, "
			      "\"cylinder\": %u, \"surface\": %u, "
			      "\"angle\": %.10f }" :
			      "%s%" PRIu64 " %u %u %u %.10f\n",
		       !json ? "" : i ? ",\n  " : "[\n  ", t.first, t.sectors,
		       t.cylinder, t.surface, t.start / 4294967296.0);
	}
	if (json)
		printf("\n]\n");
}

static void show_info(const struct spec *spec, const struct geom *geom,
		      bool json)
{
	double rpm = 60e12 / (double)spec->mech.period_ps;
	uint64_t bytes = geom_sectors(geom) * SECTOR_BYTES;
	struct geom_track first, last;

	geom_track_at(geom, 0, &first);
	/* The last track of a disk may be shorter than those before it, so
	 * another one near the end is shown. */
	geom_track_at(geom, geom_tracks(geom) * 999 / 1000, &last);
	printf(json ? "{ \"bytes\": %" PRIu64 ", \"tracks\": %" PRIu64
		      ", \"surfaces\": %u, \"rpm\": %.3f, "
		      "\"physical_bytes\": %u, \"outer_track_sectors\": %u, "
		      "\"inner_track_sectors\": %u }\n" :
		      "bytes           %" PRIu64 "\ntracks          %" PRIu64
		      "\nsurfaces        %u\nrpm             %.3f\n"
		      "physical block  %u bytes\n"
		      "outer track     %u sectors\n"
		      "inner track     %u sectors\n",
	       bytes, geom_tracks(geom), spec->surfaces, rpm,
	       spec->physical_bytes, first.sectors, last.sectors);
}

static int show(const struct spec *spec, const struct geom *geom,
		const struct arguments *a)
{
	int err = 0;

	if (a->show == OPT_PROFILE)
		err = spec_write(spec, stdout);
	else if (a->show == OPT_TRACKS)
		show_tracks(geom, a->json);
	else
		show_info(spec, geom, a->json);
	if (!err && fflush(stdout))
		err = -errno;
	if (err)
		msg_error("standard output: %s", strerror(-err));
	return err;
}

/* ---- the command line ---- */

const char *argp_program_version = "traxdisk " PACKAGE_VERSION;

static const char doc[] =
	"Emulates a rotating disk in real time: serves the file MOUNTPOINT/disk"
	" from IMAGE, with the timing of the drive that SPEC describes (a file"
	" as in traxfs-profile(5), the name of a drive that came with it, or"
	" random:SEED for one that nobody has seen),"
	" and its statistics as MOUNTPOINT/stats.";

static const struct argp_option option_list[] = {
	{ "foreground", 'f', NULL, 0, "Stay in the foreground", 0 },
	{ "options", 'o', "OPTIONS", 0, "Mount options, as allow_other", 0 },
	{ "slow", OPT_SLOW, "N", 0, "Stretch all times by N", 0 },
	{ "fast", OPT_FAST, NULL, 0, "Answer at once, and only count the time",
	  0 },
	{ "seed", OPT_SEED, "N", 0, "Seed of jitter and phase; default: 0", 0 },
	{ "trace", OPT_TRACE, "FILE", 0, "Write a line for each request", 0 },
	{ "profile", OPT_PROFILE, NULL, 0,
	  "Print the true profile of SPEC and exit", 1 },
	{ "tracks", OPT_TRACKS, NULL, 0,
	  "Print a table of all its tracks and exit", 1 },
	{ "info", OPT_INFO, NULL, 0, "Print its size and shape and exit", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print tracks or info as JSON", 1 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static double parse_number(struct argp_state *state, const char *arg,
			   const char *what)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (errno || end == arg || *end || !(v >= 0) || v > 1e9)
		argp_error(state, "%s: not a number: %s", what, arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'f':
		a->foreground = true;
		return 0;
	case 'o':
		a->mount_options = arg;
		return 0;
	case OPT_SLOW:
		a->slow = parse_number(state, arg, "--slow");
		if (a->slow < 0.001)
			argp_error(state, "--slow: too small");
		return 0;
	case OPT_FAST:
		a->fast = true;
		return 0;
	case OPT_SEED:
		a->seed = (uint64_t)parse_number(state, arg, "--seed");
		return 0;
	case OPT_TRACE:
		a->trace = arg;
		return 0;
	case OPT_PROFILE:
	case OPT_TRACKS:
	case OPT_INFO:
		a->show = key;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->args_n == 3)
			return ARGP_ERR_UNKNOWN;
		a->args[a->args_n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->args_n != (a->show ? 1 : 3))
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_list, parse, "SPEC [IMAGE MOUNTPOINT]", doc,
		NULL, NULL, NULL
	};
	struct arguments a = { .slow = 1 };
	struct geom *geom = NULL;
	struct spec *spec = NULL;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	err = named_spec(a.args[0], &spec);
	if (!err)
		err = spec_geom(spec, &geom);
	if (!err)
		err = a.show ? show(spec, geom, &a) : run(spec, geom, &a);
	geom_free(geom);
	spec_free(spec);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
