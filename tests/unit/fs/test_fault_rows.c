/*
 * test_fault_rows.c - every row of the fault table against the code that it is
 * for: a request of each writer and reader fails for ever with each kind of
 * error, and what is asked of the disk is compared with the row: how often at
 * the same place, at how many others, after which pauses, and what then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk/fault.h"
#include "fs/data/destage.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"
#include "fs/drive/super_write.h"
#include "fs/mkfs.h"
#include "fs/op/fs_internal.h"
#include "fs/replica/replica_readahead.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "log/log_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"
#include "tree/tree_internal.h"

#define BLOCK 4096u
#define LARGE (512u << 10)	/* too much for the log */
#define MARK UINT64_C(0x6b72616d206f6f54)
#define MANY 64u		/* attempts looked at */
#define ENOUGH 40u		/* attempts that pass for endless */
#define TURNS 400000u
#define ENDLESS_NS UINT64_C(200000000000)
#define PLACES 4u

/* One trial: whose requests fail, how, and what was seen. */
struct trial {
	struct disk disk;		/* what the file system is given */
	struct rig rig;
	enum fault_origin origin;
	enum fault_class class;
	uint64_t ino;
	bool armed;
	/* Reads that fail: of these places. */
	struct range place[PLACES];
	unsigned places;
	struct {
		uint64_t sector, ns;
	} seen[MANY];
	unsigned n;
	uint64_t retried;		/* merged accesses that failed */
	struct super_write supers;
	int64_t result;			/* of what the trial waits for */
	bool over;
};

static uint8_t data[LARGE], back[LARGE];

/* ---- Whose is a request? ---- */

static const void *content(const struct disk_request *req)
{
	return req->iov[0].iov_base;
}

static bool is_record(const struct disk_request *req, bool mirror)
{
	const struct log_header *h = content(req);

	return le32_get(h->magic) == TRAX_LOG_MAGIC &&
	       !(le32_get(h->flags) & LOG_MIRROR) == !mirror;
}

/* The first copy of a leaf. */
static bool is_leaf(const void *bytes, uint64_t sector)
{
	const struct node_header *h = bytes;

	return le32_get(h->magic) == TRAX_NODE_MAGIC && !h->level &&
	       addr_sector(le64_get(h->addr)) == sector;
}

static bool is_marked(const void *bytes, uint64_t sector)
{
	uint64_t word;

	(void)sector;
	memcpy(&word, bytes, sizeof(word));
	return word == MARK;
}

/* Where that which is looked for goes, perhaps among others; 0: it is not
 * there. */
static uint64_t sector_of(const struct disk_request *req,
			  bool (*is_it)(const void *bytes, uint64_t sector))
{
	uint64_t sector = req->sector;
	unsigned i;

	for (i = 0; i < req->iov_n; i++) {
		if (is_it(req->iov[i].iov_base, sector))
			return sector;
		sector += req->iov[i].iov_len / SECTOR_BYTES;
	}
	return 0;
}

static bool is_area(const struct trial *t, const struct disk_request *req)
{
	const struct super *super = tree_super(t->rig.fs->tree);
	unsigned i;

	for (i = 0; i < 4; i++)
		if (req->sector == super->area_sector[i / 2][i % 2])
			return true;
	return false;
}

static bool is_super(const struct trial *t, const struct disk_request *req)
{
	uint64_t place[3];

	super_places(tree_super(t->rig.fs->tree), place);
	return req->sector == place[0] || req->sector == place[1] ||
	       req->sector == place[2];
}

static bool is_at_place(const struct trial *t, const struct disk_request *req)
{
	unsigned i;

	for (i = 0; i < t->places; i++)
		if (t->place[i].first < req->sector + req->sectors &&
		    req->sector < t->place[i].first + t->place[i].n)
			return true;
	return false;
}

static bool write_fails(const struct trial *t, const struct disk_request *req)
{
	switch (t->origin) {
	case FAULT_DATA:
	case FAULT_DESTAGE:
	case FAULT_COPY:
		return sector_of(req, is_marked);
	case FAULT_LOG:
		return is_record(req, false);
	case FAULT_MIRROR:
		return is_record(req, true);
	case FAULT_NODE:
		return sector_of(req, is_leaf);
	case FAULT_ROOT:
		return is_area(t, req);
	case FAULT_SUPER:
		return is_super(t, req);
	default:
		return false;
	}
}

