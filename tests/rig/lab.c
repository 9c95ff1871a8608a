/*
 * lab.c - a small file system made of known items.
 */
#include "tests/rig/lab.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "check/repair/repair.h"
#include "fs/mkfs.h"

/* ---- The file system's items in memory ---- */

static void lab_check_init(struct lab *lab)
{
	struct check *check = &lab->check;

	memset(check, 0, sizeof(*check));
	check->env = sim_env(lab->sim);
	check->disk = sim_disk(lab->sim);
	check->options.repair = true;
	check->result = &lab->result;
	vec_init(&check->nodes, sizeof(uint64_t));
	vec_init(&check->lost, sizeof(struct lost_range));
	mirrors_begin(check);
	assert(super_root_load_super(check) == 0);
	assert(super_root_load_root(check) == 0);
	assert(check->have_root);
}

static void lab_check_fini(struct lab *lab)
{
	super_root_free(&lab->check);
	vec_fini(&lab->check.nodes);
	vec_fini(&lab->check.lost);
	mirrors_free(&lab->check);
}

/* Slots in use, so that the new tree keeps off them. */
static void note_item(struct check *check, struct key key, const void *value,
		      size_t bytes)
{
	(void)check;
	(void)key;
	(void)value;
	(void)bytes;
}

void lab_load(struct lab *lab)
{
	lab_check_init(lab);
	assert(item_set_init(&lab->set, NULL) == 0);
	walk_tree(&lab->check, true, note_item);
	assert(collect_items(&lab->check, &lab->set) == 0);
}

void lab_store(struct lab *lab)
{
	assert(item_set_merge(&lab->set) == 0);
	assert(rebuild_write(&lab->check, &lab->set) == 0);
	item_set_fini(&lab->set);
	lab_check_fini(lab);
}

void lab_unload(struct lab *lab)
{
	item_set_fini(&lab->set);
	lab_check_fini(lab);
}

void lab_put(struct lab *lab, struct key key, const void *value, size_t bytes)
{
	assert(item_set_put(&lab->set, key, value, bytes) == 0);
	assert(item_set_merge(&lab->set) == 0);
}

void lab_kill(struct lab *lab, struct key key)
{
	struct item_set_item *item = item_set_find(&lab->set, key);

	assert(item);
	item_set_remove(item);
	assert(item_set_merge(&lab->set) == 0);
}

void *lab_value(struct lab *lab, struct key key)
{
	struct item_set_item *item = item_set_find(&lab->set, key);

	assert(item);
	return lab->set.values.base + item->value;
}

struct inode_item *lab_inode(struct lab *lab, uint64_t ino)
{
	return lab_value(lab, key_make(ino, ITEM_INODE, 0));
}

/* ---- Content ---- */

struct key lab_name_key(struct lab *lab, uint64_t dir, const char *name)
{
	return key_make(dir, ITEM_NAME, dirs_hash(&lab->check, name,
						  strlen(name)));
}

void lab_add_name(struct lab *lab, uint64_t dir, uint64_t seq,
		  const char *name, uint64_t ino, uint8_t type)
{
	uint8_t value[sizeof(struct name_record) + TRAX_MAX_NAME_BYTES];
	struct name_record head = {
		.ino = le64_put(ino), .seq = le64_put(seq), .type = type,
		.bytes = (uint8_t)strlen(name),
	};

	memcpy(value, &head, sizeof(head));
	memcpy(value + sizeof(head), name, strlen(name));
	lab_put(lab, lab_name_key(lab, dir, name), value,
		sizeof(head) + strlen(name));
	lab_put(lab, key_make(dir, ITEM_ENTRY, seq), value,
		sizeof(head) + strlen(name));
}

