/*
 * test_fs_files.c - file data against a model, on simulated disks: random
 * operations on several files, remounts clean and crashed, full disks, small
 * pools, tracks of odd lengths.
 *
 * The model keeps, for each block of a file, the sums of all contents it has
 * had since the last fsync, and all sizes; after a crash the file must be one
 * of these, block by block.  Every clean unmount is followed by a check of the
 * whole file system, data included.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/csum.h"
#include "base/msg.h"
#include "check/check.h"
#include "fs/data/file_data.h"
#include "fs/mkfs.h"
#include "sched/freeblock/freeblock.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define FILES 4u
#define BLOCK 4096u
#define BLOCKS 640u
#define MAX_BYTES (BLOCKS * BLOCK)
#define HISTORY 24u
#define SIZES 128u

struct model {
	uint64_t ino;
	uint64_t size;
	uint8_t data[MAX_BYTES];
	unsigned sizes_n;
	uint64_t sizes[SIZES];
	uint8_t n[BLOCKS];
	uint64_t sum[BLOCKS][HISTORY];
};

struct setting {
	uint32_t logical, physical;
	bool odd_tracks, cached;
	bool gaps;		/* write-back waits for them */
	size_t memory;
	uint64_t mib;
	uint64_t latency_ns;	/* of a request; 0: as is usual */
};

static struct model models[FILES];
static uint8_t buffer[MAX_BYTES];

/* ---- The model ---- */

static uint64_t model_sum(const struct model *m, unsigned b)
{
	return csum(m->data + (size_t)b * BLOCK, BLOCK);
}

static void model_durable(struct model *m)
{
	unsigned b;

	for (b = 0; b < BLOCKS; b++) {
		m->n[b] = 1;
		m->sum[b][0] = model_sum(m, b);
	}
	m->sizes_n = 1;
	m->sizes[0] = m->size;
}

/* Has the history room for another change? */
static bool model_is_full(const struct model *m)
{
	unsigned b;

	for (b = 0; b < BLOCKS; b++)
		if (m->n[b] >= HISTORY - 1)
			return true;
	return m->sizes_n >= SIZES - 1;
}

static void model_changed(struct model *m, uint64_t first, uint64_t end)
{
	uint64_t b;

	for (b = first / BLOCK; b * BLOCK < end && b < BLOCKS; b++)
		m->sum[b][m->n[b]++] = model_sum(m, (unsigned)b);
	if (m->sizes[m->sizes_n - 1] != m->size)
		m->sizes[m->sizes_n++] = m->size;
}

static void model_resize(struct model *m, uint64_t size)
{
	uint64_t old = m->size;

	if (size < old)
		memset(m->data + size, 0, old - size);
	m->size = size;
	model_changed(m, size < old ? size : old, size < old ? old : old);
}

/* ---- Operations ---- */

static int do_read(struct rig *rig, uint64_t ino, uint64_t offset, void *data,
		   uint64_t n)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = offset,
			    .size = n, .buffer = data };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

static int do_write(struct rig *rig, uint64_t ino, uint64_t offset,
		    const void *data, uint64_t n)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = n, .data = data };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

static int do_fsync(struct rig *rig, uint64_t ino)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino };

	return rig_do(rig, &op);
}

static int do_resize(struct rig *rig, uint64_t ino, uint64_t size)
{
	struct fs_op op = { .type = FS_SETATTR, .ino = ino,
			    .flags = FS_SET_SIZE, .attr.size = size };

	return rig_do(rig, &op);
}

static int do_fallocate(struct rig *rig, uint64_t ino, int mode, uint64_t off,
			uint64_t n)
{
	struct fs_op op = { .type = FS_FALLOCATE, .ino = ino, .offset = off,
			    .size = n, .flags = (uint32_t)mode };

	return rig_do(rig, &op);
}

/* ---- Comparing ---- */

static void verify(struct rig *rig, struct model *m)
{
	struct fs_attr attr;
	uint64_t i;
	int n;

	ck_assert_int_eq(rig_getattr(rig, m->ino, &attr), 0);
	ck_assert_uint_eq(attr.size, m->size);
	n = do_read(rig, m->ino, 0, buffer, MAX_BYTES);
	ck_assert_int_eq(n, (int)m->size);
	for (i = 0; i < m->size && buffer[i] == m->data[i];)
		i++;
	ck_assert_msg(i == m->size, "ino %lu differs at %lu of %lu: %u not %u",
		      (unsigned long)m->ino, (unsigned long)i,
		      (unsigned long)m->size, buffer[i], m->data[i]);
}

static void verify_crashed(struct rig *rig, struct model *m)
{
	struct fs_attr attr;
	unsigned b, i;
	uint64_t sum;
	int n;

	ck_assert_int_eq(rig_getattr(rig, m->ino, &attr), 0);
	ck_assert_uint_le(attr.size, MAX_BYTES);
	memset(buffer, 0, sizeof(buffer));
	n = do_read(rig, m->ino, 0, buffer, MAX_BYTES);
	ck_assert_int_eq(n, (int)attr.size);
	for (b = 0; b < BLOCKS; b++) {
		sum = csum(buffer + (size_t)b * BLOCK, BLOCK);
		for (i = 0; i < m->n[b] && m->sum[b][i] != sum;)
			i++;
		/* What has not been written yet is a hole. */
		if (i == m->n[b] && (uint64_t)b * BLOCK < m->sizes[0])
			ck_abort_msg("ino %lu block %u is none of %u versions",
				     (unsigned long)m->ino, b, m->n[b]);
		if (i == m->n[b])
			for (i = 0; i < BLOCK; i++)
				ck_assert_int_eq(buffer[(size_t)b * BLOCK + i],
						 0);
	}
	if (m->sizes_n == 1)
		ck_assert_uint_eq(attr.size, m->sizes[0]);
	memcpy(m->data, buffer, sizeof(buffer));
	m->size = attr.size;
	model_durable(m);
}

static bool check_found_one(void *arg, const struct check_found *found)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", found->problem->name, found->text);
	return false;
}