static bool request_fails(const struct trial *t, const struct disk_request *req)
{
	if (t->class == FAULT_FLUSH)
		return req->op == DISK_FLUSH &&
		       (t->origin != FAULT_NODE ||
			t->rig.fs->tree->ckpt.phase == CKPT_FLUSHING);
	if (req->op == DISK_WRITE)
		return write_fails(t, req);
	return req->op == DISK_READ && t->origin >= FAULT_READ_DATA &&
	       is_at_place(t, req);
}

/* A place or a way to it that fails does so for whatever is written there. */
static bool was_bad(const struct trial *t, const struct disk_request *req)
{
	unsigned i;

	if (t->class == FAULT_MEMORY || t->class == FAULT_FLUSH)
		return false;
	for (i = 0; i < t->n; i++)
		if (t->seen[i].sector - req->sector < req->sectors)
			return true;
	return false;
}

/* Attempts are counted once where two copies are written, or a stretch is read
 * before its units are. */
static bool is_counted(const struct trial *t, const struct disk_request *req)
{
	if (t->origin == FAULT_ROOT && t->n)
		return req->sector == t->seen[0].sector;
	if (t->origin == FAULT_READ_LOG)
		return req->sectors == t->place[0].n &&
		       (req->sector == t->place[0].first ||
			req->sector == t->place[1].first);
	return true;
}

/* What went out with neighbours is repeated by itself: that is one attempt. */
static void attempt_add(struct trial *t, const struct disk_request *req)
{
	const uint64_t at = req->op != DISK_WRITE ? 0 :
		t->origin == FAULT_NODE ? sector_of(req, is_leaf) :
		sector_of(req, is_marked);
	const uint64_t sector = at ? at : req->sector;
	const uint64_t retried = t->rig.fs ?
		queue_stats(t->rig.fs->queue)->retried : 0;

	if (t->n && t->seen[t->n - 1].sector == sector &&
	    t->retried != retried)
		t->n--;
	t->retried = retried;
	if (t->n == MANY)
		return;
	t->seen[t->n].sector = sector;
	t->seen[t->n++].ns = sim_now_ns(t->rig.sim);
}

static int error_of(enum fault_class class)
{
	return class == FAULT_TRANSPORT ? -ENOLINK :
	       class == FAULT_MEMORY ? -ENOMEM : -EIO;
}

static void disk_gets(struct disk *disk, struct disk_request *req)
{
	struct trial *t = container_of(disk, struct trial, disk);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = 1u << req->op, .k = 1, .times = 1,
		.first = req->sector, .sectors = req->sectors,
		.error = error_of(t->class),
	};

	const bool fails = t->armed && request_fails(t, req);

	if (fails || (t->armed && req->op == DISK_WRITE && was_bad(t, req))) {
		if (fails && is_counted(t, req))
			attempt_add(t, req);
		ck_assert_int_eq(sim_fault_add(t->rig.sim, &fault), 0);
	}
	disk_submit(sim_disk(t->rig.sim), req);
}

static int disk_polls(struct disk *disk, int64_t timeout_ns)
{
	struct trial *t = container_of(disk, struct trial, disk);

	return disk_poll_ns(sim_disk(t->rig.sim), timeout_ns);
}

static int disk_fd(struct disk *disk)
{
	struct trial *t = container_of(disk, struct trial, disk);

	return disk_event_fd(sim_disk(t->rig.sim));
}

static void disk_ends(struct disk *disk)
{
	(void)disk;
}

static const struct disk_ops ops = {
	.submit = disk_gets, .poll = disk_polls, .event_fd = disk_fd,
	.close = disk_ends,
};

/* ---- A file system on that disk ---- */

static int mount_again(struct trial *t)
{
	t->rig.fs = NULL;
	return fs_open(sim_env(t->rig.sim), &t->disk, &t->rig.options,
		       &t->rig.fs);
}

static void trial_open(struct trial *t, enum fault_origin origin,
		       enum fault_class class)
{
	struct sim_options options = {
		.seed = 1, .volatile_cache = class == FAULT_FLUSH,
	};
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;

