/*
 * peers.c - see peers.h.
 *
 * One emulated drive (traxdisk) behind one loop device serves all: each round
 * makes each file system anew on it, and each workload starts with a new mount
 * and empty caches.  The rounds alternate between the file systems, so that
 * what else the machine does meets all of them.  Figures are medians over
 * rounds; head times are the drive's own.
 *
 * Commands know the device as $LOOP, the mount point as $MNT, and what
 * mkfs.traxfs is told of the drive as $PROFILE.
 */
#include "bench/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"
#include "bench/box.h"
#include "bench/guard.h"
#include "bench/peers_report.h"
#include "bench/shell.h"
#include "bench/work.h"
#include "diskmodel/geom.h"
#include "diskmodel/spec.h"
#include "sim/named.h"

struct peer {
	const char *name;
	const char *mkfs, *mount;
	/* What reads the disk beside a workload; NULL: as SCAN. */
	const char *scan;
};

/* What has no scrub is read as a backup of the device would. */
#define SCAN "ionice -c3 dd if=$LOOP of=/dev/null bs=512k iflag=direct"

static const struct peer peer_table[] = {
	{ "traxfs", "mkfs.traxfs -f $PROFILE $LOOP", "traxfs $LOOP \"$MNT\"",
	  "traxctl scrub start --wait \"$MNT\"" },
	{ "other", "\"$OTHER\"/mkfs.traxfs -f $PROFILE $LOOP",
	  "\"$OTHER\"/traxfs $LOOP \"$MNT\"",
	  "traxctl scrub start --wait \"$MNT\"" },
	{ "ext4", "mkfs.ext4 -q -F $LOOP", "mount -t ext4 $LOOP \"$MNT\"",
	  NULL },
	{ "xfs", "mkfs.xfs -q -f $LOOP", "mount -t xfs $LOOP \"$MNT\"",
	  NULL },
	{ "btrfs", "mkfs.btrfs -q -f $LOOP", "mount -t btrfs $LOOP \"$MNT\"",
	  "btrfs scrub start -B -c3 \"$MNT\"" },
	{ "f2fs", "mkfs.f2fs -q -f $LOOP", "mount -t f2fs $LOOP \"$MNT\"",
	  NULL },
	{ "jfs", "mkfs.jfs -q $LOOP", "mount -t jfs $LOOP \"$MNT\"", NULL },
};
#define PEERS (sizeof(peer_table) / sizeof(peer_table[0]))
/* Most rounds, and most workloads; more rounds are cut off. */
#define MAX_ROUNDS 16u
#define MAX_WORK 24u
/* Rounds, and the drive's size in MiB for a file system that is to age, unless
 * told: a size that can be filled in minutes. */
#define ROUNDS 3u
#define AGED_MIB 4096u
/* Seconds before a run that is not the first one: file systems may use them to
 * learn from the last one. */
#define PAUSE_SECONDS 3u

/* On a new file system, and on one that has aged. */
enum pass { PASS_NEW, PASS_AGED, PASSES };

struct bench {
	const struct peers_options *options;
	char dir[PATH_MAX];	/* directory of everything that is made */
	char mnt[PATH_MAX + 8];
	char group[PATH_MAX + 8];	/* file with the control group's name */
	struct guard guard;
	struct work_drive drive;
	bool has[PEERS];	/* the machine has it, and it is wanted */
	struct peer_sample sample[PEERS][PASSES][MAX_WORK][MAX_ROUNDS];
	unsigned rounds, percent;
	json_t *platter;
};

static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	if (!list)
		return true;
	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, n) && (!at[n] || at[n] == ','))
			return true;
	}
	return false;
}

/* ---- The drive ---- */

static int stats_reset(struct bench *b)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/drive/stats", b->dir);
	return shell_write(path, "reset\n");
}

