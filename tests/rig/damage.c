/*
 * damage.c - ways to damage the lab's file system.
 */
#include "tests/rig/damage.h"

#include <assert.h>
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "check/repair/repair.h"

#define MANY (LAB_MANY_FIRST + 300)	/* one among many */
#define LAST (LAB_MANY_FIRST + LAB_MANY_FILES - 1)

static struct key inode_key(uint64_t ino)
{
	return key_make(ino, ITEM_INODE, 0);
}

/* ---- Superblocks, roots, payload ---- */

static void super_zero(struct lab *lab)
{
	uint64_t place[3];

	super_usual_places(LAB_SECTORS, place);
	lab_zero(lab, place[0], TRAX_BLOCK_SECTORS);
}

static void super_second(struct lab *lab)
{
	uint64_t place[3];

	super_usual_places(LAB_SECTORS, place);
	sim_damage(lab->sim, place[1], TRAX_BLOCK_SECTORS);
}

static struct super lab_super(struct lab *lab)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct super super;

	assert(disk_read(sim_disk(lab->sim), TRAX_SUPER_SECTOR,
			 TRAX_BLOCK_SECTORS, buf) == 0);
	assert(!super_decode(buf, TRAX_SUPER_SECTOR, &super));
	free(buf);
	return super;
}

static void root_zero(struct lab *lab)
{
	struct super super = lab_super(lab);
	unsigned i;

	for (i = 0; i < 4; i++)
		lab_zero(lab, super.area_sector[i / 2][i % 2],
			 TRAX_BLOCK_SECTORS);
}

/* Both copies of the better root are in one area: which, lab_load knows. */
static unsigned lab_area(struct lab *lab)
{
	unsigned area;

	lab_load(lab);
	area = lab->check.area;
	lab_unload(lab);
	return area;
}

static void root_one(struct lab *lab)
{
	struct super super = lab_super(lab);

	lab_zero(lab, super.area_sector[lab_area(lab)][0], TRAX_BLOCK_SECTORS);
}

static void payload_one(struct lab *lab)
{
	struct super super = lab_super(lab);

	sim_flip(lab->sim, super.area_sector[lab_area(lab)][1] +
		 TRAX_BLOCK_SECTORS, 77);
}

static void payload_both(struct lab *lab)
{
	struct super super = lab_super(lab);
	unsigned i, area = lab_area(lab);

	for (i = 0; i < 2; i++)
		sim_flip(lab->sim, super.area_sector[area][i] +
			 TRAX_BLOCK_SECTORS, 3);
}

static void geometry(struct lab *lab)
{
	sim_flip(lab->sim, lab_super(lab).geom_sector, 100);
}

static void bit_first(struct root *root, uint8_t *payload, bool set)
{
	uint8_t *bits = payload + sizeof(struct slot_track);
	unsigned i;

	(void)root;
	for (i = 0; i < 512; i++) {
		if ((bits[i / 8] >> i % 8 & 1) == set)
			continue;
		bits[i / 8] ^= (uint8_t)(1u << i % 8);
		return;
	}
}

static void edit_leak(struct root *root, uint8_t *payload)
{
	bit_first(root, payload, true);
}

static void slot_leaked(struct lab *lab)
{
	lab_edit_root(lab, edit_leak);
}

static void edit_unmap(struct root *root, uint8_t *payload)
{
	bit_first(root, payload, false);
}

static void slot_unmapped(struct lab *lab)
{
	lab_edit_root(lab, edit_unmap);
}

static void edit_tracks(struct root *root, uint8_t *payload)
{
	struct slot_track *track = (struct slot_track *)payload;

	(void)root;
	track->slots = le16_put(le16_get(track->slots) - 8);
	/* Its last byte of bits becomes the head of another track. */
	track->addr = le64_put(le64_get(track->addr) + TRAX_NODE_SECTORS);
}

static void slot_tracks(struct lab *lab)
{
	lab_edit_root(lab, edit_tracks);
}

static void edit_groups(struct root *root, uint8_t *payload)
{
	(void)payload;
	root->slotmap_bytes += root->group_bytes;
	root->group_bytes = 0;
}

static void group_table(struct lab *lab)
{
	lab_edit_root(lab, edit_groups);
}