	memset(t, 0, sizeof(*t));
	pool_set_poison(true);
	t->origin = origin;
	t->class = class;
	t->rig.options.memory_bytes = 64 << 20;
	t->rig.options.replicas = 2;
	t->rig.sim = sim_new(NULL, 128u << 11, &options);
	disk = sim_disk(t->rig.sim);
	ck_assert_int_eq(mkfs_plan(sim_env(t->rig.sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(t->rig.sim), disk, &mkfs, &plan),
			 0);
	t->disk = (struct disk){ &ops, disk->limits, "trial" };
	ck_assert_int_eq(mount_again(t), 0);
}

static bool is_endless(const struct trial *t)
{
	return fault_row(t->origin, t->class)->retries == FAULT_FOREVER;
}

/* Lets the file system and the clock go on; an endless trial is mended when
 * enough has been seen. */
static void turn(struct trial *t)
{
	uint64_t next = fs_run(t->rig.fs, 0), now = sim_now_ns(t->rig.sim);

	if (is_endless(t) && t->n >= ENOUGH)
		t->armed = false;
	if (sim_next_ns(t->rig.sim) < next)
		next = sim_next_ns(t->rig.sim);
	if (next != UINT64_MAX && next > now)
		sim_advance(t->rig.sim, next - now);
}

static void pass(struct trial *t, uint64_t ns)
{
	uint64_t end = sim_now_ns(t->rig.sim) + ns;
	unsigned turns = 0;

	while (sim_now_ns(t->rig.sim) < end && turns++ < TURNS)
		turn(t);
}

static void op_over(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

static int do_op(struct trial *t, struct fs_op *op)
{
	bool over = false;
	unsigned turns = 0;

	op->done = op_over;
	op->owner = &over;
	for (fs_submit(t->rig.fs, op); !over; turn(t))
		ck_assert_uint_lt(turns++, TURNS);
	return op->rc;
}

static int do_fsync(struct trial *t)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = t->ino };

	return do_op(t, &op);
}

static int do_sync(struct trial *t)
{
	struct fs_op op = { .type = FS_SYNCFS };

	return do_op(t, &op);
}

static int do_read(struct trial *t)
{
	struct fs_op op = { .type = FS_READ, .ino = t->ino, .size = BLOCK,
			    .buffer = back };

	return do_op(t, &op);
}

/* A file whose first block has the mark. */
static void make_file(struct trial *t, size_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .size = bytes, .data = data };
	const uint64_t mark = MARK;

	memset(data, 'x', sizeof(data));
	memcpy(data, &mark, sizeof(mark));
	ck_assert_int_eq(rig_mknod(&t->rig, TRAX_ROOT_INO, "file", 0100644,
				   &t->ino), 0);
	op.ino = t->ino;
	ck_assert_int_eq(do_op(t, &op), 0);
}

static uint64_t first_sector(struct trial *t)
{
	struct fs_extent extent;
	struct fs_op op = { .type = FS_EXTENTS, .buffer = &extent, .size = 1,
			    .ino = t->ino };

	ck_assert_int_eq(do_op(t, &op), 0);
	return extent.lbn;
}

static void remount(struct trial *t)
{
	ck_assert_int_eq(fs_close(t->rig.fs), 0);
	ck_assert_int_eq(mount_again(t), 0);
}

/* ---- What each of them is made to do ---- */

static void expect(const struct trial *t, int rc, int error)
{
	ck_assert_int_eq(rc, is_endless(t) ? 0 : error);
}

static void act_data(struct trial *t)
{
	make_file(t, LARGE);
	t->armed = true;
	expect(t, do_fsync(t), -EIO);
}

static void act_destage(struct trial *t)
{
	make_file(t, BLOCK);
	ck_assert_int_eq(do_fsync(t), 0);
	t->armed = true;
	destage_now(t->rig.fs->files);
	writeback_pump(t->rig.fs->files);
	pass(t, ENDLESS_NS);
}

static void act_log(struct trial *t)
{
	make_file(t, t->class == FAULT_FLUSH ? LARGE : BLOCK);
	t->armed = true;
	expect(t, do_fsync(t), -EIO);
}

static void act_mirror(struct trial *t)
{
	make_file(t, BLOCK);
	t->armed = true;
	ck_assert_int_eq(do_fsync(t), 0);
	pass(t, 500000000);
}

static void act_node(struct trial *t)
{
	make_file(t, BLOCK);
	ck_assert_int_eq(do_sync(t), 0);
	pass(t, 500000000);
	t->armed = true;
	t->rig.fs->tree->ckpt.wanted = true;
	pass(t, 100000000000);
}

static void super_written(void *arg, int rc)
{
	struct trial *t = arg;

	t->result = rc;
	t->over = true;
}

static void act_super(struct trial *t)
{
	ck_assert_int_eq(super_write_init(&t->supers, t->rig.fs, super_written,
					  t), 0);
	t->armed = true;
	ck_assert_int_eq(super_write_start(&t->supers, fs_super(t->rig.fs)), 0);
	while (!t->over)
		turn(t);
	ck_assert_int_eq(t->result, -EIO);
	super_write_fini(&t->supers);
}