/* Unmounts, checks all, mounts again. */
static void check_all(struct rig *rig)
{
	struct check_options options = { .data = true,
					 .found = check_found_one };
	struct check_result result;

	ck_assert_int_eq(fs_close(rig->fs), 0);
	ck_assert_int_eq(check_run(sim_env(rig->sim), sim_disk(rig->sim),
				   &options, &result), 0);
	ck_assert_uint_eq(result.found, 0);
	ck_assert(result.was_clean);
	ck_assert_uint_eq(result.bytes_bad, 0);
	ck_assert_int_eq(fs_open(sim_env(rig->sim), sim_disk(rig->sim),
				 &rig->options, &rig->fs), 0);
}

/* No extent crosses a track unless it is a run of whole tracks. */
static void check_tracks(struct rig *rig, const struct model *m)
{
	static struct fs_extent list[4096];
	struct fs_op op = { .type = FS_EXTENTS, .ino = m->ino,
			    .buffer = list, .size = 4096 };
	struct geom_track a, z;
	uint64_t i, end;

	ck_assert_int_eq(rig_do(rig, &op), 0);
	ck_assert_uint_le(op.result, 4096);
	for (i = 0; i < op.result; i++) {
		if (list[i].is_inline)
			continue;
		end = list[i].lbn + list[i].bytes / 512;
		geom_track_of(fs_geom(rig->fs), list[i].lbn, &a);
		geom_track_of(fs_geom(rig->fs), end - 1, &z);
		if (a.index == z.index)
			continue;
		ck_assert_uint_eq(a.first, list[i].lbn);
		ck_assert_uint_eq(z.first + z.sectors, end);
	}
}

/* ---- Disks ---- */

static struct geom *odd_geom(uint64_t sectors, uint64_t seed)
{
	char path[] = "/tmp/files-tracks-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	uint64_t first = 0, n, i = 0;
	struct geom *geom;

	ck_assert_ptr_nonnull(file);
	while (first < sectors) {
		n = 901 - (i / 40 % 7) * 100 - (i % 17 == seed % 17 ? 3 : 0);
		if (n > sectors - first)
			n = sectors - first;
		fprintf(file, "%lu %lu %lu %lu 0\n", (unsigned long)first,
			(unsigned long)n, (unsigned long)i / 2,
			(unsigned long)i % 2);
		first += n;
		i++;
	}
	fclose(file);
	ck_assert_int_eq(geom_read_table(path, sectors, &geom), 0);
	unlink(path);
	return geom;
}

static void disk_open_setting(struct rig *rig, const struct setting *setting,
			      uint64_t seed)
{
	struct sim_options options = {
		.seed = seed,
		.logical_bytes = setting->logical,
		.physical_bytes = setting->physical,
		.volatile_cache = setting->cached,
		.latency_ns = setting->latency_ns,
	};
	struct mkfs_options mkfs = { 0 };
	struct geom *geom = NULL;
	struct mkfs_plan plan;
	struct disk *disk;

	memset(rig, 0, sizeof(*rig));
	rig->options.memory_bytes = setting->memory;
	if (setting->gaps)
		rig->options.gap_writeback = FS_GAP_WRITEBACK_ALWAYS;
	rig->sim = sim_new(NULL, setting->mib << 11, &options);
	ck_assert_ptr_nonnull(rig->sim);
	disk = sim_disk(rig->sim);
	if (setting->odd_tracks)
		geom = odd_geom(setting->mib << 11, seed);
	mkfs.geom = geom;
	ck_assert_int_eq(mkfs_plan(sim_env(rig->sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(rig->sim), disk, &mkfs, &plan), 0);
	geom_free(geom);
	ck_assert_int_eq(fs_open(sim_env(rig->sim), disk, &rig->options,
				 &rig->fs), 0);
}

static void models_new(struct rig *rig)
{
	char name[8];
	unsigned i;

	memset(models, 0, sizeof(models));
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(rig_mknod(rig, 1, name, 0100644,
					   &models[i].ino), 0);
		model_durable(&models[i]);
	}
	ck_assert_int_eq(rig_sync(rig), 0);
}

/* ---- Random operations ---- */

static uint64_t random_offset(uint64_t *rng)
{
	uint64_t offset = test_random(rng) % MAX_BYTES;

	switch (test_random(rng) % 4) {
	case 0:
		return offset % 6000;
	case 1:
		return offset / BLOCK * BLOCK;
	default:
		return offset;
	}
}

static uint64_t random_length(uint64_t *rng)
{
	static const uint64_t most[] = { 300, 4096, 9000, 70000, 300000,
					 1200000 };

	return 1 + test_random(rng) % most[test_random(rng) % 6];
}

static void random_write(struct rig *rig, struct model *m, uint64_t *rng)
{
	uint64_t offset = random_offset(rng), n = random_length(rng), i;
	uint64_t end;

	if (test_random(rng) % 3 == 0)
		offset = m->size;
	if (offset >= MAX_BYTES)
		offset = 0;
	n = n < MAX_BYTES - offset ? n : MAX_BYTES - offset;
	end = offset + n;
	for (i = 0; i < n; i += 8) {
		uint64_t value = test_random(rng) | 1;

		memcpy(buffer + i, &value, n - i < 8 ? n - i : 8);
	}
	memcpy(m->data + offset, buffer, n);
	ck_assert_int_eq(do_write(rig, m->ino, offset, buffer, n), (int)n);
	if (end > m->size)
		m->size = end;
	model_changed(m, offset, end);
}

static void random_read(struct rig *rig, struct model *m, uint64_t *rng)
{
	uint64_t offset = random_offset(rng), n = random_length(rng);
	uint64_t want = offset < m->size ? m->size - offset : 0;

	want = want < n ? want : n;
	n = n < MAX_BYTES ? n : MAX_BYTES;
	ck_assert_int_eq(do_read(rig, m->ino, offset, buffer, n), (int)want);
	ck_assert_mem_eq(buffer, m->data + offset, want);
}

static void random_cut(struct rig *rig, struct model *m, uint64_t *rng)
{
	uint64_t offset = random_offset(rng), n = random_length(rng), end;
	int mode = FALLOC_FL_KEEP_SIZE;

	n = n < MAX_BYTES - offset ? n : MAX_BYTES - offset;
	end = offset + n;
	switch (test_random(rng) % 5) {
	case 0:
		ck_assert_int_eq(do_resize(rig, m->ino, offset), 0);
		model_resize(m, offset);
		return;
	case 1:
		mode = test_random(rng) % 2 ? 0 : FALLOC_FL_KEEP_SIZE;
		ck_assert_int_eq(do_fallocate(rig, m->ino, mode, offset, n),
				 0);
		if (!mode && end > m->size)
			model_resize(m, end);
		return;
	case 2:
		mode = FALLOC_FL_ZERO_RANGE;
		if (end > m->size)
			mode |= FALLOC_FL_KEEP_SIZE;
		break;
	default:
		mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	}
	ck_assert_int_eq(do_fallocate(rig, m->ino, mode, offset, n), 0);
	memset(m->data + offset, 0, n);
	model_changed(m, offset, end);
}