/* Adds a name and counts it in its directory. */
static void make_name(struct lab *lab, uint64_t dir, const char *name,
		      uint64_t ino, uint8_t type)
{
	uint64_t seq = le64_get(lab_inode(lab, dir)->next_seq);
	struct inode_item *item;

	lab_add_name(lab, dir, seq, name, ino, type);
	item = lab_inode(lab, dir);
	item->next_seq = le64_put(seq + 1);
	item->entries = le64_put(le64_get(item->entries) + 1);
	if (type == DT_DIR)
		item->nlink = le32_put(le32_get(item->nlink) + 1);
}

static void make_inode(struct lab *lab, uint64_t ino, uint32_t mode,
		       uint64_t parent, uint64_t size)
{
	struct inode_item item;

	repair_new_inode(&lab->check, mode, &item);
	item.parent = le64_put(parent);
	item.size = le64_put(size);
	assert(item_set_put(&lab->set, key_make(ino, ITEM_INODE, 0), &item,
		       sizeof(item)) == 0);
	assert(item_set_merge(&lab->set) == 0);
}

static void block_fill(uint64_t ino, uint64_t block, uint8_t *buf)
{
	uint64_t state[2] = { ino, block };
	unsigned i;

	for (i = 0; i < TRAX_BLOCK_BYTES / 8; i++) {
		uint64_t x = csum(state, sizeof(state)) + i;

		memcpy(buf + 8u * i, &x, 8);
	}
}

/* Blocks [first, first + n) of a file at a sector, without checksums. */
static void make_extent(struct lab *lab, uint64_t ino, uint64_t first,
			uint64_t n, uint64_t sector, uint32_t flags)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct extent_item item = {
		le64_put(addr_make(0, sector)),
		le64_put(n * TRAX_BLOCK_SECTORS), le32_put(flags),
	};
	struct inode_item *inode;
	uint64_t i;

	for (i = 0; i < n && !(flags & EXTENT_UNWRITTEN); i++) {
		block_fill(ino, first + i, buf);
		assert(disk_write(sim_disk(lab->sim),
				  sector + i * TRAX_BLOCK_SECTORS,
				  TRAX_BLOCK_SECTORS, buf) == 0);
	}
	free(buf);
	lab_put(lab, key_make(ino, ITEM_EXTENT, first * TRAX_BLOCK_SECTORS),
		&item, sizeof(item));
	inode = lab_inode(lab, ino);
	inode->sectors = le64_put(le64_get(inode->sectors) +
				  n * TRAX_BLOCK_SECTORS);
}

static void window_sum(struct csum_window *w, uint64_t ino, uint64_t block)
{
	unsigned in = block % TRAX_CSUM_WINDOW_BLOCKS;
	unsigned piece = in / TRAX_CSUM_CHUNK_BLOCKS;
	unsigned bit = in % TRAX_CSUM_CHUNK_BLOCKS;
	uint8_t buf[TRAX_BLOCK_BYTES];

	block_fill(ino, block, buf);
	w->mask[piece] |= (uint16_t)(1u << bit);
	w->sum[piece][bit] = csum_block(buf);
}

/* Checksums of blocks [first, first + n) of one window. */
static void make_sums(struct lab *lab, uint64_t ino, uint64_t first,
		      uint64_t n)
{
	struct csum_window w = { 0 };
	uint8_t value[TRAX_MAX_ITEM_BYTES];
	uint64_t i;

	for (i = 0; i < n; i++)
		window_sum(&w, ino, first + i);
	lab_put(lab, key_make(ino, ITEM_CSUM, first -
			      first % TRAX_CSUM_WINDOW_BLOCKS),
		value, csum_window_encode(&w, value));
}

