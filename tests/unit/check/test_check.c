/*
 * test_check.c - every row of the table of problems is found, repaired in one
 * run, silent in the second, and what was whole is still whole.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/csum.h"
#include "check/repair/repair.h"
#include "tests/rig/damage.h"
#include "tests/rig/mutate.h"
#include "tests/rig/test.h"

struct seen {
	uint64_t by_problem[PROBLEMS];
	unsigned again;
	char text[4096];	/* all that was found, for failures */
};

static bool seen_found(void *arg, const struct check_found *found)
{
	struct seen *seen = arg;
	size_t used = strlen(seen->text);

	seen->by_problem[found->problem - check_problems]++;
	seen->again += found->again;
	snprintf(seen->text + used, sizeof(seen->text) - used, "%s[%s] %s\n",
		 found->again ? "again: " : "", found->problem->name,
		 found->text);
	return true;
}

static int run(struct lab *lab, bool repair, struct seen *seen,
	       struct check_result *result)
{
	struct check_options options = {
		.repair = repair,
		.data = true,
		.found = seen_found,
		.arg = seen,
	};

	memset(seen, 0, sizeof(*seen));
	return check_run(sim_env(lab->sim), sim_disk(lab->sim), &options,
			 result);
}

static void named_note(void *arg, uint64_t ino, const char *path)
{
	char *text = arg;
	size_t used = strlen(text);

	snprintf(text + used, 4096 - used, "%llu=%s ",
		 (unsigned long long)ino, path);
}

static void expect_silent(struct lab *lab, const char *what)
{
	struct check_result result;
	struct seen seen;
	int rc = run(lab, false, &seen, &result);

	ck_assert_msg(rc == 0 && !seen.text[0], "%s: not silent (%d):\n%s",
		      what, rc, seen.text);
}

static void expect_whole(struct lab *lab, const char *what, uint64_t victim)
{
	uint64_t ino;

	lab_load(lab);
	for (ino = LAB_DIR; ino < LAB_MANY_FIRST + LAB_MANY_FILES; ino++) {
		const char *why = NULL;

		/* A leaf full of small files may be the victim. */
		if (ino == victim || (ino >= LAB_MANY_FIRST &&
				      victim >= LAB_MANY_FIRST &&
				      ino + 100 > victim &&
				      ino < victim + 100))
			continue;
		/* In a directory that is itself rescued, all is as it was. */
		why = lab_whole(lab, ino);
		ck_assert_msg(!why, "%s: inode %llu: %s is not whole", what,
			      (unsigned long long)ino, why);
	}
	lab_store(lab);
}

START_TEST(an_empty_file_system_is_whole)
{
	struct check_result result;
	struct seen seen;
	struct lab lab;

	lab_init_empty(&lab);
	expect_silent(&lab, "empty");
	ck_assert_int_eq(run(&lab, false, &seen, &result), 0);
	ck_assert_uint_eq(result.inodes, 1);
	ck_assert_uint_eq(result.levels, 1);
	lab_fini(&lab);
}
END_TEST

START_TEST(a_repair_of_what_is_whole_changes_nothing)
{
	struct check_result result;
	struct seen seen;
	struct lab lab;

	lab_init(&lab);
	expect_silent(&lab, "new");
	ck_assert_int_eq(run(&lab, false, &seen, &result), 0);
	ck_assert_uint_eq(result.inodes, LAB_MANY_FILES + 10);
	ck_assert_uint_eq(result.directories, 4);
	ck_assert_uint_eq(result.bytes_verified, 45 * TRAX_BLOCK_BYTES);
	expect_whole(&lab, "new", 0);
	/* A repair of what is whole changes nothing. */
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert(!result.changed);
	lab_fini(&lab);
}
END_TEST

