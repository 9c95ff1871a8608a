/*
 * rebuild.c - a new tree from a set of items, beside the old one.
 *
 * Leaves are packed in key order, nine tenths full, into the slots that
 * repair_alloc_take gives; then one level of parents after the other.  Each
 * node has a mirror.  Only when all nodes are on the medium the root of a new
 * generation is written; a crash before that leaves the old state.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/repair/repair_internal.h"

/* Bytes of a new node that are filled: 90 %, so that the first changes after
 * the repair do not split every node. */
#define FILL_BYTES (TRAX_NODE_BYTES / 10 * 9)
/* Most children of a node that is filled so far. */
#define MAX_CHILDREN ((FILL_BYTES - sizeof(struct node_header)) / \
		      sizeof(struct child_slot))

/* Number of write errors in a row after which the device fails, and not single
 * slots. */
#define MAX_BAD_SLOTS 64u

/* A node of the level below, as its parent will name it. */
struct branch {
	struct key low;
	struct node_ptr ptr;
};

struct rebuild {
	struct check *check;
	struct item_set *set;
	struct repair_alloc place;
	struct root root;
	struct tmp_array branches; /* struct branch, of the level that was made
				    * last */
	struct vec used;	/* uint64_t, slots that were taken */
	uint8_t *node;		/* the node that is being made */
	unsigned bad_slots;	/* number of write errors since the last good
				 * write */
};

static uint64_t leaf_share(const struct item_set_item *item)
{
	return sizeof(struct leaf_slot) + item->bytes;
}

/* Number of slots that the set needs, for leaves, parents and mirrors, with
 * some to spare. */
static uint64_t slots_needed(const struct item_set *set)
{
	uint64_t bytes = 0, leaves, nodes, level;
	size_t i;

	for (i = 0; i < item_set_count(set); i++)
		bytes += leaf_share(item_set_at(set, i));
	/* A leaf ends when the next item does not fit: at most 4 KiB of it stay
	 * empty. */
	leaves = bytes / (FILL_BYTES - TRAX_MAX_ITEM_BYTES - 256) + 1;
	nodes = leaves;
	for (level = leaves; level > 1;
	     level = (level + MAX_CHILDREN - 1) / MAX_CHILDREN)
		nodes += (level + MAX_CHILDREN - 1) / MAX_CHILDREN;
	/* Each new node track adds an owner item. */
	return 2 * (nodes + nodes / 16 + 4);
}

/* ---- Nodes ---- */

static int rebuild_take(struct rebuild *rebuild, bool mirror, traxaddr *addr)
{
	uint64_t sector = repair_alloc_take(&rebuild->place, mirror);

	if (!sector)
		return -ENOSPC;
	*addr = addr_make(0, sector);
	return 0;
}

static int slot_use(struct rebuild *rebuild, traxaddr addr)
{
	uint64_t *used = check_add(rebuild->check, &rebuild->used);

	if (!used)
		return -ENOMEM;
	*used = addr_sector(addr);
	return 0;
}

/* Writes one copy of a node. A slot that cannot be written is passed over:
 * *addr is 0 then, and the caller takes another one. */
static int copy_write(struct rebuild *rebuild, const void *node, traxaddr *addr)
{
	int rc = device_write(rebuild->check, addr_sector(*addr),
			      TRAX_NODE_SECTORS, node);

	if (!rc) {
		rebuild->bad_slots = 0;
		return 0;
	}
	if (!device_place_failed(rc) || ++rebuild->bad_slots > MAX_BAD_SLOTS)
		return rc;
	*addr = 0;
	return 0;
}

/* Takes slots for those copies that have none, and fills in the addresses and
 * the checksum that depends on them. */
static int node_place(struct rebuild *rebuild, struct node_header *h,
		      struct node_ptr *ptr)
{
	int rc = 0;

	if (!ptr->addr)
		rc = rebuild_take(rebuild, false, &ptr->addr);
	if (!rc && !ptr->addr2)
		rc = rebuild_take(rebuild, true, &ptr->addr2);
	if (rc)
		return rc;
	h->addr = le64_put(ptr->addr);
	h->addr2 = le64_put(ptr->addr2);
	ptr->csum = csum(h, TRAX_NODE_BYTES);
	return node_verify(h, rebuild->check->fsid, ptr, h->level, KEY_MIN,
			   KEY_MAX) ? -EUCLEAN : 0;
}