static void make_xattr(struct lab *lab, uint64_t ino, const char *name,
		       size_t value_bytes)
{
	uint64_t base = dirs_hash(&lab->check, name, strlen(name)) & ~0xffull;
	size_t skip = sizeof(struct xattr_head) + strlen(name), at = 0, n;
	uint8_t piece[TRAX_XATTR_PIECE_BYTES] = { 0 };
	struct xattr_head head = {
		.value_bytes = le32_put((uint32_t)value_bytes),
		.name_bytes = (uint8_t)strlen(name),
		.pieces = (uint8_t)(1 + (value_bytes + skip - 1) /
				    sizeof(piece)),
	};
	struct inode_item *inode;
	unsigned i;

	memcpy(piece, &head, sizeof(head));
	memcpy(piece + sizeof(head), name, strlen(name));
	for (i = 0; i < head.pieces; i++, skip = 0) {
		n = sizeof(piece) - skip;
		if (n > value_bytes - at)
			n = value_bytes - at;
		lab_put(lab, key_make(ino, ITEM_XATTR, base + i), piece,
			skip + n);
		at += n;
	}
	inode = lab_inode(lab, ino);
	inode->xattrs = le32_put(le32_get(inode->xattrs) + 1);
}

static void make_files(struct lab *lab, uint64_t data)
{
	static const char small[] = "a small file";

	make_inode(lab, LAB_BIG, S_IFREG | 0644, LAB_DIR,
		   40 * TRAX_BLOCK_BYTES - 5);
	make_extent(lab, LAB_BIG, 0, 24, data, 0);
	make_extent(lab, LAB_BIG, 24, 16, data + 512, EXTENT_KNOWN);
	make_sums(lab, LAB_BIG, 0, 40);
	make_name(lab, LAB_DIR, "big", LAB_BIG, DT_REG);
	make_name(lab, LAB_DIR, "big2", LAB_BIG, DT_REG);
	lab_inode(lab, LAB_BIG)->nlink = le32_put(2);
	make_inode(lab, LAB_SMALL, S_IFREG | 0600, LAB_DIR, strlen(small));
	lab_put(lab, key_make(LAB_SMALL, ITEM_INLINE, 0), small,
		strlen(small));
	make_xattr(lab, LAB_SMALL, "user.a", 20);
	make_xattr(lab, LAB_SMALL, "user.long", 10000);
	make_name(lab, LAB_DIR, "small", LAB_SMALL, DT_REG);
	make_inode(lab, LAB_SYMLINK, S_IFLNK | 0777, LAB_DIR, 6);
	lab_put(lab, key_make(LAB_SYMLINK, ITEM_INLINE, 0), "target", 6);
	make_name(lab, LAB_DIR, "symlink", LAB_SYMLINK, DT_LNK);
	make_inode(lab, LAB_DEVICE, S_IFCHR | 0600, LAB_DIR, 0);
	lab_inode(lab, LAB_DEVICE)->rdev = le32_put(0x103);
	make_name(lab, LAB_DIR, "device", LAB_DEVICE, DT_CHR);
	make_inode(lab, LAB_HOLES, S_IFREG | 0644, LAB_DIR,
		   301 * TRAX_BLOCK_BYTES);
	make_extent(lab, LAB_HOLES, 0, 1, data + 1024, 0);
	make_extent(lab, LAB_HOLES, 300, 1, data + 1032, 0);
	make_extent(lab, LAB_HOLES, 301, 8, data + 1040, EXTENT_UNWRITTEN);
	make_sums(lab, LAB_HOLES, 0, 1);
	make_sums(lab, LAB_HOLES, 300, 1);
	make_name(lab, LAB_DIR, "holes", LAB_HOLES, DT_REG);
}