static void edit_free(struct root *root, uint8_t *payload)
{
	struct group_item *group = (void *)(payload + root->slotmap_bytes);

	group->free = le32_put(le32_get(group->free) + 8);
}

static void group_free(struct lab *lab)
{
	lab_edit_root(lab, edit_free);
}

static void edit_inodes(struct root *root, uint8_t *payload)
{
	(void)payload;
	root->inodes += 3;
}

static void root_inodes(struct lab *lab)
{
	lab_edit_root(lab, edit_inodes);
}

static void edit_numbers(struct root *root, uint8_t *payload)
{
	(void)payload;
	root->next_ino_seq = 5;
}

static void root_numbers(struct lab *lab)
{
	lab_edit_root(lab, edit_numbers);
}

static void edit_unclean(struct root *root, uint8_t *payload)
{
	(void)payload;
	root->clean = false;
}

static void not_clean(struct lab *lab)
{
	lab_edit_root(lab, edit_unclean);
}

/* ---- Nodes ---- */

static void node_lost(struct lab *lab)
{
	uint64_t sector[2];
	unsigned i;

	lab_leaf_sectors(lab, inode_key(MANY), sector);
	for (i = 0; i < 2; i++)
		sim_flip(lab->sim, sector[i], 999);
}

static void node_unreadable(struct lab *lab)
{
	uint64_t sector[2];
	unsigned i;

	lab_leaf_sectors(lab, inode_key(MANY), sector);
	for (i = 0; i < 2; i++)
		sim_damage(lab->sim, sector[i], TRAX_NODE_SECTORS);
}

static void leaf_first(struct lab *lab)
{
	uint64_t sector[2];

	lab_leaf_sectors(lab, inode_key(MANY), sector);
	sim_damage(lab->sim, sector[0] + 8, 8);
}

static void leaf_mirror(struct lab *lab)
{
	uint64_t sector[2];

	lab_leaf_sectors(lab, inode_key(MANY), sector);
	sim_flip(lab->sim, sector[1] + 3, 7);
}

static uint64_t mirror_sector;

static void edit_mirror(struct lab *lab, struct node_header *node)
{
	(void)lab;
	mirror_sector = addr_sector(le64_get(node->addr2));
}

static void node_mirror(struct lab *lab)
{
	lab_edit_root_node(lab, edit_mirror);
	sim_flip(lab->sim, mirror_sector + 1, 9);
}

static void edit_twice(struct lab *lab, struct node_header *node)
{
	const struct child_slot *child = (const void *)(node + 1);

	(void)lab;
	/* Half over a leaf's slot that comes before an empty one. */
	node->addr2 = le64_put(le64_get(child[le16_get(node->n) - 1].addr) +
			       TRAX_NODE_SECTORS / 2);
}

static void node_twice(struct lab *lab)
{
	lab_edit_root_node(lab, edit_twice);
}

static void edit_place(struct lab *lab, struct node_header *node)
{
	(void)lab;
	/* A sector behind its slot. */
	node->addr2 = le64_put(le64_get(node->addr2) + 2 * TRAX_NODE_SECTORS +
			       (1u << 13));
}

static void node_place(struct lab *lab)
{
	lab_edit_root_node(lab, edit_place);
}

static void edit_item(struct node_header *leaf, struct leaf_slot *slot,
		      void *value)
{
	struct inode_item *item = value;

	(void)leaf;
	(void)slot;
	item->generation = le32_put(7);
}

static void item_bad(struct lab *lab)
{
	lab_edit(lab, inode_key(MANY), edit_item);
}

/* ---- Owners ---- */

static struct key owner_of(struct lab *lab, uint8_t kind)
{
	struct key key = KEY_MIN;
	size_t i;

	lab_load(lab);
	for (i = 0; i < item_set_count(&lab->set); i++) {
		const struct item_set_item *item = item_set_at(&lab->set, i);
		const struct owner_item *owner =
			item_set_value(&lab->set, item);

		if (item->key.type == ITEM_OWNER && owner->kind == kind)
			key = item->key;
	}
	lab_unload(lab);
	return key;
}