static void copies_made(void *arg, uint64_t copies)
{
	struct trial *t = arg;

	t->result = (int64_t)copies;
	t->over = true;
}

static uint64_t make_copy(struct trial *t, uint64_t near_sector)
{
	const struct replica_want want = { t->ino, 0, 1 };
	unsigned turns = 0;

	t->over = false;
	ck_assert_int_eq(replica_make(t->rig.fs, &want, 1, near_sector, false,
				      copies_made, t), 0);
	for (; !t->over; turn(t))
		ck_assert_uint_lt(turns++, TURNS);
	return (uint64_t)t->result;
}

static void act_copy(struct trial *t)
{
	make_file(t, BLOCK);
	remount(t);
	t->armed = true;
	ck_assert_uint_eq(make_copy(t, 0), 0);
}

static void note_copy(struct sim *sim, const struct disk_request *req,
		      void *arg)
{
	struct trial *t = arg;

	(void)sim;
	if (req->op == DISK_WRITE && sector_of(req, is_marked))
		t->place[t->places++] =
			(struct range){ sector_of(req, is_marked), 1 };
}

/* It has two copies. */
static void act_read_data(struct trial *t)
{
	make_file(t, BLOCK);
	remount(t);
	t->place[t->places++] = (struct range){ first_sector(t), 1 };
	sim_set_hook(t->rig.sim, note_copy, t);
	ck_assert_uint_eq(make_copy(t, 100000), 1);
	ck_assert_uint_eq(make_copy(t, 200000), 1);
	sim_set_hook(t->rig.sim, NULL, NULL);
	ck_assert_uint_eq(t->places, 3);
	remount(t);
	/* The head has just read before the original. */
	replica_ra_events.done(t->rig.fs, &(struct read_done){
		.sector = t->place[0].first });
	t->armed = true;
	ck_assert_int_eq(do_read(t), -EIO);
}

static void act_read_node(struct trial *t)
{
	struct fs_attr attr;
	struct node_ptr ptr;
	const struct buffer *root;
	struct buffer *leaf;
	char name[16];
	unsigned i;

	for (i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		ck_assert_int_eq(rig_mknod(&t->rig, TRAX_ROOT_INO, name,
					   0100644, &t->ino), 0);
	}
	remount(t);
	root = t->rig.fs->tree->root;
	ck_assert_uint_eq(root->level, 1);
	i = node_child_find(root->node, key_make(t->ino, ITEM_INODE, 0));
	ptr = node_child(root->node, i);
	t->place[0] = (struct range){ addr_sector(ptr.addr), 1 };
	t->place[1] = (struct range){ addr_sector(ptr.addr2), 1 };
	t->places = 2;
	/* It may have come with another leaf. */
	leaf = tree_child(t->rig.fs->tree, root, i);
	if (leaf)
		buffer_put(t->rig.fs->tree->buffers, leaf);
	t->armed = true;
	ck_assert_int_eq(rig_getattr(&t->rig, t->ino, &attr), -EIO);
}

/* A mount that fails, and the next that does not. */
static void fail_mount(struct trial *t)
{
	ck_assert_int_eq(fs_close(t->rig.fs), 0);
	t->armed = true;
	ck_assert_int_ne(mount_again(t), 0);
	t->armed = false;
	ck_assert_int_eq(mount_again(t), 0);
}

static void act_read_root(struct trial *t)
{
	const struct super *super = tree_super(t->rig.fs->tree);
	unsigned i;

	make_file(t, BLOCK);
	remount(t);
	super = tree_super(t->rig.fs->tree);
	for (i = 0; i < 4; i++)
		t->place[i] = (struct range){
			super->area_sector[i / 2][i % 2], 1 };
	t->places = 4;
	fail_mount(t);
}

static void act_read_super(struct trial *t)
{
	uint64_t place[3];
	unsigned i;

	super_places(tree_super(t->rig.fs->tree), place);
	for (i = 0; i < 3; i++)
		t->place[i] = (struct range){ place[i], 1 };
	t->places = 3;
	fail_mount(t);
}