START_TEST(each_damage_is_found_and_repaired)
{
	const struct damage *damage = &damages[_i];
	const struct check_problem *row = &check_problems[damage->problem];
	struct check_result result;
	struct seen seen;
	struct lab lab;
	const struct sim_counts *counts;
	uint64_t writes;

	lab_init(&lab);
	if (damage->loaded)
		lab_load(&lab);
	damage->apply(&lab);
	if (damage->loaded)
		lab_store(&lab);
	counts = sim_counts(lab.sim);
	writes = counts->writes;
	run(&lab, false, &seen, &result);
	ck_assert_msg(seen.by_problem[damage->problem], "%s not found in:\n%s",
		      row->name, seen.text);
	ck_assert_uint_eq(sim_counts(lab.sim)->writes, writes);
	if (!row->question) {
		lab_fini(&lab);
		return;
	}
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert_msg(result.changed && !result.left && !seen.again,
		      "%s: %llu left:\n%s", row->name,
		      (unsigned long long)result.left, seen.text);
	expect_silent(&lab, row->name);
	expect_whole(&lab, row->name, damage->victim);
	lab_fini(&lab);
}
END_TEST

/* Inodes that problems name are told by path, as far as there is one. */
START_TEST(inodes_that_problems_name_are_told_by_path)
{
	struct check_result result;
	char text[4096] = "";
	struct check_options options = { .named = named_note, .arg = text };
	const struct name_record *record;
	struct lab lab;

	lab_init(&lab);
	ck_assert_int_eq(check_run(sim_env(lab.sim), sim_disk(lab.sim),
				   &options, &result), 0);
	ck_assert_str_eq(text, "");
	lab_load(&lab);
	lab_inode(&lab, TRAX_ROOT_INO)->sectors = le64_put(7);
	lab_inode(&lab, LAB_DEEP)->sectors = le64_put(7);
	lab_inode(&lab, LAB_MANY_FIRST + 3)->sectors = le64_put(7);
	lab_inode(&lab, LAB_SMALL)->sectors = le64_put(7);
	record = lab_value(&lab, lab_name_key(&lab, LAB_DIR, "small"));
	lab_kill(&lab, key_make(LAB_DIR, ITEM_ENTRY,
				le64_get(record->seq)));
	lab_store(&lab);
	ck_assert_int_eq(check_run(sim_env(lab.sim), sim_disk(lab.sim),
				   &options, &result), 0);
	ck_assert_ptr_nonnull(strstr(text, "1=/ "));
	ck_assert_ptr_nonnull(strstr(text, "=/d/sub/deep "));
	ck_assert_ptr_nonnull(strstr(text, "=/many/"));
	ck_assert_ptr_null(strstr(text, "small"));
	lab_fini(&lab);
}
END_TEST

/* Power goes at the k-th write of a repair, for each k: the next repair makes
 * it good. */
static const enum problem cut_problems[] = {
	PROBLEM_SUPER_COPY, PROBLEM_ROOT_NONE, PROBLEM_ROOT_COPY,
	PROBLEM_NODE_LOST, PROBLEM_NODE_MIRROR, PROBLEM_OWNER_MISSING,
	PROBLEM_DIR_LOOP, PROBLEM_GEOMETRY,
};
#define CUT_PROBLEMS (sizeof(cut_problems) / sizeof(cut_problems[0]))

static const struct damage *damage_of(enum problem problem)
{
	unsigned i = 0;

	while (damages[i].problem != problem)
		i++;
	return &damages[i];
}

static struct media *damaged_content(const struct damage *damage)
{
	struct media *content;
	struct lab lab;

	lab_init(&lab);
	if (damage->loaded)
		lab_load(&lab);
	damage->apply(&lab);
	if (damage->loaded)
		lab_store(&lab);
	content = sim_content(lab.sim);
	lab_fini(&lab);
	return content;
}