static void remove_slot(struct node_header *leaf, struct leaf_slot *slot,
			void *value)
{
	struct leaf_slot *first = (struct leaf_slot *)(leaf + 1);
	unsigned n = le16_get(leaf->n), i = (unsigned)(slot - first);

	(void)value;
	leaf->used = le16_put((uint16_t)(le16_get(leaf->used) -
					 le16_get(slot->bytes)));
	memmove(slot, slot + 1, (n - i - 1) * sizeof(*slot));
	leaf->n = le16_put((uint16_t)(n - 1));
}

static void owner_missing(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_DATA), remove_slot);
}

static void fixed_missing(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_LOG), remove_slot);
}

static void edit_stray(struct node_header *leaf, struct leaf_slot *slot,
		       void *value)
{
	(void)leaf;
	(void)value;
	slot->key.off = le64_put(le64_get(slot->key.off) + 4096);
}

static void owner_stray(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_DATA), edit_stray);
}

static void edit_wrong(struct node_header *leaf, struct leaf_slot *slot,
		       void *value)
{
	struct owner_item *owner = value;

	(void)leaf;
	(void)slot;
	owner->ino = le64_put(LAB_DIR);
}

static void owner_wrong(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_DATA), edit_wrong);
}

static void edit_longer(struct node_header *leaf, struct leaf_slot *slot,
			void *value)
{
	struct owner_item *owner = value;

	(void)leaf;
	(void)slot;
	owner->sectors = le64_put(1 << 16);
}

static void owner_overlap(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_DATA), edit_longer);
}

static void edit_outside(struct node_header *leaf, struct leaf_slot *slot,
			 void *value)
{
	struct owner_item *owner = value;

	(void)leaf;
	(void)slot;
	owner->sectors = le64_put(1 << 30);
}

static void owner_outside(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_SUPER), edit_outside);
}

static void edit_kind(struct node_header *leaf, struct leaf_slot *slot,
		      void *value)
{
	struct owner_item *owner = value;

	(void)leaf;
	(void)slot;
	owner->kind = OWNER_GEOM;
}

static void fixed_stray(struct lab *lab)
{
	lab_edit(lab, owner_of(lab, OWNER_LOG), edit_kind);
}

/* ---- Extents and checksums ---- */

static struct key extent_key(uint64_t ino, uint64_t block)
{
	return key_make(ino, ITEM_EXTENT, block * TRAX_BLOCK_SECTORS);
}

static void put_extent(struct lab *lab, uint64_t ino, uint64_t block,
		       uint64_t sector, uint64_t sectors, uint32_t flags)
{
	struct extent_item item = { le64_put(sector), le64_put(sectors),
				    le32_put(flags) };

	lab_put(lab, extent_key(ino, block), &item, sizeof(item));
}

static uint64_t extent_sector(struct lab *lab, uint64_t ino, uint64_t block)
{
	const struct extent_item *item = lab_value(lab, extent_key(ino,
								   block));

	return addr_sector(le64_get(item->addr));
}

static void extent_outside(struct lab *lab)
{
	put_extent(lab, LAB_DEEP, 0, LAB_SECTORS - 8, 24, 0);
}

static void extent_overlap(struct lab *lab)
{
	put_extent(lab, LAB_DEEP, 1, extent_sector(lab, LAB_BIG, 24) + 512, 8,
		   0);
}

/* The thief's checksums do not fit what it finds there. */
static void extent_shared(struct lab *lab)
{
	put_extent(lab, LAB_DEEP, 0, extent_sector(lab, LAB_BIG, 0) + 8, 24,
		   0);
}

static void extent_on_log(struct lab *lab)
{
	put_extent(lab, LAB_DEEP, 0, lab->check.super.log[0].sector + 8, 24,
		   0);
}

static void extent_for_log(struct lab *lab)
{
	put_extent(lab, LAB_DEEP, 0, lab->check.super.log[0].sector, 24, 0);
}

/* The lab's tracks have 2048 sectors. */
static void extent_track(struct lab *lab)
{
	uint64_t at = extent_sector(lab, LAB_BIG, 24);

	put_extent(lab, LAB_BIG, 24, at - at % 2048 + 2048 - 64, 128,
		   EXTENT_KNOWN);
}

static void extent_eof(struct lab *lab)
{
	lab_inode(lab, LAB_HOLES)->size = le64_put(300 * TRAX_BLOCK_BYTES);
}