static void random_copy(struct rig *rig, struct model *m, uint64_t *rng)
{
	struct model *to = &models[test_random(rng) % FILES];
	uint64_t offset = random_offset(rng), n = random_length(rng);
	uint64_t offset2 = random_offset(rng);
	struct fs_op op = { .type = FS_COPY_RANGE, .ino = m->ino,
			    .ino2 = to->ino, .offset = offset,
			    .offset2 = offset2, .size = n };

	if (to == m || offset2 + n > MAX_BYTES || model_is_full(to))
		return;
	ck_assert_int_eq(rig_do(rig, &op), 0);
	n = offset < m->size ? (n < m->size - offset ? n : m->size - offset) :
	    0;
	ck_assert_uint_eq(op.result, n);
	memcpy(to->data + offset2, m->data + offset, n);
	if (n && offset2 + n > to->size)
		to->size = offset2 + n;
	model_changed(to, offset2, offset2 + n);
}

static void all_durable(struct rig *rig)
{
	unsigned i;

	ck_assert_int_eq(rig_sync(rig), 0);
	for (i = 0; i < FILES; i++)
		model_durable(&models[i]);
}

static void random_crash(struct rig *rig, uint64_t *rng)
{
	unsigned i;
	uint64_t k = test_random(rng) % 12;

	if (k) /* in the middle of something */
		sim_power_cut_at(rig->sim, k, SIM_CUT_RANDOM,
				 test_random(rng));
	else
		ck_assert_int_eq(sim_power_cut(rig->sim, SIM_CUT_RANDOM,
					       test_random(rng)), 0);
	for (i = 0; i < 2000 && !sim_is_off(rig->sim); i++) {
		fs_run(rig->fs, 1);
		sim_advance(rig->sim, 50000000);
	}
	if (!sim_is_off(rig->sim))
		ck_assert_int_eq(sim_power_cut(rig->sim, SIM_CUT_RANDOM, 1),
				 0);
	sim_power_cut_at(rig->sim, 0, SIM_CUT_KEEP, 0);
	fs_abandon(rig->fs);
	sim_restart(rig->sim);
	ck_assert_int_eq(fs_open(sim_env(rig->sim), sim_disk(rig->sim),
				 &rig->options, &rig->fs), 0);
	for (i = 0; i < FILES; i++)
		verify_crashed(rig, &models[i]);
}

static void random_pass(struct rig *rig, uint64_t *rng)
{
	unsigned i;

	switch (test_random(rng) % 8) {
	case 0:
		check_all(rig);
		for (i = 0; i < FILES; i++) {
			verify(rig, &models[i]);
			check_tracks(rig, &models[i]);
			model_durable(&models[i]);
		}
		break;
	case 1:
	case 2:
		random_crash(rig, rng);
		break;
	case 3:
		all_durable(rig);
		break;
	default:
		sim_advance(rig->sim, test_random(rng) % 40000000000);
		for (i = 0; i < 20; i++)
			fs_run(rig->fs, 1);
		break;
	}
}

static void random_step(struct rig *rig, uint64_t *rng)
{
	struct model *m = &models[test_random(rng) % FILES];
	unsigned what = (unsigned)(test_random(rng) % 100);

	if (model_is_full(m))
		all_durable(rig);
	if (what < 40) {
		random_write(rig, m, rng);
	} else if (what < 65) {
		random_read(rig, m, rng);
	} else if (what < 78) {
		random_cut(rig, m, rng);
	} else if (what < 83) {
		random_copy(rig, m, rng);
	} else if (what < 94) {
		ck_assert_int_eq(do_fsync(rig, m->ino), 0);
		model_durable(m);
	} else {
		random_pass(rig, rng);
	}
}

static void random_run(const struct setting *setting, uint64_t seed,
		       unsigned steps)
{
	uint64_t rng = seed;
	struct rig rig;
	unsigned i;

	msg_set_level(MSG_WARN);
	disk_open_setting(&rig, setting, seed);
	models_new(&rig);
	for (i = 0; i < steps; i++)
		random_step(&rig, &rng);
	check_all(&rig);
	for (i = 0; i < FILES; i++)
		verify(&rig, &models[i]);
	rig_close(&rig);
}

/* ---- Several operations at once ---- */

struct client {
	struct model *m;
	struct fs_op op;
	bool busy;
	uint64_t n;
	uint8_t data[200000];
};

static struct client clients[FILES];

static void client_done(struct fs_op *op)
{
	struct client *client = op->owner;

	client->busy = false;
}

/* What a client asks for next; the model follows when it is over. */
static void client_start(struct rig *rig, struct client *client, uint64_t *rng)
{
	struct model *m = client->m;
	struct fs_op *op = &client->op;
	uint64_t offset = random_offset(rng), i;

	client->n = random_length(rng) % sizeof(client->data) + 1;
	if (client->n > MAX_BYTES - offset)
		client->n = MAX_BYTES - offset;
	*op = (struct fs_op){ .ino = m->ino, .offset = offset,
			      .size = client->n, .done = client_done,
			      .owner = client };
	switch (test_random(rng) % 8) {
	case 0:
		op->type = FS_FSYNC;
		break;
	case 1:
		op->type = FS_SETATTR;
		op->flags = FS_SET_SIZE;
		op->attr.size = offset;
		break;
	case 2:
		op->type = FS_FALLOCATE;
		op->flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
		break;
	case 3:
	case 4:
		op->type = FS_READ;
		op->buffer = client->data;
		break;
	default:
		op->type = FS_WRITE;
		op->data = client->data;
		for (i = 0; i < client->n; i++)
			client->data[i] = (uint8_t)(test_random(rng) >> 9);
	}
	client->busy = true;
	fs_submit(rig->fs, op);
}