static void make_tree(struct lab *lab, uint64_t data)
{
	char name[32];
	unsigned i;

	make_inode(lab, LAB_DIR, S_IFDIR | 0755, TRAX_ROOT_INO, 0);
	make_name(lab, TRAX_ROOT_INO, "d", LAB_DIR, DT_DIR);
	make_files(lab, data);
	make_inode(lab, LAB_SUB, S_IFDIR | 0700, LAB_DIR, 0);
	make_name(lab, LAB_DIR, "sub", LAB_SUB, DT_DIR);
	make_inode(lab, LAB_DEEP, S_IFREG | 0644, LAB_SUB,
		   3 * TRAX_BLOCK_BYTES);
	make_extent(lab, LAB_DEEP, 0, 3, data + 1200, 0);
	make_sums(lab, LAB_DEEP, 0, 3);
	make_name(lab, LAB_SUB, "deep", LAB_DEEP, DT_REG);
	make_inode(lab, LAB_MANY, S_IFDIR | 0755, TRAX_ROOT_INO, 0);
	make_name(lab, TRAX_ROOT_INO, "many", LAB_MANY, DT_DIR);
	for (i = 0; i < LAB_MANY_FILES; i++) {
		snprintf(name, sizeof(name), "file number %u", i);
		make_inode(lab, LAB_MANY_FIRST + i, S_IFREG | 0644, LAB_MANY,
			   strlen(name));
		lab_put(lab, key_make(LAB_MANY_FIRST + i, ITEM_INLINE, 0),
			name, strlen(name));
		make_name(lab, LAB_MANY, name, LAB_MANY_FIRST + i, DT_REG);
	}
}

/* Finds a run of free sectors. */
static uint64_t find_room(const struct lab *lab, uint64_t sectors)
{
	uint64_t at = 0;
	size_t i = item_set_seek(&lab->set, key_make(0, ITEM_OWNER, 0));

	for (; i < item_set_count(&lab->set); i++) {
		const struct item_set_item *item = item_set_at(&lab->set, i);
		const struct owner_item *owner =
			item_set_value(&lab->set, item);

		if (item->key.ino)
			break;
		if (item->key.off > at + sectors)
			return (at + 7) & ~7ull;
		at = item->key.off + le64_get(owner->sectors);
	}
	return (at + 7) & ~7ull;
}

void lab_init_empty(struct lab *lab)
{
	struct sim_options options = { .seed = 1 };
	struct mkfs_options mkfs = { .label = "lab" };
	struct mkfs_plan plan;
	struct geom *geom;

	memset(lab, 0, sizeof(*lab));
	lab->sim = sim_new(NULL, LAB_SECTORS, &options);
	assert(lab->sim);
	assert(geom_regular(LAB_SECTORS, 2048, &geom) == 0);
	mkfs.geom = geom;
	assert(mkfs_plan(sim_env(lab->sim), &sim_disk(lab->sim)->limits, &mkfs,
			 &plan) == 0);
	assert(mkfs_write(sim_env(lab->sim), sim_disk(lab->sim), &mkfs,
			  &plan) == 0);
	geom_free(geom);
}

void lab_init_from(struct lab *lab, const struct media *content)
{
	struct sim_options options = { .seed = 1, .content = content };

	memset(lab, 0, sizeof(*lab));
	lab->sim = sim_new(NULL, LAB_SECTORS, &options);
	assert(lab->sim);
}

void lab_init(struct lab *lab)
{
	lab_init_empty(lab);
	lab_load(lab);
	make_tree(lab, find_room(lab, 4096));
	lab_store(lab);
}

void lab_fini(struct lab *lab)
{
	sim_free(lab->sim);
}

/* ---- On the disk ---- */

static void lab_write(struct lab *lab, uint64_t sector, uint64_t sectors,
		      const void *buf)
{
	assert(disk_write(sim_disk(lab->sim), sector, (uint32_t)sectors,
			  buf) == 0);
}

void lab_zero(struct lab *lab, uint64_t sector, uint64_t sectors)
{
	void *zero = aligned_alloc(4096, (sectors * SECTOR_BYTES + 4095) &
				   ~4095ull);

	memset(zero, 0, sectors * SECTOR_BYTES);
	lab_write(lab, sector, sectors, zero);
	free(zero);
}

void lab_edit_root(struct lab *lab,
		   void (*edit)(struct root *root, uint8_t *payload))
{
	struct root root;

	lab_check_init(lab);
	root = lab->check.root;
	edit(&root, lab->check.payload);
	root.payload_csum = csum(lab->check.payload,
				 (size_t)root.slotmap_bytes +
				 root.group_bytes);
	assert(super_root_write_root(&lab->check, lab->check.area, &root,
				 lab->check.payload) == 0);
	lab_check_fini(lab);
}