static void csum_missing(struct lab *lab)
{
	lab_kill(lab, key_make(LAB_DEEP, ITEM_CSUM, 0));
}

static void csum_missing_piece(struct lab *lab)
{
	struct csum_window w;
	uint8_t value[TRAX_MAX_ITEM_BYTES];
	struct key key = key_make(LAB_BIG, ITEM_CSUM, 0);
	struct item_set_item *item = item_set_find(&lab->set, key);

	assert(!csum_window_decode(item_set_value(&lab->set, item), item->bytes,
				   &w));
	w.mask[0] = 0;
	lab_put(lab, key, value, csum_window_encode(&w, value));
}

static void csum_stray(struct lab *lab)
{
	lab_kill(lab, extent_key(LAB_BIG, 24));
}

static void data_bad(struct lab *lab)
{
	lab_load(lab);
	sim_flip(lab->sim, extent_sector(lab, LAB_BIG, 24) + 9, 5);
	lab_store(lab);
}

static void data_read(struct lab *lab)
{
	lab_load(lab);
	sim_damage(lab->sim, extent_sector(lab, LAB_BIG, 24) + 8, 8);
	lab_store(lab);
}

/* ---- Inodes ---- */

static void inode_missing(struct lab *lab)
{
	lab_kill(lab, inode_key(LAB_DEEP));
}

static void inode_missing_dir(struct lab *lab)
{
	lab_kill(lab, inode_key(LAB_SUB));
}

static void inode_items(struct lab *lab)
{
	put_extent(lab, LAB_SUB, 0, LAB_SECTORS - 4096, 8, 0);
}

static void inode_size(struct lab *lab)
{
	lab_inode(lab, LAB_SYMLINK)->size = le64_put(3);
}

static void inode_sectors(struct lab *lab)
{
	lab_inode(lab, LAB_BIG)->sectors = le64_put(1);
}

static void inode_xattrs(struct lab *lab)
{
	lab_inode(lab, LAB_SMALL)->xattrs = le32_put(5);
}

static void inode_nlink(struct lab *lab)
{
	lab_inode(lab, LAB_BIG)->nlink = le32_put(1);
}

/* Takes a name away and keeps the directory's counts right. */
static void take_name(struct lab *lab, uint64_t dir, const char *name)
{
	struct key key = lab_name_key(lab, dir, name);
	const struct name_record *record = lab_value(lab, key);
	uint64_t seq = le64_get(record->seq);
	struct inode_item *item = lab_inode(lab, dir);

	item->entries = le64_put(le64_get(item->entries) - 1);
	if (record->type == DT_DIR)
		item->nlink = le32_put(le32_get(item->nlink) - 1);
	lab_kill(lab, key);
	lab_kill(lab, key_make(dir, ITEM_ENTRY, seq));
}

static void inode_unreached(struct lab *lab)
{
	take_name(lab, LAB_SUB, "deep");
}

static void dir_unreached(struct lab *lab)
{
	take_name(lab, LAB_DIR, "sub");
}

static void inode_flags(struct lab *lab)
{
	lab_inode(lab, LAB_SMALL)->flags = le32_put(INODE_HAS_CAPS);
}

static void inode_rdev(struct lab *lab)
{
	lab_inode(lab, LAB_SMALL)->rdev = le32_put(9);
}

static size_t first_xattr(struct lab *lab, bool piece)
{
	size_t i = item_set_seek(&lab->set, key_make(LAB_SMALL, ITEM_XATTR, 0));

	while ((item_set_at(&lab->set, i)->key.off & 0xff) != piece)
		i++;
	return i;
}

static void xattr_pieces(struct lab *lab)
{
	lab_kill(lab, item_set_at(&lab->set, first_xattr(lab, true))->key);
}

static void xattr_hash(struct lab *lab)
{
	struct item_set_item *item = item_set_at(&lab->set,
				       item_set_seek(&lab->set,
						key_make(LAB_SMALL, ITEM_XATTR,
							 0)));
	struct item_set_item copy = *item;

	while (copy.bytes > 100)
		copy = *++item;
	lab_put(lab, key_make(LAB_SMALL, ITEM_XATTR,
			      copy.key.off ^ 1ull << 40),
		lab_value(lab, copy.key), copy.bytes);
	lab_kill(lab, copy.key);
}