START_TEST(a_repair_that_is_cut_can_be_done_again)
{
	const struct damage *damage = damage_of(cut_problems[_i]);
	const char *name = check_problems[damage->problem].name;
	struct media *content = damaged_content(damage);
	struct check_result result;
	bool was_cut = true;
	struct seen seen;
	struct lab lab;
	uint64_t k;

	for (k = 1; was_cut; k++) {
		lab_init_from(&lab, content);
		sim_power_cut_at(lab.sim, k, SIM_CUT_TORN, k);
		run(&lab, true, &seen, &result);
		was_cut = sim_is_off(lab.sim);
		if (was_cut)
			sim_restart(lab.sim);
		sim_power_cut_at(lab.sim, 0, SIM_CUT_KEEP, 0);
		ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
		ck_assert_msg(!result.left, "%s, cut at write %llu:\n%s", name,
			      (unsigned long long)k, seen.text);
		expect_silent(&lab, name);
		expect_whole(&lab, name, damage->victim);
		lab_fini(&lab);
	}
	ck_assert_uint_gt(k, 2);
	media_free(content);
}
END_TEST

/* Where a repair writes. */
struct writes {
	uint64_t sector[512];
	unsigned n;
};

static void writes_note(struct sim *sim, const struct disk_request *req,
			void *arg)
{
	struct writes *writes = arg;
	unsigned i;

	(void)sim;
	if (req->op != DISK_WRITE)
		return;
	for (i = 0; i < writes->n; i++)
		if (writes->sector[i] == req->sector)
			return;
	ck_assert_uint_lt(writes->n, 512);
	writes->sector[writes->n++] = req->sector;
}

static bool is_anchor(struct lab *lab, uint64_t sector)
{
	struct super super;
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	bool anchor = false;
	unsigned i;

	ck_assert_int_eq(disk_read(sim_disk(lab->sim), TRAX_SUPER_SECTOR,
				   TRAX_BLOCK_SECTORS, buf), 0);
	ck_assert_ptr_null(super_decode(buf, TRAX_SUPER_SECTOR, &super));
	free(buf);
	for (i = 0; i < 4; i++)
		anchor |= sector - super.area_sector[i / 2][i % 2] <
			  super.area_sectors;
	return anchor;
}

/* Any one place that a repair writes to can't be written: the repair goes
 * elsewhere, and only a copy of the root may stay as it is. */
START_TEST(a_repair_goes_around_an_unwritable_sector)
{
	const struct damage *damage = damage_of(PROBLEM_OWNER_MISSING);
	struct media *content = damaged_content(damage);
	struct writes writes = { .n = 0 };
	struct check_result result;
	struct seen seen;
	struct lab lab;
	unsigned k;

	lab_init_from(&lab, content);
	sim_set_hook(lab.sim, writes_note, &writes);
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	lab_fini(&lab);
	ck_assert_uint_gt(writes.n, 4);
	for (k = 0; k < writes.n; k++) {
		struct sim_fault fault = {
			.kind = SIM_FAIL, .ops = SIM_WRITES,
			.first = writes.sector[k], .sectors = 1,
		};
		uint64_t spare;

		lab_init_from(&lab, content);
		spare = is_anchor(&lab, fault.first);
		ck_assert_int_eq(sim_fault_add(lab.sim, &fault), 0);
		ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
		ck_assert_msg(result.changed && result.left <= spare,
			      "sector %llu: %llu left:\n%s",
			      (unsigned long long)fault.first,
			      (unsigned long long)result.left, seen.text);
		sim_fault_clear(lab.sim);
		if (!spare)
			expect_silent(&lab, "a sector that can't be written");
		expect_whole(&lab, "a sector that can't be written",
			     damage->victim);
		lab_fini(&lab);
	}
	media_free(content);
}
END_TEST

/* Moves a file's first extent, with its content, onto another place. */
static void move_data(struct lab *lab, uint64_t ino, uint64_t to)
{
	struct extent_item *e = lab_value(lab, key_make(ino, ITEM_EXTENT, 0));
	uint32_t n = (uint32_t)le64_get(e->sectors);
	uint8_t *buf = aligned_alloc(4096, n * SECTOR_BYTES);
	struct disk *disk = sim_disk(lab->sim);

	ck_assert_int_eq(disk_read(disk, addr_sector(le64_get(e->addr)), n,
				   buf), 0);
	ck_assert_int_eq(disk_write(disk, to, n, buf), 0);
	e->addr = le64_put(addr_make(0, to));
	free(buf);
}