static void client_over(struct client *client)
{
	struct fs_op *op = &client->op;
	struct model *m = client->m;
	uint64_t end = op->offset + client->n;

	ck_assert_int_eq(op->rc, 0);
	if (op->type == FS_SETATTR)
		model_resize(m, op->attr.size);
	if (op->type == FS_FALLOCATE)
		memset(m->data + op->offset, 0, client->n);
	if (op->type == FS_WRITE)
		memcpy(m->data + op->offset, client->data, client->n);
	if (op->type == FS_WRITE && end > m->size)
		m->size = end;
	if (op->type == FS_READ) {
		end = end < m->size ? end : m->size;
		ck_assert_uint_eq(op->result,
				  end > op->offset ? end - op->offset : 0);
		ck_assert_mem_eq(client->data, m->data + op->offset,
				 op->result);
	}
	model_durable(m);
}

static void clients_run(const struct setting *setting, uint64_t seed,
			unsigned rounds)
{
	struct fs_op sync = { .type = FS_SYNCFS };
	uint64_t rng = seed;
	struct rig rig;
	unsigned i, r;

	msg_set_level(MSG_WARN);
	disk_open_setting(&rig, setting, seed);
	models_new(&rig);
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < FILES; i++) {
			clients[i].m = &models[i];
			client_start(&rig, &clients[i], &rng);
		}
		/* Runs all of them to their end on the way. */
		if (r % 16 == 0)
			ck_assert_int_eq(rig_do(&rig, &sync), 0);
		for (i = 0; i < FILES; i++) {
			while (clients[i].busy)
				fs_run(rig.fs, 1);
			client_over(&clients[i]);
		}
	}
	for (i = 0; i < FILES; i++)
		verify(&rig, &models[i]);
	check_all(&rig);
	rig_close(&rig);
}

static const struct setting settings[] = {
	{ .logical = 512, .physical = 512, .memory = 32 << 20, .mib = 96 },
	{ .logical = 512, .physical = 512, .odd_tracks = true,
	  .memory = 64 << 20, .mib = 96 },
	{ .logical = 4096, .physical = 4096, .cached = true,
	  .memory = 32 << 20, .mib = 128 },
	{ .logical = 512, .physical = 4096, .odd_tracks = true, .cached = true,
	  .memory = 48 << 20, .mib = 96 },
	{ .logical = 512, .physical = 512, .gaps = true,
	  .memory = 32 << 20, .mib = 96 },
	{ .logical = 512, .physical = 4096, .cached = true, .gaps = true,
	  .memory = 32 << 20, .mib = 96 },
};

static unsigned test_steps(void)
{
	const char *steps = getenv("TRAX_TEST_STEPS");

	return steps ? (unsigned)atoi(steps) : 250;
}

static uint64_t test_seed(void)
{
	const char *seed = getenv("TRAX_TEST_SEED");

	return seed ? strtoull(seed, NULL, 0) : 1;
}

START_TEST(random_operations_are_as_in_the_model)
{
	uint64_t seed = test_seed() * 100 + (uint64_t)_i;

	fprintf(stderr, "setting %d, seed %lu\n", _i, (unsigned long)seed);
	random_run(&settings[_i], seed, test_steps());
}
END_TEST

START_TEST(clients_at_once_read_what_they_wrote)
{
	clients_run(&settings[_i], test_seed() * 100 + (uint64_t)_i,
		    test_steps());
}
END_TEST

/* A run in which the log went over the end of one of its tracks. */
START_TEST(clients_fill_the_log)
{
	clients_run(&settings[1], 4101, 600);
}
END_TEST

/* ---- Particular things ---- */

START_TEST(a_small_file_is_inline)
{
	struct fs_extent list[4];
	struct fs_op op = { .type = FS_EXTENTS, .buffer = list, .size = 4 };
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	memset(buffer, 'x', 5000);
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 2048), 2048);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	op.ino = ino;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.result, 1);
	ck_assert(list[0].is_inline);
	ck_assert_uint_eq(list[0].bytes, 2048);
	ck_assert_int_eq(do_write(&rig, ino, 2048, buffer, 1), 1);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.result, 1);
	ck_assert(!list[0].is_inline);
	check_all(&rig);
	rig_close(&rig);
}
END_TEST

static void busy_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* Does an operation without letting any time pass that it does not need. */
static void busy_do(struct rig *rig, struct fs_op *op)
{
	unsigned turns = 0;
	bool done = false;

	op->done = busy_done;
	op->owner = &done;
	fs_submit(rig->fs, op);
	while (!done) {
		ck_assert_uint_lt(turns++, 10000);
		fs_run(rig->fs, 1);
	}
	ck_assert_int_eq(op->rc, 0);
}

/* Lines that say how much is left, and when the first one came. */
static struct {
	struct rig *rig;
	unsigned syncs, closes;
	uint64_t first_ns;
} said;

static void hear_left(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (!said.syncs && strstr(line, "left to write"))
		said.first_ns = sim_now_ns(said.rig->sim);
	said.syncs += !!strstr(line, "sync or unmount waits");
	said.closes += !!strstr(line, "being closed");
}

/* Who waits for long reads in the log for how much. */
START_TEST(statfs_says_what_is_left)
{
	static const struct setting setting = {
		.logical = 512, .physical = 4096, .memory = 128 << 20,
		.mib = 400, .latency_ns = 400000000,
	};
	struct fs_op sync = { .type = FS_SYNCFS };
	uint64_t ino, begin_ns;
	struct rig rig;
	unsigned i;

	disk_open_setting(&rig, &setting, 1);
	memset(&said, 0, sizeof(said));
	said.rig = &rig;
	msg_set_level(MSG_INFO);
	msg_set_sink(hear_left, NULL);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	ck_assert_int_eq(rig_do(&rig, &sync), 0);
	ck_assert_uint_eq(said.syncs, 0);
	for (i = 0; i < 128; i++) {
		struct fs_op write = { .type = FS_WRITE, .ino = ino,
				       .offset = (uint64_t)i << 16,
				       .size = 1 << 16, .data = buffer };

		busy_do(&rig, &write);
	}
	begin_ns = sim_now_ns(rig.sim);
	ck_assert_int_eq(rig_do(&rig, &sync), 0);
	ck_assert_uint_gt(sim_now_ns(rig.sim) - begin_ns, 1500000000);
	ck_assert_uint_ge(said.syncs, 1);
	ck_assert_uint_ge(said.first_ns - begin_ns, 1000000000);
	ck_assert_uint_le(said.first_ns - begin_ns, 1500000000);
	ck_assert_uint_eq(said.closes, 0);
	msg_set_sink(NULL, NULL);
	rig_close(&rig);
}