static void symlink_missing(struct lab *lab)
{
	lab_kill(lab, key_make(LAB_SYMLINK, ITEM_INLINE, 0));
}

static void symlink_zero(struct lab *lab)
{
	lab_put(lab, key_make(LAB_SYMLINK, ITEM_INLINE, 0), "ta\0get", 6);
}

static void orphan_stray(struct lab *lab)
{
	struct orphan_item orphan = { .what = ORPHAN_DELETE };

	lab_put(lab, key_make(0, ITEM_ORPHAN, LAB_DEEP), &orphan,
		sizeof(orphan));
}

static void orphan_of_nobody(struct lab *lab)
{
	struct orphan_item orphan = { .what = ORPHAN_DELETE };

	lab_put(lab, key_make(0, ITEM_ORPHAN, 55555), &orphan,
		sizeof(orphan));
}

static void orphan_missing(struct lab *lab)
{
	take_name(lab, LAB_DIR, "device");
	lab_inode(lab, LAB_DEVICE)->nlink = le32_put(0);
}

/* ---- Directories ---- */

static void root_dir(struct lab *lab)
{
	lab_kill(lab, inode_key(TRAX_ROOT_INO));
}

static void root_is_file(struct lab *lab)
{
	lab_inode(lab, TRAX_ROOT_INO)->mode = le32_put(S_IFREG | 0644);
}

static void dir_next_seq(struct lab *lab)
{
	lab_inode(lab, LAB_DIR)->next_seq = le64_put(7);
}

static void dir_entries(struct lab *lab)
{
	lab_inode(lab, LAB_DIR)->entries = le64_put(3);
}

static void dir_nlink(struct lab *lab)
{
	lab_inode(lab, LAB_DIR)->nlink = le32_put(7);
}

static void dir_parent(struct lab *lab)
{
	lab_inode(lab, LAB_SUB)->parent = le64_put(LAB_MANY);
}

static void dir_links(struct lab *lab)
{
	lab_add_name(lab, LAB_MANY, 100000, "sub", LAB_SUB, DT_DIR);
}

/* d is in sub, sub is in d. */
static void dir_loop(struct lab *lab)
{
	take_name(lab, TRAX_ROOT_INO, "d");
	lab_add_name(lab, LAB_SUB, 50, "d", LAB_DIR, DT_DIR);
	lab_inode(lab, LAB_DIR)->parent = le64_put(LAB_SUB);
}

static void name_hash(struct lab *lab)
{
	struct key key = lab_name_key(lab, LAB_SUB, "deep");
	struct item_set_item item = *item_set_find(&lab->set, key);

	lab_put(lab, key_make(LAB_SUB, ITEM_NAME, key.off + 1),
		lab_value(lab, key), item.bytes);
	lab_kill(lab, key);
}

static void name_twice(struct lab *lab)
{
	struct key key = lab_name_key(lab, LAB_SUB, "deep");
	struct item_set_item item = *item_set_find(&lab->set, key);
	uint8_t value[256];

	memcpy(value, lab_value(lab, key), item.bytes);
	lab_add_name(lab, LAB_SUB, 9, "deep", LAB_DEVICE, DT_CHR);
	memcpy(value + item.bytes, lab_value(lab, key), item.bytes);
	lab_put(lab, key, value, 2 * item.bytes);
}

static void name_unpaired(struct lab *lab)
{
	const struct name_record *record = lab_value(
		lab, lab_name_key(lab, LAB_SUB, "deep"));

	lab_kill(lab, key_make(LAB_SUB, ITEM_ENTRY, le64_get(record->seq)));
}

static void entry_unpaired(struct lab *lab)
{
	lab_kill(lab, lab_name_key(lab, LAB_SUB, "deep"));
}

static void entry_seq(struct lab *lab)
{
	take_name(lab, LAB_SUB, "deep");
	lab_add_name(lab, LAB_SUB, 2, "deep", LAB_DEEP, DT_REG);
}

static void entry_dangling(struct lab *lab)
{
	lab_add_name(lab, LAB_SUB, 70, "ghost", 77777, DT_REG);
}

