/*
 * test_hostile_fs.c - items that somebody has made wrong on purpose, below
 * checksums that are right: whatever they say, mounting, using, and unmounting
 * ends, with errors perhaps.  TRAX_HOSTILE: how many, TRAX_HOSTILE_FIRST: from
 * which seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/msg.h"
#include "tests/rig/lab.h"
#include "tests/rig/mutate.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define TIMES 40u
#define MUTATION_BYTES 8u
#define CHANGES 12u
#define INOS 40u
#define LAST_INO (LAB_MANY_FIRST + LAB_MANY_FILES)
#define REGION 100000u
#define NUMBER 77u

static uint8_t buffer[64 << 10];

/* ---- What the lab does not have ---- */

static void add_copies(struct lab *lab)
{
	const struct region_item region = {
		.number = le64_put(NUMBER), .sectors = le32_put(512),
		.copies = le32_put(2),
	};
	const struct owner_item owner = {
		.kind = OWNER_REPLICA, .sectors = le64_put(512),
	};
	const struct replica_item copy = {
		.addr = le64_put(REGION + 8), .region = le64_put(REGION),
		.number = le64_put(NUMBER), .blocks = le16_put(16),
	};
	const struct copy_entry entry[2] = {
		{ le64_put(0), le64_put(0), le16_put(1) },
		{ le64_put(LAB_BIG), le64_put(0), le16_put(16) },
	};
	struct inode_item *inode = lab_inode(lab, LAB_BIG);

	inode->flags = le32_put(le32_get(inode->flags) | INODE_HAS_COPIES);
	lab_put(lab, key_make(0, ITEM_REGION, REGION), &region,
		sizeof(region));
	lab_put(lab, key_make(0, ITEM_OWNER, REGION), &owner, sizeof(owner));
	lab_put(lab, key_make(LAB_BIG, ITEM_REPLICA, 0), &copy, sizeof(copy));
	lab_put(lab, key_make(0, ITEM_COPIES, REGION), entry, sizeof(entry));
}

static void add_others(struct lab *lab, uint64_t *rng)
{
	struct orphan_item orphan = { .what = ORPHAN_TRUNCATE,
				      .size = le64_put(4096) };
	struct move_item move = { .to = le64_put(110000),
				  .to_sectors = le64_put(64) };
	uint8_t heat[600];
	size_t i;

	for (i = 0; i < sizeof(heat); i++)
		heat[i] = (uint8_t)test_random(rng);
	lab_put(lab, key_make(0, ITEM_HEAT, 0), heat, sizeof(heat));
	if (test_random(rng) % 2)
		lab_put(lab, key_make(0, ITEM_MOVE, OWNER_GEOM), &move,
			sizeof(move));
	if (test_random(rng) % 2)
		lab_put(lab, key_make(0, ITEM_ORPHAN, LAB_HOLES), &orphan,
			sizeof(orphan));
}

/* A byte anywhere in the value of a kind of item that there are few of. */
static void spoil_rare(struct lab *lab, uint64_t *rng)
{
	static const struct key keys[] = {
		{ 0, ITEM_REGION, REGION }, { 0, ITEM_COPIES, REGION },
		{ LAB_BIG, ITEM_REPLICA, 0 }, { 0, ITEM_OWNER, REGION },
		{ 0, ITEM_MOVE, OWNER_GEOM }, { 0, ITEM_ORPHAN, LAB_HOLES },
		{ LAB_BIG, ITEM_INODE, 0 }, { LAB_HOLES, ITEM_INODE, 0 },
	};
	const struct key key = keys[test_random(rng) %
				    (sizeof(keys) / sizeof(keys[0]))];
	struct item_set_item *item = item_set_find(&lab->set, key);
	uint8_t *value, *byte, old;

	if (!item)
		return;
	value = lab->set.values.base + item->value;
	byte = &value[test_random(rng) % item->bytes];
	old = *byte;
	*byte = (uint8_t)(1u << test_random(rng) % 8);
	if (item_verify(key, value, item->bytes))
		*byte = old;
}