/* One record for each fsync of an append, and little besides. */
START_TEST(an_append_with_fsync_is_one_record)
{
	const struct sim_counts *counts;
	uint64_t ino, before, writes;
	unsigned i, n = 1000;
	struct rig rig;

	rig_open(&rig, 1024, 1);
	counts = sim_counts(rig.sim);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_settle(&rig);
	before = counts->writes;
	memset(buffer, 'x', BLOCK);
	for (i = 0; i < n; i++) {
		struct fs_op write = { .type = FS_WRITE, .ino = ino,
				       .offset = (uint64_t)i * BLOCK,
				       .size = BLOCK, .data = buffer };
		struct fs_op sync = { .type = FS_FSYNC, .ino = ino };

		busy_do(&rig, &write);
		writes = counts->writes;
		busy_do(&rig, &sync);
		ck_assert_uint_ge(counts->writes - writes, 1);
	}
	rig_settle(&rig);
	writes = counts->writes - before;
	ck_assert_msg(writes <= n * 11 / 10, "%lu writes for %u fsyncs",
		      (unsigned long)writes, n);
	check_all(&rig);
	rig_close(&rig);
}
END_TEST

START_TEST(a_full_disk_can_be_emptied)
{
	uint64_t ino, ino2, offset = 0, free_blocks;
	struct fs_op stat = { .type = FS_STATFS };
	struct rig rig;
	int n, i;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_do(&rig, &stat), 0);
	free_blocks = stat.statfs.avail;
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "g", 0100644, &ino2), 0);
	memset(buffer, 'x', 100000);
	while ((n = do_write(&rig, ino, offset, buffer, 100000)) > 0)
		offset += (uint64_t)n;
	ck_assert_int_eq(n, -ENOSPC);
	ck_assert_uint_gt(offset, free_blocks * BLOCK * 9 / 10);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	/* What has its place can still be overwritten. */
	for (i = 0; i < 40; i++)
		ck_assert_int_eq(do_write(&rig, ino, (uint64_t)i * 250000,
					  buffer, 100000), 100000);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_int_eq(do_resize(&rig, ino, 0), 0);
	ck_assert_int_eq(do_write(&rig, ino2, 0, buffer, 100000), 100000);
	ck_assert_int_eq(do_fsync(&rig, ino2), 0);
	check_all(&rig);
	ck_assert_int_eq(rig_do(&rig, &stat), 0);
	ck_assert_uint_gt(stat.statfs.avail, free_blocks * 9 / 10);
	rig_close(&rig);
}
END_TEST

/* A write or copy that is longer than the room says what it has written. */
START_TEST(what_had_room_is_counted)
{
	struct fs_op op = { .type = FS_WRITE, .size = 100 * BLOCK,
			    .data = buffer };
	struct fs_op attr = { .type = FS_GETATTR };
	struct fs_op copy = { .type = FS_COPY_RANGE, .size = 100 * BLOCK };
	struct rig rig;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &op.ino), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "g", 0100644, &copy.ino2), 0);
	memset(buffer, 'x', 100 * BLOCK);
	while (!rig_do(&rig, &op)) {
		ck_assert_uint_eq(op.result, op.size);
		op.offset += op.result;
	}
	ck_assert_int_eq(op.rc, -ENOSPC);
	ck_assert_uint_gt(op.result, 0);
	ck_assert_uint_lt(op.result, op.size);
	attr.ino = op.ino;
	ck_assert_int_eq(rig_do(&rig, &attr), 0);
	ck_assert_uint_eq(attr.attr.size, op.offset + op.result);
	ck_assert_int_eq(do_resize(&rig, op.ino, op.offset - 10 * BLOCK), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	copy.ino = op.ino;
	ck_assert_int_eq(rig_do(&rig, &copy), 0);
	ck_assert_uint_gt(copy.result, 0);
	ck_assert_uint_lt(copy.result, copy.size);
	attr.ino = copy.ino2;
	ck_assert_int_eq(rig_do(&rig, &attr), 0);
	ck_assert_uint_eq(attr.attr.size, copy.result);
	rig_close(&rig);
}
END_TEST

/* Data that a program takes for written has room when others have none, and
 * what lies between it and has a place takes nothing of that. */
START_TEST(accepted_data_has_more_room)
{
	struct fs_op op = { .type = FS_WRITE, .size = BLOCK, .data = buffer };
	uint64_t full, room, i;
	struct rig rig;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &op.ino), 0);
	memset(buffer, 'x', 100 * BLOCK);
	while (!rig_do(&rig, &op))
		op.offset += BLOCK;
	ck_assert_int_eq(op.rc, -ENOSPC);
	ck_assert_int_eq(rig_sync(&rig), 0);
	full = op.offset;
	room = fs_room_accepted(rig.fs);
	ck_assert_uint_lt(fs_room(rig.fs), BLOCK);
	ck_assert_uint_gt(room, 20 * BLOCK);
	/* The last one has no place yet. */
	op.flags = FS_WRITE_ACCEPTED;
	op.size = 100 * BLOCK;
	op.offset = full - 99 * BLOCK;
	memset(buffer, 'y', 100 * BLOCK);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(fs_room_accepted(rig.fs), room - BLOCK);
	op.size = BLOCK;
	for (i = 1; i < 20; i++) {
		op.offset = full + i * BLOCK;
		ck_assert_int_eq(rig_do(&rig, &op), 0);
	}
	op.offset = full + i * BLOCK;
	op.flags = 0;
	ck_assert_int_eq(rig_do(&rig, &op), -ENOSPC);
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	rig_remount(&rig);
	ck_assert_int_eq(do_read(&rig, op.ino, full - 99 * BLOCK, buffer,
				 200 * BLOCK), 119 * BLOCK);
	for (i = 0; i < 119 * BLOCK; i++)
		ck_assert_int_eq(buffer[i], 'y');
	check_all(&rig);
	rig_close(&rig);
}
END_TEST

/* Who wants to know gets what was written before the disk was full, and the
 * error with the next write. */