static double member(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static int stats_read(struct bench *b, struct peer_head *head)
{
	char path[PATH_MAX + 32];
	json_error_t error;
	json_t *stats, *time;

	snprintf(path, sizeof(path), "%s/drive/stats", b->dir);
	stats = json_load_file(path, 0, &error);
	if (!stats) {
		msg_error("%s: %s", path, error.text);
		return -EIO;
	}
	time = json_object_get(stats, "head_ms");
	*head = (struct peer_head){
		.seek = (member(time, "seek") + member(time, "switch")) / 1e3,
		.rotation = member(time, "rotation") / 1e3,
		.transfer = member(time, "transfer") / 1e3,
		.ahead = member(time, "prefetch") / 1e3,
		.idle = member(time, "idle") / 1e3,
		.elapsed = member(stats, "elapsed_ms") / 1e3,
		.read_bytes = member(stats, "read_bytes"),
		.requests = member(stats, "reads") + member(stats, "writes"),
	};
	json_decref(stats);
	return 0;
}

/* Rate of the outermost tracks: each takes a revolution and the skew to the
 * next one. */
static double media_rate(const struct geom *geom, double revolution)
{
	uint64_t tracks = geom_tracks(geom) < 200 ? geom_tracks(geom) : 200;
	double sectors = 0, revolutions = 0;
	struct geom_track track, next;

	geom_track_at(geom, 0, &track);
	for (uint64_t i = 1; i < tracks; i++) {
		geom_track_at(geom, i, &next);
		sectors += track.sectors;
		revolutions += 1 + (angle)(next.start - track.start) /
					   4294967296.0;
		track = next;
	}
	return sectors * 512 / (revolutions * revolution);
}

/* Writes the specification of the drive, cut to the wanted size, and finds out
 * what it can do. */
static int drive_facts(struct bench *b)
{
	uint64_t mib = b->options->size_mib;
	char path[PATH_MAX + 32];
	struct spec *spec;
	struct geom *geom;
	FILE *f;
	int rc = named_spec(b->options->drive, &spec);

	if (rc)
		return rc;
	if (!mib && b->options->aged_percent)
		mib = AGED_MIB;
	if (mib && (!spec->lbns || mib * 2048 < spec->lbns))
		spec->lbns = mib * 2048;
	snprintf(path, sizeof(path), "%s/spec.json", b->dir);
	f = fopen(path, "w");
	rc = f ? spec_write(spec, f) : -errno;
	if (f && fclose(f))
		rc = -EIO;
	spec_free(spec);
	if (!rc)
		rc = spec_read(path, &spec);
	if (rc)
		return rc;
	rc = spec_geom(spec, &geom);
	spec_free(spec);
	if (rc)
		return rc;
	b->drive.revolution_seconds = geom_period_ns(geom) / 1e9;
	b->drive.media_bytes_per_second =
		media_rate(geom, b->drive.revolution_seconds);
	geom_free(geom);
	return 0;
}

static int drive_start(struct bench *b)
{
	const struct peers_options *o = b->options;
	char path[PATH_MAX + 32], loop[64];
	int rc;

	rc = shell_run("mkdir -p '%s/drive' '%s'", b->dir, b->mnt);
	if (!rc)
		rc = shell_run("traxdisk --profile '%s/spec.json' > "
			       "'%s/profile.json'", b->dir, b->dir);
	if (!rc)
		rc = shell_run("traxdisk --slow %u '%s/spec.json' '%s/image' "
			       "'%s/drive'", o->slow ? o->slow : 1, b->dir,
			       b->dir, b->dir);
	if (!rc)
		rc = shell_run("losetup --direct-io=on --find --show "
			       "'%s/drive/disk' > '%s/loop'", b->dir, b->dir);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/loop", b->dir);
	rc = shell_word(path, loop, sizeof(loop));
	snprintf(path, sizeof(path), "--profile %s/profile.json", b->dir);
	setenv("PROFILE", o->blind ? "--measure=0" : path, 1);
	setenv("LOOP", loop, 1);
	setenv("MNT", b->mnt, 1);
	return rc;
}

/* Which file systems can be made here?  Those that were asked for by name must
 * be there. */
static void find_peers(struct bench *b)
{
	const char *wanted = b->options->fs;

	for (unsigned p = 0; p < PEERS; p++) {
		const char *name = peer_table[p].name;
		char command[256];

		b->has[p] = wanted ? listed(wanted, name) :
				     strcmp(name, "other") != 0;
		snprintf(command, sizeof(command),
			 "command -v mkfs.%s >/dev/null && { grep -qw %s "
			 "/proc/filesystems || modprobe -q %s; }", name, name,
			 name);
		if (!wanted && p && b->has[p] && system(command))
			b->has[p] = false;
	}
}

/* ---- One workload on one file system ---- */

static int peer_mount(const struct peer *peer)
{
	return shell_run("%s", peer->mount);
}

static int peer_remount(struct bench *b, const struct peer *peer)
{
	int rc = shell_unmount(b->mnt);

	if (!rc)
		rc = shell_drop_caches();
	return rc ? rc : peer_mount(peer);
}

static pid_t scan_begin(const struct peer *peer)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	if (!freopen("/dev/null", "w", stdout) ||
	    !freopen("/dev/null", "w", stderr))
		_exit(1);
	execl("/bin/sh", "sh", "-c", peer->scan ? peer->scan : SCAN, NULL);
	_exit(1);
}

