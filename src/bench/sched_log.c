/*
 * sched_log.c - log skipping (Anand et al., FAST 2008, section 6).
 *
 * fsync: a client appends 4 KB, syncs, thinks.  Measured are revolutions from
 * the call of fsync to its end, and writes: with a head that has been learned,
 * as a mount begins, the same behind a host that delays, and without a head.
 *
 * unpack: a tree of small files, then syncfs: what part of it the log costs.
 *
 * TPC-B-like: a client computes, commits, computes.  The journal of the paper
 * writes two blocks in sequence, one after the other; a null log writes
 * nothing.  As there, the log has the disk for itself: tables are cached, and
 * their blocks go to another disk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/sort.h"
#include "bench/rig.h"
#include "bench/sched_measures.h"
#include "extract/drive/fit.h"
#include "extract/probe/prober_disk.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "log/log.h"

/* Bytes of an append, and the first syncs after a mount, which are counted by
 * themselves. */
#define APPEND 4096u
#define FIRST 20u
#define DRIVE "modern"

static const char *drive_of(const struct sched_options *options)
{
	return options->drive ? options->drive : DRIVE;
}

/* What is known of the head when a measurement begins. */
enum knowledge {
	KNOW_ALL,	/* everything, learned by requests before */
	KNOW_PROFILE,	/* what the profile says, as after a mount */
	KNOW_ROUGHLY,	/* what the profile says, with a host that delays
			 * requests */
	KNOW_NOTHING,
};

static const char *const knowledge_names[] = {
	"head", "mount", "host", "none",
};

/* A host that is always somewhat late, and at times very late. */
static void host_between(struct spec *is, struct spec *model, void *arg)
{
	(void)model;
	(void)arg;
	is->read_overhead_ns += 100000;
	is->write_overhead_ns += 150000;
	is->noise = (struct spec_noise){
		.normal_ns = 8000,
		.exponential_ns = 20000,
		.late = 0.02,
		.late_min_ns = 100000,
		.late_max_ns = 3000000,
	};
}

static int drive_open(const struct sched_options *options,
		      enum knowledge knowledge, struct rig *rig)
{
	const struct rig_options rig_options = {
		.drive = drive_of(options), .seed = options->seed,
		.blind = knowledge != KNOW_ALL,
		.doubt = knowledge == KNOW_ROUGHLY ? host_between : NULL,
		.host_ns = options->host_ns,
		.device = options->device, .scratch = options->scratch,
	};
	const struct rig_load load = {
		.clients = 1, .sectors = 8, .read_percent = 50,
		.requests = 400, .seed = options->seed,
	};
	struct rig_result result;
	int err;

	if (options->device && !options->scratch) {
		msg_error("%s: this experiment writes (--scratch)",
			  options->device);
		return -EINVAL;
	}
	err = rig_open(&rig_options, rig);
	if (err || knowledge == KNOW_PROFILE || knowledge == KNOW_ROUGHLY)
		return err;
	err = rig_run(rig, &load, &result);
	if (err)
		rig_close(rig);
	return err;
}

/* ---- fsync ---- */

struct bench_mount {
	struct rig rig;
	struct fs *fs;
	uint64_t ino;
};

static void op_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* Virtual time goes on to a moment, or to what completes before it; real time
 * passes by itself. */
static void time_pass(const struct rig *rig, uint64_t to_ns)
{
	if (rig->sim)
		rig_pass(rig, to_ns);
}

/* Runs the file system once; unless *done, advances time to its next event, at
 * most to `until_ns`. */
static void mount_turn(struct bench_mount *m, uint64_t until_ns,
		       const bool *done)
{
	const uint64_t next_ns = fs_run(m->fs, m->rig.sim ? 0 : 1);

	if (!*done)
		time_pass(&m->rig, next_ns < until_ns ? next_ns : until_ns);
}

static int mount_do(struct bench_mount *m, struct fs_op *op)
{
	bool done = false;

	op->done = op_done;
	op->owner = &done;
	fs_submit(m->fs, op);
	while (!done)
		mount_turn(m, UINT64_MAX, &done);
	return op->rc;
}

static int mount_make(struct bench_mount *m, const struct profile *profile)
{
	struct disk *disk = m->rig.disk;
	const struct mkfs_options options = { .geom = m->rig.geom,
					      .profile = profile };
	struct mkfs_plan plan;
	int err = mkfs_plan(m->rig.env, &disk->limits, &options, &plan);

	return err ? err : mkfs_write(m->rig.env, disk, &options, &plan);
}