/* Fills in the header, writes the node and notes it for its parent. */
static int node_write(struct rebuild *rebuild, unsigned level, struct key low,
		      struct key high)
{
	struct node_header *h = (struct node_header *)rebuild->node;
	struct node_ptr ptr = { .gen = rebuild->root.gen };
	struct branch *branch;
	int rc;

	h->magic = le32_put(TRAX_NODE_MAGIC);
	h->level = (uint8_t)level;
	h->fsid = le64_put(rebuild->check->fsid);
	h->gen = le64_put(ptr.gen);
	h->low = key_put(low);
	h->high = key_put(high);
	do {
		rc = node_place(rebuild, h, &ptr);
		if (!rc)
			rc = copy_write(rebuild, h, &ptr.addr);
		if (!rc)
			rc = copy_write(rebuild, h, &ptr.addr2);
	} while (!rc && (!ptr.addr || !ptr.addr2));
	if (!rc)
		rc = slot_use(rebuild, ptr.addr);
	if (!rc)
		rc = slot_use(rebuild, ptr.addr2);
	if (rc)
		return rc;
	branch = tmp_array_add(&rebuild->branches, 1);
	if (!branch)
		return -ENOMEM;
	*branch = (struct branch){ low, ptr };
	return 0;
}

static void leaf_add(uint8_t *node, const struct item_set *set,
		     const struct item_set_item *item)
{
	struct node_header *h = (struct node_header *)node;
	struct leaf_slot *slot = (struct leaf_slot *)(h + 1);
	unsigned n = le16_get(h->n), heap = le16_get(h->heap);

	heap -= item->bytes;
	memcpy(node + heap, item_set_value(set, item), item->bytes);
	slot[n].key = key_put(item->key);
	slot[n].off = le16_put((uint16_t)heap);
	slot[n].bytes = le16_put((uint16_t)item->bytes);
	h->n = le16_put((uint16_t)(n + 1));
	h->heap = le16_put((uint16_t)heap);
	h->used = le16_put((uint16_t)(le16_get(h->used) + item->bytes));
}

static void node_clear(uint8_t *node)
{
	struct node_header *h = (struct node_header *)node;

	memset(node, 0, TRAX_NODE_BYTES);
	h->heap = le16_put(TRAX_NODE_BYTES);
}

static int rebuild_leaves(struct rebuild *rebuild)
{
	const struct item_set *set = rebuild->set;
	struct key low = KEY_MIN;
	uint64_t bytes = sizeof(struct node_header);
	size_t i, n = item_set_count(set);
	int rc = 0;

	node_clear(rebuild->node);
	for (i = 0; i < n && !rc; i++) {
		const struct item_set_item *item = item_set_at(set, i);

		if (bytes + leaf_share(item) > FILL_BYTES) {
			rc = node_write(rebuild, 0, low, key_before(item->key));
			low = item->key;
			node_clear(rebuild->node);
			bytes = sizeof(struct node_header);
		}
		leaf_add(rebuild->node, set, item);
		bytes += leaf_share(item);
		if (i % 65536 == 0)
			check_progress(rebuild->check, "writing", i, n);
		if (!rc)
			rc = rebuild->check->rc;
	}
	return rc ? rc : node_write(rebuild, 0, low, KEY_MAX);
}

/* Makes one parent for branches [first, end) of the level below. */
static int parent_write(struct rebuild *rebuild, unsigned level, size_t first,
			size_t end, size_t level_end)
{
	struct node_header *h = (struct node_header *)rebuild->node;
	struct child_slot *slot = (struct child_slot *)(h + 1);
	const struct branch *branch;
	struct key low, high = KEY_MAX;
	size_t i;

	node_clear(rebuild->node);
	h->heap = le16_put(0);
	for (i = first; i < end; i++) {
		branch = tmp_array_at(&rebuild->branches, i);
		slot[i - first] = (struct child_slot){
			key_put(branch->low), le64_put(branch->ptr.addr),
			le64_put(branch->ptr.addr2),
			le64_put(branch->ptr.csum), le64_put(branch->ptr.gen),
		};
	}
	h->n = le16_put((uint16_t)(end - first));
	branch = tmp_array_at(&rebuild->branches, first);
	low = branch->low;
	if (end < level_end) {
		branch = tmp_array_at(&rebuild->branches, end);
		high = key_before(branch->low);
	}
	return node_write(rebuild, level, low, high);
}