static void entry_type(struct lab *lab)
{
	const struct name_record *record = lab_value(
		lab, lab_name_key(lab, LAB_SUB, "deep"));

	lab_add_name(lab, LAB_SUB, le64_get(record->seq), "deep", LAB_DEEP,
		     DT_FIFO);
}

/* ---- Copies ---- */

#define COPY_SECTOR 60000u	/* begin of a region, in free space */

static void copy_region(struct lab *lab)
{
	struct region_item item = {
		.number = le64_put(5), .sectors = le32_put(64),
	};

	lab_put(lab, key_make(0, ITEM_REGION, COPY_SECTOR), &item,
		sizeof(item));
}

static void copy_wrong(struct lab *lab)
{
	struct replica_item item = {
		.addr = le64_put(COPY_SECTOR), .region = le64_put(COPY_SECTOR),
		.number = le64_put(5), .blocks = le16_put(1),
	};

	copy_region(lab);
	lab_put(lab, key_make(LAB_DEEP, ITEM_REPLICA, 0), &item, sizeof(item));
}

static void copy_differs(struct lab *lab)
{
	struct inode_item *inode = lab_inode(lab, LAB_DEEP);

	inode->flags = le32_put(le32_get(inode->flags) | INODE_HAS_COPIES);
	copy_wrong(lab);
}

#define DISK(problem, apply, victim) { problem, apply, false, victim }
#define ITEMS(problem, apply, victim) { problem, apply, true, victim }