/* Does what a mount does first: checks whether the profile fits the drive,
 * which also shows where the head is. */
static int mount_past_reads(struct bench_mount *m,
			    const struct profile *profile, uint64_t seed,
			    struct head_past_read *past_reads)
{
	struct prober *prober = prober_disk_new(m->rig.env, m->rig.disk, false,
						NULL);
	struct drive_fit fit;
	int err;

	if (!prober)
		return -ENOMEM;
	err = fit_check(prober, profile, seed, &fit);
	for (unsigned i = 0; i < fit.reads && !err; i++)
		past_reads[i] = (struct head_past_read){
			fit.read[i].sector, fit.read[i].sectors,
			fit.read[i].submit_ns, fit.read[i].complete_ns,
		};
	prober_disk_free(prober);
	return err ? err : (int)fit.reads;
}

static int mount_start(struct bench_mount *m, enum knowledge knowledge,
		       uint64_t seed)
{
	struct fs_options options = { .head = m->rig.head };
	struct head_past_read past_reads[FIT_READS];
	struct profile *profile = NULL;
	int err = profile_from_spec(m->rig.model, &profile), n = 0;

	if (!err)
		err = mount_make(m, knowledge == KNOW_NOTHING ? NULL : profile);
	if (!err && !options.head && knowledge != KNOW_NOTHING)
		n = mount_past_reads(m, profile, seed, past_reads);
	if (n < 0)
		err = n;
	options.past_reads = past_reads;
	options.past_reads_n = (size_t)n;
	if (!err)
		err = fs_open(m->rig.env, m->rig.disk, &options, &m->fs);
	profile_free(profile);
	return err;
}

static int mount_open(const struct sched_options *options,
		      enum knowledge knowledge, struct bench_mount *m)
{
	struct fs_op op = { .type = FS_MKNOD, .ino = 1, .name = "file",
			    .mode = 0100644 };
	int err = drive_open(options, knowledge, &m->rig);

	if (err)
		return err;
	queue_close(m->rig.queue);
	m->rig.queue = NULL;
	err = mount_start(m, knowledge, options->seed);
	if (!err)
		err = mount_do(m, &op);
	m->ino = op.attr.ino;
	op = (struct fs_op){ .type = FS_OPEN, .ino = m->ino, .flags = 2 };
	return err ? err : mount_do(m, &op);
}

struct syncs {
	uint64_t n;		/* calls of fsync */
	uint64_t before;	/* writes before these calls ended */
	uint64_t writes;	/* writes in all */
	uint64_t *took_ns;
};

/* Writes are not counted in real time. */
static uint64_t writes_of(const struct bench_mount *m)
{
	return m->rig.sim ? sim_counts(m->rig.sim)->writes : 0;
}

static int sync_once(struct bench_mount *m, uint64_t i, struct syncs *s)
{
	static const uint8_t data[APPEND];
	struct fs_op write = { .type = FS_WRITE, .ino = m->ino,
			       .offset = i * APPEND, .size = APPEND,
			       .data = data };
	struct fs_op sync = { .type = FS_FSYNC, .ino = m->ino };
	int err = mount_do(m, &write);
	const uint64_t begin_ns = env_now_ns(m->rig.env);
	const uint64_t begun = writes_of(m);

	if (!err)
		err = mount_do(m, &sync);
	s->took_ns[i] = env_now_ns(m->rig.env) - begin_ns;
	s->before += writes_of(m) - begun;
	return err;
}

static int sync_all(struct bench_mount *m, uint64_t think_ns, uint64_t seed,
		    struct syncs *s)
{
	const uint64_t begun = writes_of(m);
	int err = 0;

	for (uint64_t i = 0; i < s->n && !err; i++) {
		uint64_t until_ns;
		bool never = false;

		err = sync_once(m, i, s);
		until_ns = env_now_ns(m->rig.env) + (think_ns ?
				rig_random(&seed) % (2 * think_ns) : 0);
		while (env_now_ns(m->rig.env) < until_ns)
			mount_turn(m, until_ns, &never);
	}
	s->writes = writes_of(m) - begun;
	return err;
}

static double median_of(const struct syncs *s, uint64_t first, uint64_t n)
{
	uint64_t took_ns[FIRST];

	memcpy(took_ns, s->took_ns + first, n * sizeof(*took_ns));
	qsort(took_ns, n, sizeof(*took_ns), sort_u64_cmp);
	return (double)took_ns[n / 2];
}