/* How many of the file's blocks [0, n) are mapped. */
static unsigned mapped(struct lab *lab, uint64_t ino, unsigned n)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	unsigned i, found = 0;

	for (i = 0; i < n; i++)
		found +=
			!repair_read_block(&lab->check, &lab->set, ino, i, buf);
	free(buf);
	return found;
}

/* Three right blocks in the middle, or at the end, of what a file with other
 * checksums has: they stay, and the other file loses just these. */
START_TEST(an_overlap_costs_only_the_wrong_file)
{
	static const unsigned at[] = { 0, 10, 21 };
	struct check_result result;
	struct seen seen;
	struct lab lab;
	uint64_t sector;

	lab_init(&lab);
	lab_load(&lab);
	sector = addr_sector(le64_get(((struct extent_item *)lab_value(
		&lab, key_make(LAB_BIG, ITEM_EXTENT, 0)))->addr));
	move_data(&lab, LAB_DEEP, sector + at[_i] * TRAX_BLOCK_SECTORS);
	lab_store(&lab);
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert_uint_gt(seen.by_problem[PROBLEM_EXTENT_SHARED], 0);
	ck_assert_msg(!result.left, "left:\n%s", seen.text);
	expect_silent(&lab, "overlap");
	lab_load(&lab);
	ck_assert_ptr_null(lab_whole(&lab, LAB_DEEP));
	ck_assert_uint_eq(mapped(&lab, LAB_BIG, 40), 37);
	lab_unload(&lab);
	lab_fini(&lab);
}
END_TEST

static void edit_unclean(struct root *root, uint8_t *payload)
{
	(void)payload;
	root->clean = false;
	root->tail_seq = root->cut_seq + 1;
}

/* A record behind the root with a block of a file, which says that so many
 * later ones were durable: with any, the file system will not replay it by
 * itself. */
static void write_record(struct lab *lab, uint64_t ino, uint64_t block,
			 const uint8_t *data, unsigned later)
{
	const struct root *root = &lab->check.root;
	const struct super *super = &lab->check.super;
	const uint64_t unit = super_record_unit(super) / SECTOR_BYTES;
	const uint64_t at = (super->log[0].sector + unit - 1) / unit * unit;
	const uint64_t sum = csum(data, TRAX_BLOCK_BYTES);
	uint8_t *buf = aligned_alloc(4096, 8 * TRAX_BLOCK_BYTES);
	struct log_header *h = (struct log_header *)buf;
	uint8_t *entries = (uint8_t *)(h + 1);
	size_t n;

	memset(buf, 0, 8 * TRAX_BLOCK_BYTES);
	n = log_entry_data(entries, ino, block, 1, &sum);
	memcpy(entries + n, data, TRAX_BLOCK_BYTES);
	n += TRAX_BLOCK_BYTES;
	h->magic = le32_put(TRAX_LOG_MAGIC);
	h->bytes = le32_put(8 * TRAX_BLOCK_BYTES);
	h->payload = le32_put((uint32_t)n);
	h->flags = le32_put(LOG_MIRROR);
	memcpy(h->uuid, super->uuid, sizeof(h->uuid));
	h->epoch = le64_put(root->epoch);
	h->gen = le64_put(root->gen);
	h->seq = le64_put(root->cut_seq + 1);
	h->addr = le64_put(at);
	h->acked = le64_put(root->cut_seq + (later ? 1 + later : 0));
	h->prev = le64_put(root->cut_chain);
	h->chain = le64_put(log_chain(root->epoch, root->cut_seq + 1,
				      root->cut_chain, entries, n));
	log_header_seal(h);
	ck_assert_int_eq(disk_write(sim_disk(lab->sim), at, 64, buf), 0);
	free(buf);
}

/* A stale extent on another file's data, and a logged block for it: that goes
 * nowhere, since the place is not its file's, whether the file system would
 * replay the log or not. */