/* The child of an interior node that has this key. */
static struct child_slot *child_of(struct node_header *h, struct key key)
{
	struct child_slot *slot = (struct child_slot *)(h + 1);
	unsigned i = le16_get(h->n);

	while (i > 1 && key_cmp(key_get(&slot[i - 1].key), key) > 0)
		i--;
	return &slot[i - 1];
}

static struct leaf_slot *slot_of(struct node_header *h, struct key key)
{
	struct leaf_slot *slot = (struct leaf_slot *)(h + 1);
	unsigned i;

	for (i = 0; i < le16_get(h->n); i++)
		if (key_cmp(key_get(&slot[i].key), key) == 0)
			return &slot[i];
	abort();
}

/* The tree has two levels: a root node above the leaves. */
static struct node_header *read_node(struct lab *lab, uint64_t addr)
{
	struct node_header *h = aligned_alloc(4096, TRAX_NODE_BYTES);

	assert(disk_read(sim_disk(lab->sim), addr_sector(addr),
			 TRAX_NODE_SECTORS, h) == 0);
	return h;
}

static void write_leaf(struct lab *lab, const struct node_header *leaf)
{
	lab_write(lab, addr_sector(le64_get(leaf->addr)), TRAX_NODE_SECTORS,
		  leaf);
	if (le64_get(leaf->addr2))
		lab_write(lab, addr_sector(le64_get(leaf->addr2)),
			  TRAX_NODE_SECTORS, leaf);
}

static void write_root_node(struct lab *lab, const struct node_header *node,
			    struct root *root)
{
	root->tree.csum = csum(node, TRAX_NODE_BYTES);
	root->tree.addr2 = le64_get(node->addr2);
	lab_write(lab, addr_sector(le64_get(node->addr)), TRAX_NODE_SECTORS,
		  node);
	lab_write(lab, addr_sector(le64_get(node->addr2)), TRAX_NODE_SECTORS,
		  node);
	assert(super_root_write_root(&lab->check, lab->check.area, root,
				 lab->check.payload) == 0);
}

void lab_edit(struct lab *lab, struct key key,
	      void (*edit)(struct node_header *leaf, struct leaf_slot *slot,
			   void *value))
{
	struct node_header *top, *leaf;
	struct leaf_slot *slot;
	struct child_slot *child;

	lab_check_init(lab);
	assert(lab->check.root.level == 1);
	top = read_node(lab, lab->check.root.tree.addr);
	child = child_of(top, key);
	leaf = read_node(lab, le64_get(child->addr));
	slot = slot_of(leaf, key);
	edit(leaf, slot, (uint8_t *)leaf + le16_get(slot->off));
	child->csum = le64_put(csum(leaf, TRAX_NODE_BYTES));
	write_leaf(lab, leaf);
	write_root_node(lab, top, &lab->check.root);
	free(top);
	free(leaf);
	lab_check_fini(lab);
}

void lab_edit_leaf(struct lab *lab, unsigned index,
		   void (*edit)(struct node_header *leaf, void *arg),
		   void *arg)
{
	struct node_header *top, *leaf;
	struct child_slot *child;

	lab_check_init(lab);
	assert(lab->check.root.level == 1);
	top = read_node(lab, lab->check.root.tree.addr);
	child = (struct child_slot *)(top + 1) + index % le16_get(top->n);
	leaf = read_node(lab, le64_get(child->addr));
	edit(leaf, arg);
	child->csum = le64_put(csum(leaf, TRAX_NODE_BYTES));
	write_leaf(lab, leaf);
	write_root_node(lab, top, &lab->check.root);
	free(top);
	free(leaf);
	lab_check_fini(lab);
}

void lab_edit_root_node(struct lab *lab,
			void (*edit)(struct lab *lab,
				     struct node_header *node))
{
	struct node_header *top;