static void sync_print(const struct bench_mount *m, enum knowledge knowledge,
		       uint64_t think_ns, struct syncs *s)
{
	const double rev_ns = (double)m->rig.spec->mech.period_ps / 1000;
	const double first_ns = median_of(s, 0, FIRST);
	const double next_ns = median_of(s, FIRST, FIRST);
	double sum_ns = 0;

	for (uint64_t i = 0; i < s->n; i++)
		sum_ns += (double)s->took_ns[i];
	qsort(s->took_ns, s->n, sizeof(*s->took_ns), sort_u64_cmp);
	printf("%-6s %9.1f %8.3f %8.3f %8.3f %8.3f %10.3f %10.3f %8.3f "
	       "%8.3f\n",
	       knowledge_names[knowledge], (double)think_ns / 1e6,
	       sum_ns / (double)s->n / rev_ns,
	       (double)s->took_ns[s->n / 2] / rev_ns,
	       (double)s->took_ns[s->n * 99 / 100] / rev_ns,
	       (double)s->took_ns[s->n - 1] / rev_ns,
	       (double)s->before / (double)s->n,
	       (double)s->writes / (double)s->n,
	       first_ns / rev_ns, next_ns / rev_ns);
	fflush(stdout);
}

static int sync_row(const struct sched_options *options,
		    enum knowledge knowledge, uint64_t think_ns)
{
	struct syncs s = { .n = options->requests ? options->requests : 3000 };
	struct bench_mount m = { .fs = NULL };
	int err;

	s.n /= options->quick ? 10 : 1;
	s.n = s.n < 2 * FIRST ? 2 * FIRST : s.n;
	s.took_ns = calloc(s.n, sizeof(*s.took_ns));
	if (!s.took_ns)
		return -ENOMEM;
	err = mount_open(options, knowledge, &m);
	if (!err)
		err = sync_all(&m, think_ns, options->seed, &s);
	if (!err)
		sync_print(&m, knowledge, think_ns, &s);
	if (m.fs)
		fs_close(m.fs);
	rig_close(&m.rig);
	free(s.took_ns);
	return err;
}

int sched_fsync(const struct sched_options *options)
{
	static const uint64_t think_ns[] = {
		0, 1000000, 10000000, 100000000
	};
	int err = 0;

	printf("fsync of a 4 KB append, %s\n"
	       "                              revolutions         writes a "
	       "call      median revolutions\n"
	       "belief  think ms     mean   median      p99      max     "
	       "before        all   1st %u   2nd %u\n",
	       drive_of(options), FIRST, FIRST);
	for (unsigned k = 0; k <= KNOW_NOTHING && !err; k++)
		for (unsigned i = 0; i < 4 && !err; i++)
			err = sync_row(options, k, think_ns[i]);
	return err;
}

/* ---- unpacking a tree ---- */

/* Directories of the tree, files in each, and most bytes of a file. */
#define DIRS 20u
#define DIR_FILES 500u
#define MOST_BYTES 16384u
#define THINK_NS 60000u		/* think time of the program that unpacks, for
				 * each file */

static int unpack_file(struct bench_mount *m, uint64_t dir, unsigned i,
		       uint64_t *seed)
{
	static const uint8_t data[MOST_BYTES];
	const uint64_t until_ns = env_now_ns(m->rig.env) + THINK_NS;
	char name[32];
	struct fs_op op = { .type = FS_MKNOD, .ino = dir, .name = name,
			    .mode = 0100644 };
	bool never = false;
	int err;

	snprintf(name, sizeof(name), "file%u", i);
	err = mount_do(m, &op);
	if (err)
		return err;
	op = (struct fs_op){ .type = FS_WRITE, .ino = op.attr.ino,
			     .size = 512 + (uint32_t)(rig_random(seed) %
						      (MOST_BYTES - 512)),
			     .data = data };
	err = mount_do(m, &op);
	while (env_now_ns(m->rig.env) < until_ns)
		mount_turn(m, until_ns, &never);
	return err;
}

static int unpack_all(struct bench_mount *m, unsigned files, uint64_t seed)
{
	char name[32];
	int err = 0;

	for (unsigned d = 0; d < DIRS && !err; d++) {
		struct fs_op op = { .type = FS_MKDIR, .ino = 1, .name = name,
				    .mode = 040755 };

		snprintf(name, sizeof(name), "dir%u", d);
		err = mount_do(m, &op);
		for (unsigned i = 0; i < files && !err; i++)
			err = unpack_file(m, op.attr.ino, i, &seed);
	}
	return err;
}