static void note_record(struct sim *sim, const struct disk_request *req,
			void *arg)
{
	struct trial *t = arg;
	const uint32_t unit = (uint32_t)(tree_log(t->rig.fs->tree)->unit_bytes /
					 SECTOR_BYTES);

	(void)sim;
	if (req->op != DISK_WRITE)
		return;
	if (is_record(req, false))
		t->place[0] = (struct range){ req->sector, unit };
	else if (is_record(req, true))
		t->place[1] = (struct range){ req->sector, unit };
}

/* The last record, and its mirror, cannot be read after a crash. */
static void act_read_log(struct trial *t)
{
	unsigned i;

	sim_set_hook(t->rig.sim, note_record, t);
	make_file(t, BLOCK);
	ck_assert_int_eq(do_fsync(t), 0);
	pass(t, 500000000);
	sim_set_hook(t->rig.sim, NULL, NULL);
	ck_assert_uint_ne(t->place[1].first, 0);
	/* More than parity makes whole. */
	for (i = 0; i < 2; i++)
		t->place[i + 2] = (struct range){
			t->place[i].first + t->place[i].n, t->place[i].n };
	t->places = 4;
	sim_power_cut(t->rig.sim, SIM_CUT_KEEP, 1);
	fs_abandon(t->rig.fs);
	sim_restart(t->rig.sim);
	t->armed = true;
	if (t->class == FAULT_MEMORY) {
		ck_assert_int_eq(mount_again(t), -ENOMEM);
		t->armed = false;
		ck_assert_int_eq(mount_again(t), 0);
		return;
	}
	ck_assert_int_eq(mount_again(t), 0);
}

static void (*const act[FAULT_ORIGINS])(struct trial *t) = {
	[FAULT_DATA] = act_data,
	[FAULT_DESTAGE] = act_destage,
	[FAULT_LOG] = act_log,
	[FAULT_MIRROR] = act_mirror,
	[FAULT_NODE] = act_node,
	[FAULT_ROOT] = act_node,
	[FAULT_SUPER] = act_super,
	[FAULT_COPY] = act_copy,
	[FAULT_READ_DATA] = act_read_data,
	[FAULT_READ_NODE] = act_read_node,
	[FAULT_READ_ROOT] = act_read_root,
	[FAULT_READ_SUPER] = act_read_super,
	[FAULT_READ_LOG] = act_read_log,
};

/* ---- Judging ---- */

static void judge_attempts(const struct trial *t)
{
	const struct fault_row *row = fault_row(t->origin, t->class);
	unsigned i, same = 0, moved = 0;
	uint64_t pause_ns;

	for (i = 1; i < t->n; i++) {
		fault_next(t->origin, t->class, i, &pause_ns);
		ck_assert_uint_ge(t->seen[i].ns - t->seen[i - 1].ns, pause_ns);
		if (t->seen[i].sector == t->seen[i - 1].sector)
			same++;
		else
			moved++;
	}
	if (row->retries == FAULT_FOREVER) {
		ck_assert_uint_ge(t->n, ENOUGH);
		ck_assert_uint_eq(moved, 0);
		return;
	}
	ck_assert_uint_eq(same + moved, (unsigned)row->retries + row->places);
	/* What the map says twice is the same place here; and data that is not
	 * yet anywhere gets a place for each attempt. */
	if (t->origin != FAULT_READ_DATA &&
	    (t->origin != FAULT_DATA || !row->retries))
		ck_assert_uint_eq(same, row->retries);
}

static void judge_end(struct trial *t)
{
	const enum fault_step last = fault_row(t->origin, t->class)->last;
	const bool fails = last == FAULT_FAIL_FS && !is_endless(t);

	ck_assert_int_eq(fs_read_only(t->rig.fs), fails);
	ck_assert_int_eq(t->rig.fs->files->loss != 0,
			 last == FAULT_FAIL_FILE);
}

START_TEST(the_file_system_follows_every_row_of_the_table)
{
	const enum fault_origin origin =
		(enum fault_origin)(_i / FAULT_CLASSES);
	const enum fault_class class = (enum fault_class)(_i % FAULT_CLASSES);
	static struct trial t;

	if (!fault_row(origin, class))
		return;
	trial_open(&t, origin, class);
	act[origin](&t);
	t.armed = false;
	judge_attempts(&t);
	judge_end(&t);
	fs_close(t.rig.fs);
	sim_free(t.rig.sim);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault rows");
	TCase *tc = tcase_create("rows");

	tcase_add_loop_test(tc, the_file_system_follows_every_row_of_the_table,
			    (FAULT_CALLER + 1) * FAULT_CLASSES,
			    FAULT_ORIGINS * FAULT_CLASSES);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