/* Makes levels of parents until there is one node. The branches of all levels
 * follow each other in one array. */
static int rebuild_parents(struct rebuild *rebuild)
{
	size_t first = 0, end = rebuild->branches.n, at, n;
	const struct branch *top;
	unsigned level = 0;
	int rc = 0;

	while (end - first > 1 && !rc) {
		level++;
		for (at = first; at < end && !rc; at += n) {
			n = end - at < MAX_CHILDREN ? end - at : MAX_CHILDREN;
			rc = parent_write(rebuild, level, at, at + n, end);
		}
		first = end;
		end = rebuild->branches.n;
	}
	if (rc)
		return rc;
	top = tmp_array_at(&rebuild->branches, first);
	rebuild->root.tree = top->ptr;
	rebuild->root.level = level;
	return 0;
}

/* ---- The payload ---- */

static size_t slotmap_write(struct rebuild *rebuild, uint8_t *p)
{
	const uint64_t *used = rebuild->used.items;
	const uint8_t *start = p;
	size_t i, at = 0;

	for (i = 0; i < rebuild->place.tracks.n; i++) {
		const struct repair_alloc_track *t =
			vec_at(&rebuild->place.tracks, i);
		struct slot_track head = {
			le64_put(addr_make(0, t->sector)),
			le16_put((uint16_t)t->slots),
		};
		uint64_t end = t->sector +
			       (uint64_t)t->slots * TRAX_NODE_SECTORS;

		memcpy(p, &head, sizeof(head));
		p += sizeof(head);
		for (; at < rebuild->used.n && used[at] < end; at++) {
			uint64_t slot = (used[at] - t->sector) /
					TRAX_NODE_SECTORS;

			p[slot / 8] |= (uint8_t)(1u << slot % 8);
		}
		p += (t->slots + 7u) / 8;
	}
	return (size_t)(p - start);
}

/* Notes a free run in the groups that it touches. */
static void groups_free(struct group_item *table, uint64_t first, uint64_t n)
{
	while (n) {
		uint64_t group = first / TRAX_GROUP_SECTORS;
		uint64_t here = (group + 1) * TRAX_GROUP_SECTORS - first;
		struct group_item *g = &table[group];

		if (here > n)
			here = n;
		g->free = le32_put(le32_get(g->free) + (uint32_t)here);
		if (here > le32_get(g->largest))
			g->largest = le32_put((uint32_t)here);
		first += here;
		n -= here;
	}
}

static void groups_write(struct rebuild *rebuild, struct group_item *table)
{
	const struct item_set *set = rebuild->set;
	size_t i = item_set_seek(set, key_make(0, ITEM_OWNER, 0));
	uint64_t at = 0, sectors = rebuild->check->super.sectors;

	for (; i < item_set_count(set); i++) {
		const struct item_set_item *item = item_set_at(set, i);
		const struct owner_item *owner = item_set_value(set, item);
		uint64_t sector = addr_sector(item->key.off);

		if (item->key.ino || item->key.type != ITEM_OWNER)
			break;
		if (sector > at)
			groups_free(table, at, sector - at);
		if (sector + le64_get(owner->sectors) > at)
			at = sector + le64_get(owner->sectors);
	}
	if (at < sectors)
		groups_free(table, at, sectors - at);
}

static uint64_t payload_bound(const struct rebuild *rebuild, uint64_t groups)
{
	uint64_t bytes = groups * sizeof(struct group_item);
	size_t i;

	for (i = 0; i < rebuild->place.tracks.n; i++) {
		const struct repair_alloc_track *t =
			vec_at(&rebuild->place.tracks, i);

		bytes += sizeof(struct slot_track) + (t->slots + 7u) / 8;
	}
	return bytes;
}