START_TEST(a_part_of_a_write_counts)
{
	struct fs_op op = { .type = FS_WRITE, .flags = FS_WRITE_PART,
			    .size = BLOCKS * BLOCK, .data = buffer };
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &op.ino), 0);
	memset(buffer, 'x', BLOCKS * BLOCK);
	while (!rig_do(&rig, &op) && op.result == op.size)
		op.offset += op.size;
	ck_assert_int_eq(op.rc, 0);
	ck_assert_uint_gt(op.result, 0);
	op.offset += op.result;
	ck_assert_int_eq(rig_getattr(&rig, op.ino, &attr), 0);
	ck_assert_uint_eq(attr.size, op.offset);
	ck_assert_int_eq(rig_do(&rig, &op), -ENOSPC);
	check_all(&rig);
	rig_close(&rig);
}
END_TEST

/* A bad sector in a file: an error for it, and only for it. */
START_TEST(damage_is_an_error_for_its_block_only)
{
	struct fs_extent list[16];
	struct fs_op op = { .type = FS_EXTENTS, .buffer = list, .size = 16 };
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	memset(buffer, 'x', 400000);
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 400000), 400000);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	op.ino = ino;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_ge(op.result, 1);
	rig_remount(&rig);
	ck_assert_int_eq(sim_flip(rig.sim, list[0].lbn + 130, 77), 0);
	ck_assert_int_eq(do_read(&rig, ino, 65536, buffer, 100), -EIO);
	ck_assert_int_eq(do_read(&rig, ino, 0, buffer, 65536), 65536);
	ck_assert_int_eq(do_read(&rig, ino, 131072, buffer, 65536), 65536);
	/* The rig would have the damage told by the checker. */
	ck_assert_int_eq(fs_close(rig.fs), 0);
	sim_free(rig.sim);
}
END_TEST

/* A write that fails goes elsewhere. */
START_TEST(a_failed_write_goes_elsewhere)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .k = 1, .times = 1 };
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	memset(buffer, 'y', 400000);
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 400000), 400000);
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_uint_eq(sim_fault_hits(rig.sim), 1);
	sim_fault_clear(rig.sim);
	rig_remount(&rig);
	ck_assert_int_eq(do_read(&rig, ino, 0, buffer, 400000), 400000);
	ck_assert_int_eq(buffer[0], 'y');
	ck_assert_int_eq(buffer[399999], 'y');
	rig_close(&rig);
}
END_TEST

/* Four blocks right behind a file are bad: the next one goes elsewhere, what is
 * good around them is used, and they are not tried again, nor after a mount. */
START_TEST(bad_sectors_are_not_tried_again)
{
	struct fs_extent extent;
	struct fs_op op = { .type = FS_EXTENTS, .buffer = &extent, .size = 1 };
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .sectors = 32, .k = 1,
				   .times = UINT64_MAX };
	struct fs_op statfs = { .type = FS_STATFS, .ino = 1 };
	uint64_t before, hits, i;
	struct rig rig;

	rig_open(&rig, 64, 4);
	memset(buffer, 'z', 100000);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, &op.ino), 0);
	ck_assert_int_eq(do_write(&rig, op.ino, 0, buffer, 100000), 100000);
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.result, 1);
	fault.first = (extent.lbn + extent.bytes / 512 + 80) / 8 * 8;
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	ck_assert_int_eq(rig_do(&rig, &statfs), 0);
	before = statfs.statfs.free;
	ck_assert_int_eq(rig_mknod(&rig, 1, "b", 0100644, &op.ino), 0);
	ck_assert_int_eq(do_write(&rig, op.ino, 0, buffer, 100000), 100000);
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	rig_settle(&rig);
	hits = sim_fault_hits(rig.sim);
	ck_assert_uint_gt(hits, 4);
	ck_assert_int_eq(rig_do(&rig, &statfs), 0);
	ck_assert_uint_eq(before - statfs.statfs.free, 25 + 4);
	rig_remount(&rig);
	ck_assert_int_eq(rig_mknod(&rig, 1, "c", 0100644, &op.ino), 0);
	for (i = 0; i < 40; i++)
		ck_assert_int_eq(do_write(&rig, op.ino, i << 20, buffer,
					  1 << 20), 1 << 20);
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	ck_assert_uint_eq(sim_fault_hits(rig.sim), hits);
	rig_close(&rig);
}
END_TEST

/* Nothing can be written: that is not the sectors' fault. */
START_TEST(a_dead_disk_makes_no_bad_sectors)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .k = 1, .times = UINT64_MAX,
				   .sectors = 64 << 11 };
	struct fs_op statfs = { .type = FS_STATFS, .ino = 1 };
	uint64_t ino, before;
	struct rig rig;

	rig_open(&rig, 64, 5);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", 0100644, &ino), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_int_eq(rig_do(&rig, &statfs), 0);
	before = statfs.statfs.free;
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 400000), 400000);
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	ck_assert_int_ne(do_fsync(&rig, ino), 0);
	sim_fault_clear(rig.sim);
	rig_crash(&rig);
	ck_assert_int_eq(rig_do(&rig, &statfs), 0);
	ck_assert_uint_eq(statfs.statfs.free, before);
	rig_close(&rig);
}
END_TEST

/* ---- Placement ---- */

struct placed {
	unsigned small, small_whole;	/* files up to a track; in one track */
	uint64_t large_bytes, large_whole; /* but for what must be a tail */
};

static void place_look(struct rig *rig, uint64_t ino, uint64_t bytes,
		       uint32_t track, struct placed *placed)
{
	static struct fs_extent list[4096];
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino, .buffer = list,
			    .size = 4096 };
	struct geom_track a, z;
	uint64_t i, last, tail = 0;
	unsigned tracks = 0;

	ck_assert_int_eq(rig_do(rig, &op), 0);
	last = UINT64_MAX;
	for (i = 0; i < op.result; i++) {
		if (list[i].is_inline)
			return;
		geom_track_of(fs_geom(rig->fs), list[i].lbn, &a);
		geom_track_of(fs_geom(rig->fs),
			      list[i].lbn + list[i].bytes / 512 - 1, &z);
		tracks += a.index != last;
		tracks += z.index != a.index;
		last = z.index;
		if (bytes <= track * 512ull)
			continue;
		if (list[i].lbn == a.first && list[i].lbn +
		    list[i].bytes / 512 == z.first + z.sectors)
			placed->large_whole += list[i].bytes;
		else if (list[i].bytes < (z.sectors + 8) * 512ull &&
			 i + 1 == op.result)
			tail = list[i].bytes;
		placed->large_bytes += list[i].bytes;
	}
	if (bytes > track * 512ull) {
		placed->large_bytes -= tail;
		return;
	}
	placed->small++;
	placed->small_whole += tracks == 1;
}

