/*
 * peers.c - see peers.h.
 *
 * One emulated drive (traxdisk) behind one loop device serves all: each round
 * makes each file system anew on it, and each workload starts with a new mount
 * and empty caches.  The rounds alternate between the file systems, so that
 * what else the machine does meets all of them.  Figures are medians over
 * rounds; head times are the drive's own.
 */
#include "bench/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libsmartcols.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"
#include "bench/guard.h"
#include "bench/shell.h"
#include "bench/work.h"
#include "diskmodel/geom.h"
#include "diskmodel/spec.h"
#include "sim/named.h"

struct peer {
	const char *name;
	const char *mkfs;	/* formats: %s device */
	const char *mount;	/* %s device, %s mount point */
};

static const struct peer peer_table[] = {
	{ "traxfs", "mkfs.traxfs -f $PROFILE '%s'", "traxfs '%s' '%s'" },
	{ "other", "\"$OTHER\"/mkfs.traxfs -f $PROFILE '%s'",
	  "\"$OTHER\"/traxfs '%s' '%s'" },
	{ "ext4", "mkfs.ext4 -q -F '%s'", "mount -t ext4 '%s' '%s'" },
	{ "xfs", "mkfs.xfs -q -f '%s'", "mount -t xfs '%s' '%s'" },
	{ "btrfs", "mkfs.btrfs -q -f '%s'", "mount -t btrfs '%s' '%s'" },
};
#define PEERS (sizeof(peer_table) / sizeof(peer_table[0]))
/* Most rounds, and most workloads; more rounds are cut off. */
#define MAX_ROUNDS 16u
#define MAX_WORK 16u

/* What the drive counted, seconds of the drive's own time. */
struct peer_head {
	double seek, rotation, transfer;
	double requests;
};

struct sample {
	double elapsed;
	struct peer_head head;
};

struct bench {
	const struct peers_options *options;
	char dir[PATH_MAX];	/* directory of everything that is made */
	struct guard guard;
	char loop[64];
	struct work_drive drive;
	struct sample sample[PEERS][MAX_WORK][MAX_ROUNDS];
	unsigned rounds, percent;
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

static int drive_facts(struct bench *b)
{
	struct spec *spec;
	struct geom *geom;
	int rc = named_spec(b->options->drive, &spec);

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
	char path[PATH_MAX + 32];
	int rc;

	rc = shell_run("mkdir -p '%s/drive' '%s/mnt'", b->dir, b->dir);
	if (!rc)
		rc = shell_run("traxdisk --profile '%s' > '%s/profile.json'",
			 o->drive, b->dir);
	if (!rc)
		rc = shell_run("traxdisk --slow %u '%s' '%s/image' '%s/drive'",
			 o->slow ? o->slow : 1, o->drive, b->dir, b->dir);
	if (!rc)
		rc = shell_run("losetup --direct-io=on --find --show "
			       "'%s/drive/disk' > '%s/loop'", b->dir, b->dir);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/loop", b->dir);
	return shell_word(path, b->loop, sizeof(b->loop));
}

/* ---- One workload on one file system ---- */

static int peer_mount(struct bench *b, const struct peer *peer)
{
	char mnt[PATH_MAX + 8], command[2 * PATH_MAX + 128];

	snprintf(mnt, sizeof(mnt), "%s/mnt", b->dir);
	snprintf(command, sizeof(command), peer->mount, b->loop, mnt);
	return shell_run("%s", command);
}

static int peer_unmount(struct bench *b)
{
	char mnt[PATH_MAX + 8];

	snprintf(mnt, sizeof(mnt), "%s/mnt", b->dir);
	return shell_unmount(mnt);
}

static int peer_remount(struct bench *b, const struct peer *peer)
{
	int rc = peer_unmount(b);

	if (!rc)
		rc = shell_drop_caches();
	return rc ? rc : peer_mount(b, peer);
}

static int measure(struct bench *b, const struct peer *peer,
		   const struct work *work, struct sample *sample)
{
	struct env *env = env_real();
	char dir[PATH_MAX + 64];
	uint64_t start;
	int rc, fd;

	snprintf(dir, sizeof(dir), "%s/mnt/%s", b->dir, work->name);
	if (mkdir(dir, 0755))
		return -errno;
	rc = work->prepare(dir, b->percent);
	if (!rc)
		rc = peer_remount(b, peer);
	if (!rc)
		rc = stats_reset(b);
	if (rc)
		return rc;
	start = env_now_ns(env);
	rc = work->run(dir, b->percent);
	fd = work->writes ? open(dir, O_RDONLY) : -1;
	if (fd >= 0) {
		if (!rc && syncfs(fd))
			rc = -errno;
		close(fd);
	}
	sample->elapsed = (env_now_ns(env) - start) / 1e9;
	return rc ? rc : stats_read(b, &sample->head);
}

static int run_peer(struct bench *b, unsigned p, unsigned round)
{
	const struct peer *peer = &peer_table[p];
	char command[2 * PATH_MAX];
	int rc;

	snprintf(command, sizeof(command), peer->mkfs, b->loop);
	rc = shell_run("PROFILE=\"%s%s%s\"; %s >/dev/null",
		 b->options->blind ? "--measure=0" : "--profile ",
		 b->options->blind ? "" : b->dir,
		 b->options->blind ? "" : "/profile.json", command);
	if (!rc)
		rc = peer_mount(b, peer);
	if (rc)
		return rc;
	for (unsigned w = 0; work_table[w].name && !rc; w++) {
		if (!listed(b->options->work, work_table[w].name))
			continue;
		rc = measure(b, peer, &work_table[w], &b->sample[p][w][round]);
		if (rc)
			msg_error("%s on %s: %s", work_table[w].name,
				  peer->name, strerror(-rc));
		else
			msg_info("round %u: %s on %s: %.2f s", round + 1,
				 work_table[w].name, peer->name,
				 b->sample[p][w][round].elapsed);
	}
	peer_unmount(b);
	return rc;
}

/* ---- The report ---- */

static int by_elapsed(const void *a, const void *b)
{
	double x = ((const struct sample *)a)->elapsed;
	double y = ((const struct sample *)b)->elapsed;

	return x < y ? -1 : x > y;
}

static const struct sample *median(struct bench *b, unsigned p, unsigned w)
{
	qsort(b->sample[p][w], b->rounds, sizeof(struct sample), by_elapsed);
	return &b->sample[p][w][b->rounds / 2];
}

static json_t *row_json(struct bench *b, unsigned p, unsigned w,
			double traxfs)
{
	const struct sample *s = median(b, p, w);
	const struct work *work = &work_table[w];
	double limit = work->limit_seconds
			       ? work->limit_seconds(&b->drive, b->percent)
			       : 0;

	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
			 "workload", work->name, "fs", peer_table[p].name,
			 "elapsed_s", s->elapsed, "seek_s", s->head.seek,
			 "rotation_s", s->head.rotation, "transfer_s",
			 s->head.transfer, "requests", s->head.requests,
			 "traxfs_over_this",
			 s->elapsed > 0 ? traxfs / s->elapsed : 0,
			 "over_limit", limit > 0 ? s->elapsed / limit : 0);
}