START_TEST(logged_data_of_stale_extents_is_left)
{
	uint8_t *data = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct csum_window w = { .mask = { 1 } };
	uint8_t value[TRAX_MAX_ITEM_BYTES];
	struct check_result result;
	struct extent_item *big, *deep;
	struct seen seen;
	struct lab lab;

	memset(data, 0x5a, TRAX_BLOCK_BYTES);
	lab_init(&lab);
	lab_load(&lab);
	big = lab_value(&lab, key_make(LAB_BIG, ITEM_EXTENT, 0));
	deep = lab_value(&lab, key_make(LAB_DEEP, ITEM_EXTENT, 0));
	deep->addr = le64_put(le64_get(big->addr) + 10 * TRAX_BLOCK_SECTORS);
	deep->sectors = le64_put(TRAX_BLOCK_SECTORS);
	w.sum[0][0] = csum_block(data);
	lab_put(&lab, key_make(LAB_DEEP, ITEM_CSUM, 0), value,
		csum_window_encode(&w, value));
	lab_store(&lab);
	lab_edit_root(&lab, edit_unclean);
	lab_load(&lab);
	write_record(&lab, LAB_DEEP, 0, data, _i ? 3 : 0);
	lab_unload(&lab);
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert_uint_eq(seen.by_problem[PROBLEM_LOG_REPLAY], 1);
	ck_assert_uint_gt(seen.by_problem[PROBLEM_EXTENT_SHARED], 0);
	expect_silent(&lab, "logged data");
	lab_load(&lab);
	ck_assert_ptr_null(lab_whole(&lab, LAB_BIG));
	lab_unload(&lab);
	lab_fini(&lab);
	free(data);
}
END_TEST

/* A file's end is in the middle of a piece: the blocks that stay keep their
 * checksums, so a bad one is told as bad and not made good. */
START_TEST(checksums_before_the_end_stay)
{
	struct check_result result;
	struct extent_item *e;
	struct seen seen;
	struct lab lab;

	lab_init(&lab);
	lab_load(&lab);
	lab_inode(&lab, LAB_BIG)->size = le64_put(20 * TRAX_BLOCK_BYTES);
	e = lab_value(&lab, key_make(LAB_BIG, ITEM_EXTENT, 0));
	/* One bit of a block that stays. */
	if (_i)
		sim_flip(lab.sim, addr_sector(le64_get(e->addr)) +
			 17 * TRAX_BLOCK_SECTORS, 5);
	lab_store(&lab);
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert_uint_gt(seen.by_problem[PROBLEM_EXTENT_EOF], 0);
	ck_assert_uint_eq(seen.by_problem[PROBLEM_DATA_UNSURE], 0);
	if (!_i)
		expect_silent(&lab, "sums before the end");
	ck_assert_int_eq(run(&lab, false, &seen, &result), 0);
	ck_assert_uint_eq(seen.by_problem[PROBLEM_DATA_BAD], (unsigned)_i);
	lab_fini(&lab);
}
END_TEST

/* A key far beyond or before those around it: no other item is lost. */
START_TEST(an_odd_key_loses_no_other_item)
{
	const unsigned slot = 20, byte = sizeof(struct node_header) +
		slot * sizeof(struct leaf_slot) + 7;
	struct check_result result;
	unsigned broken = 0;
	struct seen seen;
	uint64_t ino, sector[2];
	struct lab lab;
	unsigned i;

	lab_init(&lab);
	lab_leaf_sectors(&lab, key_make(LAB_MANY_FIRST + 200, ITEM_INODE, 0),
			 sector);
	for (i = 0; i < 2; i++)
		sim_flip(lab.sim, sector[i] + byte / SECTOR_BYTES,
			 byte % SECTOR_BYTES * 8 + 6);
	ck_assert_int_eq(run(&lab, true, &seen, &result), 0);
	ck_assert_uint_eq(seen.by_problem[PROBLEM_NODE_LOST], 1);
	expect_silent(&lab, "odd key");
	lab_load(&lab);
	for (ino = LAB_DIR; ino < LAB_MANY_FIRST + LAB_MANY_FILES; ino++)
		broken += lab_whole(&lab, ino) != NULL;
	lab_store(&lab);
	ck_assert_uint_le(broken, 1);
	lab_fini(&lab);
}
END_TEST