	lab_check_init(lab);
	top = read_node(lab, lab->check.root.tree.addr);
	edit(lab, top);
	write_root_node(lab, top, &lab->check.root);
	free(top);
	lab_check_fini(lab);
}

void lab_leaf_sectors(struct lab *lab, struct key key, uint64_t sector[2])
{
	const struct child_slot *child;
	struct node_header *top;

	lab_check_init(lab);
	top = read_node(lab, lab->check.root.tree.addr);
	child = child_of(top, key);
	sector[0] = addr_sector(le64_get(child->addr));
	sector[1] = addr_sector(le64_get(child->addr2));
	free(top);
	lab_check_fini(lab);
}

/* ---- Is it whole? ---- */

static bool has_name(struct lab *lab, uint64_t dir, const char *name,
		     uint64_t ino)
{
	const struct item_set_item *item = item_set_find(&lab->set,
					       lab_name_key(lab, dir, name));
	const struct name_record *record =
		item ? item_set_value(&lab->set, item) : NULL;

	return record && le64_get(record->ino) == ino;
}

static const char *blocks_whole(struct lab *lab, uint64_t ino, uint64_t first,
				uint64_t n)
{
	uint8_t *buf = aligned_alloc(4096, 2 * TRAX_BLOCK_BYTES);
	const char *why = NULL;
	uint64_t i;

	for (i = first; i < first + n && !why; i++) {
		block_fill(ino, i, buf + TRAX_BLOCK_BYTES);
		if (repair_read_block(&lab->check, &lab->set, ino, i, buf) ||
		    memcmp(buf, buf + TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES))
			why = "data";
	}
	free(buf);
	return why;
}

static const char *many_whole(struct lab *lab, uint64_t ino)
{
	const struct item_set_item *item;
	char name[32];

	snprintf(name, sizeof(name), "file number %u",
		 (unsigned)(ino - LAB_MANY_FIRST));
	item = item_set_find(&lab->set, key_make(ino, ITEM_INLINE, 0));
	if (!item || item->bytes != strlen(name) ||
	    memcmp(item_set_value(&lab->set, item), name, item->bytes))
		return "content";
	return has_name(lab, LAB_MANY, name, ino) ? NULL : "name";
}

static const char *size_whole(struct lab *lab, uint64_t ino, uint64_t size)
{
	struct inode_item item;

	if (!repair_get_inode(&lab->set, ino, &item))
		return "inode";
	return le64_get(item.size) == size ? NULL : "size";
}

const char *lab_whole(struct lab *lab, uint64_t ino)
{
	const char *why = NULL;

	switch (ino) {
	case LAB_BIG:
		why = size_whole(lab, ino, 40 * TRAX_BLOCK_BYTES - 5);
		if (!has_name(lab, LAB_DIR, "big", ino) ||
		    !has_name(lab, LAB_DIR, "big2", ino))
			why = "name";
		return why ? why : blocks_whole(lab, ino, 0, 40);
	case LAB_SMALL:
		if (!has_name(lab, LAB_DIR, "small", ino))
			return "name";
		return size_whole(lab, ino, strlen("a small file"));
	case LAB_SYMLINK:
		if (!has_name(lab, LAB_DIR, "symlink", ino))
			return "name";
		return size_whole(lab, ino, 6);
	case LAB_DEEP:
		if (!has_name(lab, LAB_SUB, "deep", ino))
			return "name";
		why = size_whole(lab, ino, 3 * TRAX_BLOCK_BYTES);
		return why ? why : blocks_whole(lab, ino, 0, 3);
	case LAB_HOLES:
		if (!has_name(lab, LAB_DIR, "holes", ino))
			return "name";
		why = blocks_whole(lab, ino, 0, 1);
		return why ? why : blocks_whole(lab, ino, 300, 1);
	default:
		return ino < LAB_MANY_FIRST ? NULL : many_whole(lab, ino);
	}
}