static json_t *report_json(struct bench *b)
{
	json_t *rows = json_array();

	for (unsigned w = 0; work_table[w].name; w++)
		for (unsigned p = 0; p < PEERS; p++)
			if (listed(b->options->work, work_table[w].name) &&
			    listed(b->options->fs, peer_table[p].name))
				json_array_append_new(
					rows,
					row_json(b, p, w,
						 median(b, 0, w)->elapsed));
	return rows;
}

static void print_table(const json_t *rows)
{
	static const char *const columns[] = {
		"workload", "fs", "elapsed_s", "seek_s", "rotation_s",
		"transfer_s", "requests", "traxfs_over_this", "over_limit"
	};
	struct libscols_table *table;
	size_t i, n = sizeof(columns) / sizeof(columns[0]);
	const json_t *row;

	scols_init_debug(0);
	table = scols_new_table();
	for (i = 0; i < n; i++)
		scols_table_new_column(table, columns[i], 0,
				       i < 2 ? 0 : SCOLS_FL_RIGHT);
	json_array_foreach(rows, i, row) {
		struct libscols_line *line = scols_table_new_line(table, NULL);

		for (size_t c = 0; c < n; c++) {
			const json_t *v = json_object_get(row, columns[c]);
			char text[64];

			snprintf(text, sizeof(text),
				 json_number_value(v) >= 1000 ? "%.0f"
							      : "%.2f",
				 json_number_value(v));
			scols_line_set_data(line, c,
					    json_is_string(v)
						    ? json_string_value(v)
						    : text);
		}
	}
	scols_print_table(table);
	scols_unref_table(table);
}

static int report(struct bench *b)
{
	json_t *rows = report_json(b);
	int rc = 0;

	print_table(rows);
	if (b->options->json &&
	    json_dump_file(rows, b->options->json, JSON_INDENT(1))) {
		msg_error("%s: cannot be written", b->options->json);
		rc = -EIO;
	}
	json_decref(rows);
	return rc;
}

static int run_rounds(struct bench *b)
{
	int rc = 0;

	for (unsigned r = 0; r < b->rounds && !rc; r++)
		for (unsigned p = 0; p < PEERS && !rc; p++)
			if (listed(b->options->fs, peer_table[p].name))
				rc = run_peer(b, p, r);
	return rc;
}

int peers_run(const struct peers_options *options)
{
	struct bench *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return -ENOMEM;
	b->options = options;
	b->rounds = options->rounds ? options->rounds : 1;
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
	rc = guard_begin(&b->guard, b->dir);
	if (rc) {
		free(b);
		return rc;
	}
	rc = drive_facts(b);
	if (!rc)
		rc = drive_start(b);
	if (!rc)
		rc = run_rounds(b);
	if (!rc)
		rc = report(b);
	guard_end(&b->guard, b->dir);
	free(b);
	return rc;
}