/* Several damages at once, at random: TRAX_MUTATIONS of them, from a seed. */
#define MUTATIONS 120u
#define AT_ONCE 6u

START_TEST(whatever_is_mutated_a_repair_leaves_it_whole)
{
	const char *asked = getenv("TRAX_MUTATIONS");
	unsigned long n = asked ? strtoul(asked, NULL, 0) : MUTATIONS, i;
	uint8_t data[AT_ONCE * 8];
	uint64_t state, r;
	struct media *content;
	struct lab lab;
	const char *why;
	unsigned k;

	lab_init(&lab);
	content = sim_content(lab.sim);
	lab_fini(&lab);
	for (i = 0; i < n; i++) {
		state = i;
		for (k = 0; k < AT_ONCE; k++) {
			r = test_random(&state);
			memcpy(data + 8 * k, &r, 8);
		}
		lab_init_from(&lab, content);
		mutate(&lab, data, sizeof(data), 1 + i % AT_ONCE);
		why = mutate_check(&lab);
		ck_assert_msg(!why, "seed %lu: %s", i, why);
		lab_fini(&lab);
	}
	media_free(content);
}
END_TEST

/* What ends a check at once, and the error that goes with it. */
static void write_supers(struct lab *lab, const struct super *super)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	uint64_t place[3];
	unsigned i;

	super_usual_places(LAB_SECTORS, place);
	for (i = 0; i < 3; i++) {
		super_encode(super, place[i], buf);
		ck_assert_int_eq(disk_write(sim_disk(lab->sim), place[i],
					    TRAX_BLOCK_SECTORS, buf), 0);
	}
	free(buf);
}

static void expect_fatal(struct lab *lab, enum problem problem, int want)
{
	struct check_result result;
	struct seen seen;

	ck_assert_int_eq(run(lab, true, &seen, &result), want);
	ck_assert_uint_eq(seen.by_problem[problem], 1);
	ck_assert(!result.changed);
}

START_TEST(without_superblock_or_root_the_check_ends)
{
	struct super super;
	uint64_t place[3];
	struct lab lab;
	unsigned i;

	lab_init_empty(&lab);
	lab_load(&lab);
	super = lab.check.super;
	lab_store(&lab);
	super.ro_compat = 1ull << 40;
	write_supers(&lab, &super);
	expect_fatal(&lab, PROBLEM_SUPER_FEATURE, -EINVAL);
	super.ro_compat = 0;
	write_supers(&lab, &super);
	sim_disk(lab.sim)->limits.sectors -= 4096;
	expect_fatal(&lab, PROBLEM_DEVICE_SMALL, -EFBIG);
	sim_disk(lab.sim)->limits.sectors += 4096;
	super_usual_places(LAB_SECTORS, place);
	for (i = 0; i < 3; i++)
		lab_zero(&lab, place[i], TRAX_BLOCK_SECTORS);
	expect_fatal(&lab, PROBLEM_SUPER_NONE, -EINVAL);
	lab_fini(&lab);
}
END_TEST

/* With safe_only, what needs a human is left as it is, with all else. */
START_TEST(preen_leaves_all_when_a_human_is_needed)
{
	struct check_options options = { .repair = true, .safe_only = true };
	struct check_result result;
	struct lab lab;

	lab_init(&lab);
	lab_load(&lab);
	lab_inode(&lab, LAB_BIG)->sectors = le64_put(1);
	lab_store(&lab);
	ck_assert_int_eq(check_run(sim_env(lab.sim), sim_disk(lab.sim),
				   &options, &result), 0);
	ck_assert(result.changed && result.found == 1 && !result.left);
	lab_load(&lab);
	lab_inode(&lab, LAB_BIG)->sectors = le64_put(1);
	lab_kill(&lab, key_make(LAB_DEEP, ITEM_INODE, 0));
	lab_store(&lab);
	ck_assert_int_eq(check_run(sim_env(lab.sim), sim_disk(lab.sim),
				   &options, &result), 0);
	ck_assert(!result.changed && result.left == result.found);
	lab_fini(&lab);
}
END_TEST