static int unpack_row(const struct sched_options *options,
		      enum knowledge knowledge)
{
	const unsigned files = DIR_FILES / (options->quick ? 10 : 1);
	struct fs_op sync = { .type = FS_SYNCFS, .ino = 1 };
	uint64_t begin_ns, written_ns, writes;
	struct bench_mount m = { .fs = NULL };
	struct drive_times times;
	int err = mount_open(options, knowledge, &m);

	begin_ns = written_ns = err ? 0 : env_now_ns(m.rig.env);
	writes = err ? 0 : writes_of(&m);
	if (!err && m.rig.sim)
		drive_clear_times(sim_drive(m.rig.sim), begin_ns);
	if (!err)
		err = unpack_all(&m, files, options->seed);
	if (!err) {
		written_ns = env_now_ns(m.rig.env);
		err = mount_do(&m, &sync);
	}
	if (!err) {
		const uint64_t end_ns = env_now_ns(m.rig.env);

		times = (struct drive_times){ 0 };
		if (m.rig.sim)
			drive_get_times(sim_drive(m.rig.sim), end_ns, &times);
		printf("%-6s %8.2f %8.2f %8llu %8.2f %8.2f %8.2f\n",
		       knowledge_names[knowledge],
		       (double)(end_ns - begin_ns) / 1e9,
		       (double)(end_ns - written_ns) / 1e9,
		       (unsigned long long)(writes_of(&m) - writes),
		       (double)(times.seek_ns + times.switch_ns) / 1e9,
		       (double)times.rotation_ns / 1e9,
		       (double)times.transfer_ns / 1e9);
		fflush(stdout);
	}
	if (m.fs)
		fs_close(m.fs);
	rig_close(&m.rig);
	return err;
}

int sched_unpack(const struct sched_options *options)
{
	int err = 0;

	printf("%u files of %u bytes at most, with syncfs, %s\n"
	       "belief  seconds  of sync   writes     seek rotation transfer\n",
	       DIRS * DIR_FILES / (options->quick ? 10 : 1), MOST_BYTES,
	       drive_of(options));
	for (unsigned k = 0; k <= KNOW_NOTHING && !err; k++)
		err = unpack_row(options, k);
	return err;
}

/* ---- TPC-B-like ---- */

#define CHANGE_BYTES 400u	/* Bytes that a transaction logs. */

static const char *const journal_names[] = {
	"null", "skipping", "in order", "two writes",
};

struct bank {
	struct rig rig;
	struct log *log;
	struct super super;
	uint64_t sector;	/* sector of the next block, for JOURNAL_TWO */
	uint64_t cut_seq;
	bool waiting;
	int rc;
};

static void bank_committed(struct waiter *waiter, int rc)
{
	struct bank *b = waiter->owner;

	b->waiting = false;
	b->rc = rc;
}

static int bank_open(const struct sched_options *options,
		     enum sched_journal journal, struct bank *b)
{
	struct disk *disk;
	struct mkfs_plan plan;
	struct mkfs_options mkfs;
	int err = drive_open(options, journal == JOURNAL_SKIPPING ? KNOW_ALL :
			     KNOW_NOTHING, &b->rig);

	if (err)
		return err;
	disk = b->rig.disk;
	mkfs = (struct mkfs_options){ .geom = b->rig.geom };
	err = mkfs_plan(b->rig.env, &disk->limits, &mkfs, &plan);
	if (err)
		return err;
	b->super = plan.super;
	b->sector = b->super.log[0].sector;
	err = log_open(b->rig.env, b->rig.queue, &b->super, NULL, &b->log);
	return err ? err : log_start(b->log, 1, 1, 0, 0, 1);
}

/* Makes a checkpoint that is durable at once. */
static void bank_trim(struct bank *b)
{
	uint64_t seq, chain;

	if (b->cut_seq && log_durable_seq(b->log) >= b->cut_seq) {
		log_trim(b->log, b->cut_seq);
		b->cut_seq = 0;
	}
	if (!b->cut_seq && log_fill_percent(b->log) >= 40) {
		log_cut(b->log, 2, &seq, &chain);
		b->cut_seq = seq;
	}
}