static uint64_t place_file(struct rig *rig, uint64_t dir, unsigned number,
			   uint64_t bytes)
{
	uint64_t ino, offset, n;
	char name[16];

	snprintf(name, sizeof(name), "f%u", number);
	ck_assert_int_eq(rig_mknod(rig, dir, name, 0100644, &ino), 0);
	ck_assert_int_eq(rig_open_file(rig, ino, 2), 0);
	for (offset = 0; offset < bytes; offset += n) {
		n = bytes - offset < 131072 ? bytes - offset : 131072;
		ck_assert_int_eq(do_write(rig, ino, offset, buffer, n),
				 (int)n);
	}
	ck_assert_int_eq(rig_release(rig, ino), 0);
	return ino;
}

/* Directories of mixed files, copied in; then one of 200 small files. */
static void place_run(const struct setting *setting)
{
	static uint64_t ino[1024], bytes[1024];
	struct placed placed = { 0 };
	unsigned d, i, n = 0;
	uint64_t rng = 5, dir, tracks = 0, last = UINT64_MAX;
	struct fs_extent list[16];
	struct fs_op op = { .type = FS_EXTENTS, .buffer = list, .size = 16 };
	struct geom_track a;
	struct rig rig;

	msg_set_level(MSG_WARN);
	disk_open_setting(&rig, setting, 1);
	memset(buffer, 'x', 131072);
	for (d = 0; d < 24; d++) {
		char name[16];

		snprintf(name, sizeof(name), "d%u", d);
		ck_assert_int_eq(rig_mkdir(&rig, 1, name, &dir), 0);
		for (i = 0; i < 24; i++) {
			bytes[n] = 2100 + test_random(&rng) %
				(i < 18 ? 30000 : i < 23 ? 400000 : 9000000);
			ino[n] = place_file(&rig, dir, i, bytes[n]);
			n++;
		}
	}
	ck_assert_int_eq(rig_sync(&rig), 0);
	geom_track_of(fs_geom(rig.fs), 50000, &a);
	for (i = 0; i < n; i++)
		place_look(&rig, ino[i], bytes[i], a.sectors, &placed);
	fprintf(stderr, "%u of %u in one track; %lu of %lu bytes in whole\n",
		placed.small_whole, placed.small,
		(unsigned long)placed.large_whole,
		(unsigned long)placed.large_bytes);
	ck_assert_uint_ge(placed.small_whole * 100, placed.small * 95);
	ck_assert_uint_ge(placed.large_whole, placed.large_bytes / 100 * 98);
	ck_assert_int_eq(rig_mkdir(&rig, 1, "many", &dir), 0);
	for (i = 0; i < 200; i++)
		ino[i] = place_file(&rig, dir, i, 2100 + i * 10);
	ck_assert_int_eq(rig_sync(&rig), 0);
	for (i = 0; i < 200; i++) {
		op.ino = ino[i];
		ck_assert_int_eq(rig_do(&rig, &op), 0);
		ck_assert_uint_eq(op.result, 1);
		geom_track_of(fs_geom(rig.fs), list[0].lbn, &a);
		tracks += a.index != last;
		last = a.index;
	}
	ck_assert_uint_le(tracks * a.sectors, 200 * 8 + 2 * a.sectors);
	check_all(&rig);
	rig_close(&rig);
}

START_TEST(files_lie_where_their_directory_is)
{
	static const struct setting place_settings[] = {
		{ .logical = 512, .physical = 512, .odd_tracks = true,
		  .memory = 64 << 20, .mib = 400 },
		{ .logical = 512, .physical = 4096, .memory = 64 << 20,
		  .mib = 400 },
	};

	place_run(&place_settings[_i]);
}
END_TEST

/* Several large files written anew at once, with little memory, go to their
 * places and not through the log. */
START_TEST(large_rewrites_are_not_logged)
{
	const struct setting setting = {
		.logical = 512, .physical = 512, .odd_tracks = true,
		.memory = 32 << 20, .mib = 400, .latency_ns = 10000000,
	};
	const uint64_t each = UINT64_C(16) << 20, chunk = 131072;
	uint64_t ino[3], at, before = 0;
	struct log_stats stats;
	unsigned round, i;
	struct rig rig;
	char name[8];

	disk_open_setting(&rig, &setting, 1);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(rig_mknod(&rig, 1, name, 0100644, &ino[i]), 0);
	}
	for (round = 0; round < 2; round++) {
		log_get_stats(tree_log(rig.fs->tree), &stats);
		before = stats.record_bytes;
		for (at = 0; at < each; at += chunk)
			for (i = 0; i < 3; i++)
				ck_assert_int_eq(do_write(&rig, ino[i], at,
							  buffer, chunk),
						 (int)chunk);
		ck_assert_int_eq(rig_sync(&rig), 0);
	}
	log_get_stats(tree_log(rig.fs->tree), &stats);
	ck_assert_uint_lt(stats.record_bytes - before, 3 * each / 64);
	rig_close(&rig);
}
END_TEST

/* Homes wait for gaps when a large write, which itself waits for a read, takes
 * the memory: all are recalled. */
START_TEST(write_backs_for_gaps_give_memory_back)
{
	struct setting setting = settings[4];
	uint64_t at, ino[2];
	struct files *files;
	struct pool *pool;
	struct rig rig;
	uint8_t *large;
	unsigned i;

	disk_open_setting(&rig, &setting, 7);
	ck_assert_int_eq(rig_mknod(&rig, 1, "homes", 0100644, &ino[0]), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "large", 0100644, &ino[1]), 0);
	for (i = 0; i < 8; i++)
		for (at = 0; at < 2; at++)
			do_write(&rig, ino[at], i * sizeof(buffer), buffer,
				 sizeof(buffer));
	rig_remount(&rig);
	for (i = 0; i < 20; i++)
		do_write(&rig, ino[0], i * 9 * BLOCK, "x", 1);
	ck_assert_int_eq(do_fsync(&rig, ino[0]), 0);
	for (i = 0; i < 20; i++)
		fs_run(rig.fs, 1);
	files = rig.fs->files;
	ck_assert_uint_gt(files->gap_queued_destages, 2);
	pool = files->dirty_pool;
	at = (pool_available(pool) - pool_count(pool) / 2 + 4) * BLOCK + 1;
	ck_assert_uint_lt(at, 8 * sizeof(buffer));
	large = calloc(1, at);
	ck_assert_int_eq(do_write(&rig, ino[1], 0, large, at), (int)at);
	free(large);
	rig_close(&rig);
}
END_TEST