static bool refuse(void *arg, const struct check_found *found)
{
	return strcmp(found->problem->name, arg) != 0;
}

/* What is refused stays; the rest is repaired. */
START_TEST(what_is_refused_stays_and_the_rest_is_repaired)
{
	static char name[] = "inode-sectors";
	struct check_options options = {
		.repair = true, .found = refuse, .arg = name,
	};
	struct check_result result;
	struct lab lab;

	lab_init(&lab);
	lab_load(&lab);
	lab_inode(&lab, LAB_BIG)->sectors = le64_put(1);
	lab_inode(&lab, LAB_DIR)->nlink = le32_put(9);
	lab_store(&lab);
	ck_assert_int_eq(check_run(sim_env(lab.sim), sim_disk(lab.sim),
				   &options, &result), 0);
	ck_assert(result.changed && result.found == 2 && result.left == 1);
	lab_fini(&lab);
}
END_TEST

/* Each row that can come from an image has a damage. */
START_TEST(each_problem_has_a_damage)
{
	bool has[PROBLEMS] = { false };
	unsigned i;

	for (i = 0; i < damages_n; i++)
		has[damages[i].problem] = true;
	/* without_superblock_or_root_the_check_ends; what a repair says. */
	has[PROBLEM_SUPER_NONE] = has[PROBLEM_SUPER_FEATURE] = true;
	has[PROBLEM_DEVICE_SMALL] = has[PROBLEM_RESCUED] = true;
	/* In test_check_fs. */
	has[PROBLEM_LOG_REPLAY] = has[PROBLEM_DATA_LOST] = true;
	has[PROBLEM_DATA_UNSURE] = true;
	has[PROBLEM_ROOT_LOST] = true;	/* test_recover */
	for (i = 0; i < PROBLEMS; i++)
		ck_assert_msg(has[i], "no damage for %s",
			      check_problems[i].name);
	ck_assert_uint_ge(damages_n, 40);
}
END_TEST

static Suite *check_suite(void)
{
	Suite *suite = suite_create("check");
	TCase *tcase = tcase_create("damages");

	tcase_add_test(tcase, an_empty_file_system_is_whole);
	tcase_add_test(tcase, a_repair_of_what_is_whole_changes_nothing);
	tcase_add_test(tcase, without_superblock_or_root_the_check_ends);
	tcase_add_test(tcase, preen_leaves_all_when_a_human_is_needed);
	tcase_add_test(tcase, what_is_refused_stays_and_the_rest_is_repaired);
	tcase_add_test(tcase, inodes_that_problems_name_are_told_by_path);
	tcase_add_test(tcase, each_problem_has_a_damage);
	tcase_add_test(tcase, an_odd_key_loses_no_other_item);
	tcase_add_loop_test(tcase, an_overlap_costs_only_the_wrong_file, 0, 3);
	tcase_add_loop_test(tcase, logged_data_of_stale_extents_is_left, 0, 2);
	tcase_add_loop_test(tcase, checksums_before_the_end_stay, 0, 2);
	tcase_add_test(tcase, a_repair_goes_around_an_unwritable_sector);
	tcase_add_test(tcase, whatever_is_mutated_a_repair_leaves_it_whole);
	tcase_add_loop_test(tcase, each_damage_is_found_and_repaired,
			    0, (int)damages_n);
	tcase_add_loop_test(tcase, a_repair_that_is_cut_can_be_done_again,
			    0, (int)CUT_PROBLEMS);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(check_suite());
}