static void scan_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(-pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

static int run_once(struct bench *b, const struct work *work, const char *dir,
		    struct peer_sample *sample)
{
	struct work_result result = { .value = 0 };
	struct env *env = env_real();
	uint64_t start_ns = env_now_ns(env);
	int rc = work->run(dir, b->percent, &result), fd;

	fd = work->writes ? open(dir, O_RDONLY) : -1;
	if (fd >= 0) {
		if (!rc && syncfs(fd))
			rc = -errno;
		close(fd);
	}
	sample->elapsed = (env_now_ns(env) - start_ns) / 1e9;
	if (!rc)
		rc = stats_read(b, &sample->head);
	sample->value = result.value;
	/* All readers read 4 KiB. */
	sample->beside_mb = (sample->head.read_bytes - result.n * 4096.0) /
			    1e6 / sample->elapsed;
	peers_latencies(&result, sample->latency);
	free(result.latency);
	return rc;
}

static int measure(struct bench *b, const struct peer *peer,
		   const struct work *work, struct peer_sample *sample)
{
	char dir[2 * PATH_MAX];
	pid_t scan = 0;
	int rc;

	snprintf(dir, sizeof(dir), "%s/%s", b->mnt, work->name);
	if (mkdir(dir, 0755))
		return -errno;
	rc = work->prepare(dir, b->percent);
	for (unsigned run = 0; run <= work->before && !rc; run++) {
		if (run)
			sleep(PAUSE_SECONDS);
		rc = peer_remount(b, peer);
		if (!rc && work->beside)
			scan = scan_begin(peer);
		if (!rc)
			rc = stats_reset(b);
		if (!rc)
			rc = run_once(b, work, dir, sample);
		scan_end(scan);
	}
	/* What comes after it finds the room, and on an aged file system little
	 * else. */
	return rc ? rc : shell_run("rm -rf '%s'", dir);
}

static int run_pass(struct bench *b, unsigned p, enum pass pass, unsigned round)
{
	const struct peer *peer = &peer_table[p];
	int rc = 0;

	for (unsigned w = 0; work_table[w].name && !rc; w++) {
		struct peer_sample *sample = &b->sample[p][pass][w][round];

		if (!listed(b->options->work, work_table[w].name))
			continue;
		rc = measure(b, peer, &work_table[w], sample);
		if (rc)
			msg_error("%s on %s: %s", work_table[w].name,
				  peer->name, strerror(-rc));
		else
			msg_info("round %u: %s on %s: %.2f s", round + 1,
				 work_table[w].name, peer->name,
				 sample->elapsed);
	}
	return rc;
}

/* Where things lie, of the last round. */
static void keep_platter(struct bench *b)
{
	const size_t most = 1 << 16;
	char *text = calloc(1, most);

	if (text && getxattr(b->mnt, "trax.platter", text, most - 1) > 0) {
		json_decref(b->platter);
		b->platter = json_loads(text, 0, NULL);
	}
	free(text);
}

static int run_peer(struct bench *b, unsigned p, unsigned round)
{
	const struct peer *peer = &peer_table[p];
	char dir[PATH_MAX + 16];
	int rc;

	rc = shell_run("{ %s; } >/dev/null", peer->mkfs);
	if (!rc)
		rc = peer_mount(peer);
	if (rc)
		return rc;
	rc = run_pass(b, p, PASS_NEW, round);
	if (!rc && b->options->aged_percent) {
		snprintf(dir, sizeof(dir), "%s/aged", b->mnt);
		rc = mkdir(dir, 0755) ? -errno :
			work_age(dir, b->options->aged_percent);
		if (!rc)
			rc = run_pass(b, p, PASS_AGED, round);
	}
	if (!rc && p == 0)
		keep_platter(b);
	shell_unmount(b->mnt);
	return rc;
}

/* ---- The report ---- */

static void report_pass(struct bench *b, enum pass pass, json_t *rows)
{
	for (unsigned w = 0; work_table[w].name; w++) {
		const struct work *work = &work_table[w];
		double limit = work->limit_seconds ?
			work->limit_seconds(&b->drive, b->percent) : 0;
		char name[64];

		if (!listed(b->options->work, work->name))
			continue;
		snprintf(name, sizeof(name), "%s%s",
			 pass == PASS_AGED ? "aged " : "", work->name);
		for (unsigned p = 0; p < PEERS; p++)
			if (b->has[p])
				peers_add_row(rows, work, name,
					      peer_table[p].name,
					      b->sample[p][pass][w], b->rounds,
					      limit);
	}
}

static json_t *report_json(struct bench *b)
{
	json_t *rows = json_array();

	report_pass(b, PASS_NEW, rows);
	if (b->options->aged_percent)
		report_pass(b, PASS_AGED, rows);
	peers_compare(rows);
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o, s:o?}", "drive",
			 b->options->drive, "rounds", (int)b->rounds,
			 "percent", (int)b->percent, "memory_mib",
			 (int)b->options->memory_mib, "aged_percent",
			 (int)b->options->aged_percent, "rows", rows, "platter",
			 json_incref(b->platter));
}