static int rebuild_root(struct rebuild *rebuild)
{
	struct check *check = rebuild->check;
	struct root *root = &rebuild->root;
	uint64_t groups = (check->super.sectors + TRAX_GROUP_SECTORS - 1) /
			  TRAX_GROUP_SECTORS;
	uint64_t bytes = payload_bound(rebuild, groups);
	uint8_t *payload;
	int rc;

	if (bytes + TRAX_BLOCK_BYTES >
	    (uint64_t)check->super.area_sectors * SECTOR_BYTES)
		return -ENOSPC;
	payload = device_buffer(check, bytes + TRAX_BLOCK_BYTES);
	if (!payload)
		return -ENOMEM;
	memset(payload, 0, bytes + TRAX_BLOCK_BYTES);
	vec_sort(&rebuild->used, sort_u64_cmp);
	root->slotmap_bytes = (uint32_t)slotmap_write(rebuild, payload);
	root->group_bytes = (uint32_t)(groups * sizeof(struct group_item));
	groups_write(rebuild, (struct group_item *)(payload +
						    root->slotmap_bytes));
	root->payload_csum = csum(payload, bytes);
	rc = device_flush(check);
	if (!rc)
		rc = super_root_write_root(check, root->gen & 1, root, payload);
	free(payload);
	return rc;
}

/* ---- The numbers of the root ---- */

static void root_numbers(struct root *root, const struct item_set *set)
{
	size_t i;

	root->inodes = 0;
	for (i = 0; i < item_set_count(set); i++) {
		const struct item_set_item *item = item_set_at(set, i);
		const struct inode_item *inode = item_set_value(set, item);
		uint64_t seq = item->key.ino &
			       ((1ull << TRAX_INO_SEQ_BITS) - 1);
		uint64_t group = item->key.ino >> TRAX_INO_SEQ_BITS;

		if (item->key.type != ITEM_INODE)
			continue;
		root->inodes++;
		if (group <= le64_get(inode->dirgroup))
			group = le64_get(inode->dirgroup);
		if (root->next_ino_seq <= seq)
			root->next_ino_seq = seq + 1;
		if (root->next_dirgroup <= group)
			root->next_dirgroup = group + 1;
	}
}

/* Newer than all that the log follows, and in the other area. */
static uint64_t next_gen(const struct check *check)
{
	const uint64_t old = check->root.gen;
	uint64_t gen = check->newest_gen > old ? check->newest_gen : old;

	gen += TRAX_ROOT_GEN_STEP;
	return gen + !((gen - old) & 1);
}

static void root_begin(struct rebuild *rebuild)
{
	struct check *check = rebuild->check;
	struct root *root = &rebuild->root;

	*root = check->root;
	root->gen = next_gen(check);
	root->epoch = env_random(check->env);
	root->clean = true;
	root->tail_seq = root->cut_seq + 1;
	root->wall_ns = env_wall_ns(check->env);
	root_numbers(root, rebuild->set);
}

static int rebuild_tree(struct rebuild *rebuild)
{
	struct check *check = rebuild->check;
	int rc = repair_alloc_owners(check, rebuild->set, &rebuild->place);

	if (!rc)
		rc = repair_alloc_slots(check, rebuild->set, &rebuild->place,
				 slots_needed(rebuild->set));
	if (rc)
		return rc;
	root_begin(rebuild);
	rc = rebuild_leaves(rebuild);
	if (!rc)
		rc = rebuild_parents(rebuild);
	return rc ? rc : rebuild_root(rebuild);
}

int rebuild_write(struct check *check, struct item_set *set)
{
	struct rebuild rebuild = { .check = check, .set = set };
	int rc = tmp_array_init(&rebuild.branches, sizeof(struct branch),
			    check->options.scratch);

	if (rc)
		return rc;
	vec_init(&rebuild.used, sizeof(uint64_t));
	rebuild.node = device_buffer(check, TRAX_NODE_BYTES);
	rc = rebuild.node ? rebuild_tree(&rebuild) : -ENOMEM;
	repair_alloc_free(&rebuild.place);
	vec_fini(&rebuild.used);
	tmp_array_fini(&rebuild.branches);
	free(rebuild.node);
	return rc;
}