/* Commits the record of a transaction, with changes of four blocks. */
static int bank_commit(struct bank *b)
{
	static const uint8_t change[CHANGE_BYTES];
	const struct iovec iov = { (void *)change, sizeof(change) };
	struct waiter waiter = { .seq = UINT64_MAX,
				 .done = bank_committed,
				 .owner = b };
	int n = 0;

	bank_trim(b);
	log_add(b->log, &iov, 1);
	b->waiting = true;
	log_commit(b->log, &waiter);
	while (b->waiting && n >= 0) {
		log_run(b->log, env_now_ns(b->rig.env));
		if (b->waiting)
			n = queue_poll(b->rig.queue, -1);
	}
	return n < 0 ? n : b->rc;
}

static int bank_two_writes(struct bank *b)
{
	static const uint8_t block[4096] __attribute__((aligned(4096)));
	const struct super_track *t = &b->super.log[0];
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		if (b->sector + 8 > t->sector + t->sectors)
			b->sector = t->sector;
		err = queue_write(b->rig.queue, b->sector, 8, block);
		b->sector += 8;
	}
	return err;
}

/* The client computes; the log may do background work meanwhile. */
static void bank_think(struct bank *b, uint64_t think_ns)
{
	const uint64_t until_ns = env_now_ns(b->rig.env) + think_ns;
	uint64_t now_ns, next_ns;

	while ((now_ns = env_now_ns(b->rig.env)) < until_ns) {
		next_ns = log_run(b->log, now_ns);
		if (next_ns > until_ns)
			next_ns = until_ns;
		if (!b->rig.sim)
			queue_poll_ns(b->rig.queue, next_ns <= now_ns ? 0 :
				      (int64_t)(next_ns - now_ns));
		else if (!queue_poll_ns(b->rig.queue, 0))
			time_pass(&b->rig, next_ns);
	}
}

/* The shortest time of any log: that of the command and of the record that
 * passes under the head. */
static double bank_least_ms(const struct bank *b)
{
	const struct spec *spec = b->rig.spec;
	const uint32_t unit = super_record_unit(&b->super);
	const uint64_t units = (sizeof(struct log_header) + CHANGE_BYTES +
				unit - 1) / unit;
	struct geom_track track;

	geom_track_of(b->rig.geom, b->super.log[0].sector, &track);
	return (double)(spec->write_overhead_ns +
			service_turn_ns(&spec->mech,
					units * unit / SECTOR_BYTES *
					track.per_sector)) / 1e6;
}

int sched_tpcb_time(const struct sched_options *options,
		    enum sched_journal journal, uint64_t think_ns, double *ms,
		    double *least_ms)
{
	uint64_t n = options->requests ? options->requests : 2000, begin_ns;
	struct bank b = { .log = NULL };
	uint64_t seed = options->seed;
	struct rig drained;
	int err = bank_open(options, journal, &b);

	n /= options->quick ? 10 : 1;
	begin_ns = err ? 0 : env_now_ns(b.rig.env);
	for (uint64_t i = 0; i < n && !err; i++) {
		bank_think(&b, think_ns / 2 + rig_random(&seed) % think_ns);
		if (journal == JOURNAL_TWO)
			err = bank_two_writes(&b);
		else if (journal != JOURNAL_NULL)
			err = bank_commit(&b);
	}
	if (!err)
		*ms = (double)(env_now_ns(b.rig.env) - begin_ns) / 1e6 /
		      (double)n;
	if (!err)
		*least_ms = bank_least_ms(&b);
	drained = b.rig;
	if (drained.queue)
		queue_drain(drained.queue);
	log_close(b.log);
	rig_close(&b.rig);
	return err;
}

int sched_tpcb(const struct sched_options *options)
{
	static const uint64_t think_ns[] = { 17000000, 10000000, 5000000 };
	double ms[4], least_ms = 0;
	int err = 0;

	printf("TPC-B-like transactions, cached, %s: ms each, of the null "
	       "log's\nms computed ", drive_of(options));
	for (unsigned j = 0; j < 4; j++)
		printf("%19s", journal_names[j]);
	printf("    least\n");
	for (unsigned i = 0; i < 3 && !err; i++) {
		printf("%11.1f ", (double)think_ns[i] / 1e6);
		for (unsigned j = 0; j < 4 && !err; j++) {
			err = sched_tpcb_time(options, j, think_ns[i], &ms[j],
					      &least_ms);
			if (!err)
				printf("%10.2f %7.1f%%", ms[j],
				       100 * ms[j] / ms[0]);
		}
		printf("%8.1f%%\n", 100 + 100 * least_ms / ms[0]);
		fflush(stdout);
	}
	printf("published: two writes 174 %%, skipping 107 %% of the null "
	       "log's\n");
	return err;
}