/* The file system runs, and then time passes; it is never called idle. */
static void pass_busy(struct rig *rig)
{
	uint64_t next, now;

	freeblock_set_quiet(rig->fs->queue, UINT64_MAX / 4);
	next = fs_run(rig->fs, 0);
	now = sim_now_ns(rig->sim);
	if (sim_next_ns(rig->sim) < next)
		next = sim_next_ns(rig->sim);
	ck_assert_uint_ne(next, UINT64_MAX);
	if (next > now)
		sim_advance(rig->sim, next - now);
}

/* Where there is no gap and no idle time new data waits no longer than it may:
 * it is the file system itself that wakes up for it. */
START_TEST(write_backs_for_gaps_do_not_wait_for_ever)
{
	struct files *files;
	uint64_t ino, begun;
	struct rig rig;

	disk_open_setting(&rig, &settings[4], 8);
	files = rig.fs->files;
	ck_assert_int_eq(rig_mknod(&rig, 1, "file", 0100644, &ino), 0);
	do_write(&rig, ino, 0, buffer, 3 * BLOCK);
	begun = sim_now_ns(rig.sim);
	while (!files->gap_queued)
		pass_busy(&rig);
	ck_assert_uint_eq(files->dirty_count, 0);
	while (files->gap_queued)
		pass_busy(&rig);
	/* Its age, and what an offer may wait. */
	ck_assert_uint_lt(sim_now_ns(rig.sim) - begun, 45000000000);
	rig_close(&rig);
}
END_TEST

/* A read of one extent in which more separate blocks are logged than a fetch
 * has segments ends soon, and brings what was written last. */
START_TEST(a_read_between_logged_blocks_ends)
{
	const uint64_t bytes = 1 << 20, step = 4;
	const uint64_t logged = bytes / BLOCK / step;
	struct files *files;
	uint8_t *back = malloc(bytes);
	uint64_t ino, i, begun;
	struct rig rig;
	int pass;

	rig_open(&rig, 64, 7);
	ck_assert_int_eq(rig_mknod(&rig, 1, "file", 0100644, &ino), 0);
	memset(buffer, 'a', bytes);
	do_write(&rig, ino, 0, buffer, bytes);
	/* The first pass leaves a checksum for each block; the second one need
	 * not read anything. */
	for (pass = 0; pass < 2; pass++) {
		rig_remount(&rig);
		for (i = 0; i < logged; i++) {
			buffer[i * step * BLOCK] = 'b' + pass;
			do_write(&rig, ino, i * step * BLOCK,
				 buffer + i * step * BLOCK, BLOCK);
			if (i % 8 == 7)
				ck_assert_int_eq(do_fsync(&rig, ino), 0);
		}
	}
	files = rig.fs->files;
	ck_assert_uint_eq(files->pinned_count, logged);
	begun = sim_now_ns(rig.sim);
	ck_assert_int_eq(do_read(&rig, ino, 0, back, bytes), (int)bytes);
	ck_assert_uint_eq(files->pinned_count, logged);
	ck_assert_uint_lt(sim_now_ns(rig.sim) - begun, 2000000000);
	ck_assert(!memcmp(back, buffer, bytes));
	free(back);
	rig_close(&rig);
}
END_TEST

/* A mount after a crash takes what its reads take, however long the commit
 * interval is: nothing sleeps until a timer when what it waits for is over. */
START_TEST(a_mount_after_a_crash_does_not_sleep)
{
	uint64_t ino, begun;
	struct rig rig;
	unsigned i;
	char name[16];

	rig_open(&rig, 64, 8);
	rig.options.commit_seconds = 20;
	rig_remount(&rig);
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(rig_mknod(&rig, 1, name, 0100644, &ino), 0);
		do_write(&rig, ino, 0, buffer, 3 * BLOCK);
		/* Still referenced: the next mount deletes it. */
		if (i % 2)
			ck_assert_int_eq(rig_unlink(&rig, 1, name), 0);
		ck_assert_int_eq(do_fsync(&rig, ino), 0);
		begun = sim_now_ns(rig.sim);
		rig_crash(&rig);
		ck_assert_uint_lt(sim_now_ns(rig.sim) - begun, 900000000);
	}
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs files");
	TCase *tcase = tcase_create("files");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, a_small_file_is_inline);
	tcase_add_test(tcase, an_append_with_fsync_is_one_record);
	tcase_add_test(tcase, large_rewrites_are_not_logged);
	tcase_add_test(tcase, a_full_disk_can_be_emptied);
	tcase_add_test(tcase, what_had_room_is_counted);
	tcase_add_test(tcase, accepted_data_has_more_room);
	tcase_add_test(tcase, a_part_of_a_write_counts);
	tcase_add_test(tcase, damage_is_an_error_for_its_block_only);
	tcase_add_test(tcase, a_failed_write_goes_elsewhere);
	tcase_add_test(tcase, bad_sectors_are_not_tried_again);
	tcase_add_test(tcase, a_dead_disk_makes_no_bad_sectors);
	tcase_add_loop_test(tcase, files_lie_where_their_directory_is, 0, 2);
	tcase_add_loop_test(tcase, random_operations_are_as_in_the_model, 0,
			    (int)(sizeof(settings) / sizeof(*settings)));
	tcase_add_test(tcase, statfs_says_what_is_left);
	tcase_add_test(tcase, a_read_between_logged_blocks_ends);
	tcase_add_test(tcase, a_mount_after_a_crash_does_not_sleep);
	tcase_add_test(tcase, write_backs_for_gaps_give_memory_back);
	tcase_add_test(tcase, write_backs_for_gaps_do_not_wait_for_ever);
	tcase_add_test(tcase, clients_fill_the_log);
	tcase_add_loop_test(tcase, clients_at_once_read_what_they_wrote, 0,
			    (int)(sizeof(settings) / sizeof(*settings)));
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