const struct damage damages[] = {
	DISK(PROBLEM_SUPER_COPY, super_zero, 0),
	DISK(PROBLEM_SUPER_COPY, super_second, 0),
	DISK(PROBLEM_ROOT_NONE, root_zero, 0),
	DISK(PROBLEM_ROOT_COPY, root_one, 0),
	DISK(PROBLEM_PAYLOAD, payload_both, 0),
	DISK(PROBLEM_PAYLOAD_COPY, payload_one, 0),
	DISK(PROBLEM_GEOMETRY, geometry, 0),
	DISK(PROBLEM_NODE_LOST, node_lost, MANY),
	DISK(PROBLEM_NODE_LOST, node_unreadable, MANY),
	DISK(PROBLEM_NODE_MIRROR, node_mirror, 0),
	DISK(PROBLEM_NODE_MIRROR, leaf_first, 0),
	DISK(PROBLEM_NODE_MIRROR, leaf_mirror, 0),
	DISK(PROBLEM_NODE_PLACE, node_place, 0),
	DISK(PROBLEM_NODE_TWICE, node_twice, LAST),
	DISK(PROBLEM_SLOT_TRACKS, slot_tracks, 0),
	DISK(PROBLEM_SLOT_LEAKED, slot_leaked, 0),
	DISK(PROBLEM_SLOT_UNMAPPED, slot_unmapped, 0),
	DISK(PROBLEM_GROUP_TABLE, group_table, 0),
	DISK(PROBLEM_GROUP_FREE, group_free, 0),
	DISK(PROBLEM_ITEM_BAD, item_bad, MANY),
	DISK(PROBLEM_OWNER_OUTSIDE, owner_outside, 0),
	DISK(PROBLEM_OWNER_OVERLAP, owner_overlap, 0),
	DISK(PROBLEM_OWNER_STRAY, owner_stray, 0),
	DISK(PROBLEM_OWNER_MISSING, owner_missing, 0),
	DISK(PROBLEM_OWNER_WRONG, owner_wrong, 0),
	DISK(PROBLEM_FIXED_MISSING, fixed_missing, 0),
	DISK(PROBLEM_FIXED_STRAY, fixed_stray, 0),
	ITEMS(PROBLEM_EXTENT_OUTSIDE, extent_outside, LAB_DEEP),
	ITEMS(PROBLEM_EXTENT_OVERLAP, extent_overlap, 0),
	ITEMS(PROBLEM_EXTENT_SHARED, extent_shared, LAB_DEEP),
	ITEMS(PROBLEM_EXTENT_SHARED, extent_on_log, LAB_DEEP),
	ITEMS(PROBLEM_FIXED_MISSING, extent_for_log, LAB_DEEP),
	ITEMS(PROBLEM_EXTENT_EOF, extent_eof, LAB_HOLES),
	ITEMS(PROBLEM_CSUM_MISSING, csum_missing, 0),
	ITEMS(PROBLEM_CSUM_MISSING, csum_missing_piece, 0),
	ITEMS(PROBLEM_CSUM_STRAY, csum_stray, LAB_BIG),
	ITEMS(PROBLEM_COPY_REGION, copy_region, 0),
	ITEMS(PROBLEM_COPY_WRONG, copy_wrong, 0),
	ITEMS(PROBLEM_COPY_WRONG, copy_differs, 0),
	ITEMS(PROBLEM_INODE_MISSING, inode_missing, LAB_DEEP),
	ITEMS(PROBLEM_INODE_MISSING, inode_missing_dir, 0),
	ITEMS(PROBLEM_INODE_ITEMS, inode_items, 0),
	ITEMS(PROBLEM_INODE_SIZE, inode_size, 0),
	ITEMS(PROBLEM_INODE_SECTORS, inode_sectors, 0),
	ITEMS(PROBLEM_INODE_XATTRS, inode_xattrs, 0),
	ITEMS(PROBLEM_INODE_NLINK, inode_nlink, 0),
	ITEMS(PROBLEM_INODE_UNREACHED, inode_unreached, LAB_DEEP),
	ITEMS(PROBLEM_INODE_UNREACHED, dir_unreached, 0),
	ITEMS(PROBLEM_INODE_FLAGS, inode_flags, 0),
	ITEMS(PROBLEM_INODE_RDEV, inode_rdev, 0),
	ITEMS(PROBLEM_XATTR_PIECES, xattr_pieces, 0),
	ITEMS(PROBLEM_XATTR_HASH, xattr_hash, 0),
	ITEMS(PROBLEM_SYMLINK_TARGET, symlink_missing, LAB_SYMLINK),
	ITEMS(PROBLEM_SYMLINK_TARGET, symlink_zero, LAB_SYMLINK),
	ITEMS(PROBLEM_ROOT_DIR, root_dir, 0),
	ITEMS(PROBLEM_ROOT_DIR, root_is_file, 0),
	ITEMS(PROBLEM_DIR_NEXT_SEQ, dir_next_seq, 0),
	ITEMS(PROBLEM_DIR_ENTRIES, dir_entries, 0),
	ITEMS(PROBLEM_DIR_NLINK, dir_nlink, 0),
	ITEMS(PROBLEM_DIR_PARENT, dir_parent, 0),
	ITEMS(PROBLEM_DIR_LINKS, dir_links, 0),
	ITEMS(PROBLEM_DIR_LOOP, dir_loop, 0),
	ITEMS(PROBLEM_NAME_HASH, name_hash, 0),
	ITEMS(PROBLEM_NAME_TWICE, name_twice, 0),
	ITEMS(PROBLEM_NAME_UNPAIRED, name_unpaired, 0),
	ITEMS(PROBLEM_ENTRY_UNPAIRED, entry_unpaired, 0),
	ITEMS(PROBLEM_ENTRY_SEQ, entry_seq, 0),
	ITEMS(PROBLEM_ENTRY_DANGLING, entry_dangling, 0),
	ITEMS(PROBLEM_ENTRY_TYPE, entry_type, 0),
	ITEMS(PROBLEM_ORPHAN_STRAY, orphan_stray, 0),
	ITEMS(PROBLEM_ORPHAN_STRAY, orphan_of_nobody, 0),
	ITEMS(PROBLEM_ORPHAN_MISSING, orphan_missing, 0),
	DISK(PROBLEM_ROOT_INODES, root_inodes, 0),
	DISK(PROBLEM_ROOT_NUMBERS, root_numbers, 0),
	/* Without a repair. */
	ITEMS(PROBLEM_EXTENT_TRACK, extent_track, LAB_BIG),
	DISK(PROBLEM_NOT_CLEAN, not_clean, 0),
	DISK(PROBLEM_DATA_BAD, data_bad, LAB_BIG),
	DISK(PROBLEM_DATA_READ, data_read, LAB_BIG),
};
const unsigned damages_n = sizeof(damages) / sizeof(damages[0]);