static void spoil(struct lab *lab, uint64_t seed)
{
	uint8_t data[CHANGES * MUTATION_BYTES];
	uint64_t rng = seed, n;
	size_t i;

	lab_load(lab);
	add_copies(lab);
	add_others(lab, &rng);
	ck_assert_int_eq(item_set_merge(&lab->set), 0);
	for (n = test_random(&rng) % 4; n; n--)
		spoil_rare(lab, &rng);
	lab_store(lab);
	for (i = 0; i < sizeof(data); i += MUTATION_BYTES) {
		n = test_random(&rng);
		memcpy(data + i, &n, MUTATION_BYTES);
		data[i] = (uint8_t)(n % 3);	/* items */
	}
	mutate(lab, data, sizeof(data), (unsigned)(seed % CHANGES));
}

/* ---- Use ---- */

static int call(struct rig *rig, struct fs_op op)
{
	int rc;

	if (!op.buffer && op.type != FS_ERRORS && op.type != FS_COPIES &&
	    op.type != FS_HEAT)
		op.buffer = buffer;
	rc = rig_do(rig, &op);
	if (!rc && (op.type == FS_ERRORS || op.type == FS_COPIES ||
		    op.type == FS_HEAT))
		free(op.buffer);
	return rc;
}

static void use_file(struct rig *rig, uint64_t ino, uint64_t *rng)
{
	const uint64_t at = test_random(rng) % 1500 * 1024;
	struct fs_op cut = { .type = FS_SETATTR, .ino = ino,
			     .flags = FS_SET_SIZE };

	cut.attr.size = at;
	call(rig, (struct fs_op){ .type = FS_READ, .ino = ino, .size = 65536,
				  .offset = test_random(rng) % 2 ? at : 0 });
	call(rig, (struct fs_op){ .type = FS_COPIES, .ino = ino });
	switch (test_random(rng) % 8) {
	case 0:
		call(rig, (struct fs_op){ .type = FS_WRITE, .ino = ino,
					  .offset = at, .size = 5000,
					  .data = buffer });
		break;
	case 1:
		call(rig, cut);
		break;
	case 2:
		call(rig, (struct fs_op){ .type = FS_COPIES_MAKE,
					  .ino = ino });
		break;
	case 3:
		call(rig, (struct fs_op){ .type = FS_COPIES_DROP,
					  .ino = ino });
		break;
	case 4:
		call(rig, (struct fs_op){ .type = FS_FSYNC, .ino = ino });
		break;
	}
}

static void use(struct rig *rig, uint64_t *rng)
{
	char name[16];
	unsigned i;

	for (i = 0; i < INOS; i++) {
		const uint64_t ino = 1 + test_random(rng) %
			(test_random(rng) % 3 ? LAB_MANY_FIRST : LAST_INO);
		struct fs_attr attr;

		if (rig_getattr(rig, ino, &attr))
			continue;
		if (S_ISREG(attr.mode))
			use_file(rig, ino, rng);
		snprintf(name, sizeof(name), "n%u", i);
		if (S_ISDIR(attr.mode))
			rig_mkdir(rig, ino, name, NULL);
	}
	rig_unlink(rig, LAB_DIR, "big");
	rig_unlink(rig, LAB_DIR, "holes");
	call(rig, (struct fs_op){ .type = FS_ERRORS, .ino = TRAX_ROOT_INO });
	call(rig, (struct fs_op){ .type = FS_COPIES, .ino = TRAX_ROOT_INO });
	rig_sync(rig);
}

static void drop(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

START_TEST(any_image_is_checked_without_a_crash)
{
	const char *asked = getenv("TRAX_HOSTILE");
	const char *first = getenv("TRAX_HOSTILE_FIRST");
	unsigned long n = asked ? strtoul(asked, NULL, 0) : TIMES;
	unsigned long i = first ? strtoul(first, NULL, 0) : 0;
	struct media *content;
	struct lab lab;

	lab_init(&lab);
	content = sim_content(lab.sim);
	lab_fini(&lab);
	for (; i < n; i++) {
		struct rig rig = { .options = { .memory_bytes = 32 << 20,
						.replicas = 1 } };
		uint64_t rng = i;

		lab_init_from(&lab, content);
		spoil(&lab, i);
		rig.sim = lab.sim;
		fprintf(stderr, "seed %lu\n", i);
		if (!fs_open(sim_env(rig.sim), sim_disk(rig.sim),
			     &rig.options, &rig.fs)) {
			use(&rig, &rng);
			fs_close(rig.fs);
		}
		lab_fini(&lab);
	}
	media_free(content);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hostile_fs");
	TCase *tc = tcase_create("hostile_fs");

	msg_set_sink(drop, NULL);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, any_image_is_checked_without_a_crash);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