static int run_rounds(struct bench *b)
{
	int rc = 0;

	for (unsigned r = 0; r < b->rounds && !rc; r++)
		for (unsigned p = 0; p < PEERS && !rc; p++)
			if (b->has[p])
				rc = run_peer(b, p, r);
	return rc;
}

static int run_all(struct bench *b)
{
	const unsigned memory = b->options->memory_mib;
	int rc = drive_facts(b);

	if (!rc)
		rc = drive_start(b);
	if (!rc && memory)
		rc = box_enter(b->group, memory);
	if (!rc)
		rc = run_rounds(b);
	if (memory)
		box_leave(b->group);
	return rc;
}

int peers_run(const struct peers_options *options, json_t **report)
{
	struct bench *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return -ENOMEM;
	b->options = options;
	b->rounds = options->rounds ? options->rounds : ROUNDS;
	if (b->rounds > MAX_ROUNDS)
		b->rounds = MAX_ROUNDS;
	b->percent = options->percent ? options->percent : 100;
	snprintf(b->dir, sizeof(b->dir), "%s/traxbench-XXXXXX",
		 options->image_dir ? options->image_dir : "/var/tmp");
	if (!mkdtemp(b->dir)) {
		msg_error("%s: %s", b->dir, strerror(errno));
		free(b);
		return -EIO;
	}
	snprintf(b->mnt, sizeof(b->mnt), "%s/mnt", b->dir);
	snprintf(b->group, sizeof(b->group), "%s/group", b->dir);
	find_peers(b);
	rc = guard_begin(&b->guard, b->dir);
	if (rc) {
		free(b);
		return rc;
	}
	rc = run_all(b);
	if (!rc) {
		*report = report_json(b);
		peers_print(json_object_get(*report, "rows"));
	}
	guard_end(&b->guard, b->dir);
	json_decref(b->platter);
	free(b);
	return rc;
}
