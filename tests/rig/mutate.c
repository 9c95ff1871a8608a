/*
 * mutate.c - see mutate.h.
 */
#include "tests/rig/mutate.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct mutation {
	uint8_t kind;
	uint8_t value;
	uint16_t a;
	uint32_t b;
};

/* ---- Items ---- */

static struct item_set_item *any_item(struct lab *lab, uint32_t n)
{
	return item_set_at(&lab->set, n % item_set_count(&lab->set));
}

static void item_kill(struct lab *lab, const struct mutation *m)
{
	item_set_remove(any_item(lab, m->b));
}

static void item_byte(struct lab *lab, const struct mutation *m)
{
	struct item_set_item *item = any_item(lab, m->b);
	uint8_t *value = lab->set.values.base + item->value;
	uint8_t *byte = &value[m->a % item->bytes], old = *byte;

	*byte = m->value;
	/* Values that no writer writes are for node_* below. */
	if (item_verify(item->key, value, item->bytes))
		*byte = old;
}

/* A copy of an item under a key near it, or another inode's. */
static void item_copy(struct lab *lab, const struct mutation *m)
{
	struct item_set_item item = *any_item(lab, m->b);
	struct key key = item.key;

	if (m->value & 1)
		key.off += m->a;
	else
		key.ino = m->a % 640;
	if (!item_verify(key, lab->set.values.base + item.value, item.bytes))
		assert(item_set_put(&lab->set, key, lab->set.values.base +
			       item.value, item.bytes) == 0);
}

/* ---- Nodes, roots ---- */

static void leaf_byte(struct node_header *leaf, void *arg)
{
	const struct mutation *m = arg;

	((uint8_t *)leaf)[m->a % TRAX_NODE_BYTES] = m->value;
}

static void node_bytes(struct lab *lab, const struct mutation *m)
{
	struct mutation copy = *m;

	lab_edit_leaf(lab, m->b, leaf_byte, &copy);
}

/* Changes any byte on the disk and leaves checksums as they are. */
static void disk_byte(struct lab *lab, const struct mutation *m)
{
	sim_flip(lab->sim, (m->b ^ (uint32_t)m->a << 3) % LAB_SECTORS,
		 m->value);
}

/* Changes a byte at the start of the disk, where most metadata lies. */
static void disk_front(struct lab *lab, const struct mutation *m)
{
	sim_flip(lab->sim, m->a % 4096, m->b % 4096);
}

static void disk_lost(struct lab *lab, const struct mutation *m)
{
	sim_damage(lab->sim, m->b % (LAB_SECTORS - 8) & ~7u, 8);
}

static const struct {
	void (*apply)(struct lab *lab, const struct mutation *m);
	bool loaded;
} kinds[] = {
	{ item_kill, true }, { item_byte, true }, { item_copy, true },
	{ node_bytes, false }, { disk_byte, false }, { disk_front, false },
	{ disk_lost, false },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Changes items first, all at once, then the disk: nothing can be loaded from a
 * damaged one. */
void mutate(struct lab *lab, const uint8_t *data, size_t bytes, unsigned max)
{
	size_t i, n = bytes / sizeof(struct mutation);
	unsigned pass;
	bool node = false;

	if (n > max)
		n = max;
	lab_load(lab);
	for (pass = 0; pass < 3; pass++) {
		for (i = 0; i < n; i++) {
			struct mutation m;
			unsigned kind;

			memcpy(&m, data + i * sizeof(m), sizeof(m));
			kind = m.kind % KINDS;
			if (pass == 0 && kinds[kind].loaded) {
				kinds[kind].apply(lab, &m);
				assert(item_set_merge(&lab->set) == 0);
			} else if (pass == 1 && kind == 3 && !node) {
				/* One: the next could not find its way. */
				node = true;
				kinds[kind].apply(lab, &m);
			} else if (pass == 2 && kind > 3) {
				kinds[kind].apply(lab, &m);
			}
		}
		if (pass == 0)
			lab_store(lab);
	}
}

/* ---- The check ---- */

static bool no_loss(void *arg, const struct check_found *found)
{
	uint64_t *serious = arg;

	/* Lost data stays lost after a repair. */
	if (strncmp(found->problem->name, "data-", 5) != 0 &&
	    found->problem->severity > CHECK_NOTE)
		++*serious;
	return true;
}

const char *mutate_check(struct lab *lab)
{
	struct disk *disk = sim_disk(lab->sim);
	struct env *env = sim_env(lab->sim);
	uint64_t serious = 0, writes = sim_counts(lab->sim)->writes;
	struct check_options options = {
		.data = true, .found = no_loss, .arg = &serious,
	};
	struct check_result result;
	int rc = check_run(env, disk, &options, &result);

	if (sim_counts(lab->sim)->writes != writes)
		return "a check wrote";
	options.repair = true;
	if (rc || check_run(env, disk, &options, &result))
		return NULL;
	serious = 0;
	options.repair = false;
	rc = check_run(env, disk, &options, &result);
	if (rc)
		return "a repaired one cannot be checked";
	return serious ? "a repaired one is not silent" : NULL;
}
