/*
 * root.c - the block at the head of a root area.
 */
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

struct disk_root {
	le64 magic;
	le64 sector;
	uint8_t uuid[16];
	le64 gen;
	le64 epoch;
	le32 flags;
	le32 level;
	le64 addr, addr2, node_csum, node_gen;
	le64 cut_seq;
	le64 cut_chain;
	le64 tail_seq;
	le64 next_ino_seq;
	le64 next_dirgroup;
	le64 inodes;
	le64 wall_ns;
	le32 slotmap_bytes;
	le32 group_bytes;
	le64 payload_csum;
	uint8_t zero[3928];
	le64 csum;
};
static_assert(sizeof(struct disk_root) == TRAX_BLOCK_BYTES, "disk_root");
static_assert(offsetof(struct disk_root, addr) == 56, "addr");
static_assert(offsetof(struct disk_root, cut_seq) == 88, "cut_seq");
static_assert(offsetof(struct disk_root, slotmap_bytes) == 144, "slotmap");
static_assert(offsetof(struct disk_root, csum) == 4088, "csum");

#define ROOT_CLEAN 0x1u

void root_encode(const struct root *root, const uint8_t uuid[16],
		 uint64_t sector, void *buf)
{
	struct disk_root *d = buf;

	memset(d, 0, sizeof(*d));
	d->magic = le64_put(TRAX_ROOT_MAGIC);
	d->sector = le64_put(sector);
	memcpy(d->uuid, uuid, sizeof(d->uuid));
	d->gen = le64_put(root->gen);
	d->epoch = le64_put(root->epoch);
	d->flags = le32_put(root->clean ? ROOT_CLEAN : 0);
	d->level = le32_put(root->level);
	d->addr = le64_put(root->tree.addr);
	d->addr2 = le64_put(root->tree.addr2);
	d->node_csum = le64_put(root->tree.csum);
	d->node_gen = le64_put(root->tree.gen);
	d->cut_seq = le64_put(root->cut_seq);
	d->cut_chain = le64_put(root->cut_chain);
	d->tail_seq = le64_put(root->tail_seq);
	d->next_ino_seq = le64_put(root->next_ino_seq);
	d->next_dirgroup = le64_put(root->next_dirgroup);
	d->inodes = le64_put(root->inodes);
	d->wall_ns = le64_put((uint64_t)root->wall_ns);
	d->slotmap_bytes = le32_put(root->slotmap_bytes);
	d->group_bytes = le32_put(root->group_bytes);
	d->payload_csum = le64_put(root->payload_csum);
	d->csum = le64_put(csum(d, offsetof(struct disk_root, csum)));
}

static void root_load(const struct disk_root *d, struct root *root)
{
	root->gen = le64_get(d->gen);
	root->epoch = le64_get(d->epoch);
	root->clean = le32_get(d->flags) & ROOT_CLEAN;
	root->level = le32_get(d->level);
	root->tree.addr = le64_get(d->addr);
	root->tree.addr2 = le64_get(d->addr2);
	root->tree.csum = le64_get(d->node_csum);
	root->tree.gen = le64_get(d->node_gen);
	root->cut_seq = le64_get(d->cut_seq);
	root->cut_chain = le64_get(d->cut_chain);
	root->tail_seq = le64_get(d->tail_seq);
	root->next_ino_seq = le64_get(d->next_ino_seq);
	root->next_dirgroup = le64_get(d->next_dirgroup);
	root->inodes = le64_get(d->inodes);
	root->wall_ns = (int64_t)le64_get(d->wall_ns);
	root->slotmap_bytes = le32_get(d->slotmap_bytes);
	root->group_bytes = le32_get(d->group_bytes);
	root->payload_csum = le64_get(d->payload_csum);
}

static const char *root_check(const struct root *root)
{
	if (!root->gen)
		return "root of no generation";
	if (root->level > TRAX_MAX_LEVEL)
		return "root node is too high";
	if (!root->tree.addr || addr_device(root->tree.addr) ||
	    addr_device(root->tree.addr2))
		return "root node is nowhere";
	if (root->tree.addr == root->tree.addr2)
		return "root node is its own mirror";
	if (root->tree.gen > root->gen)
		return "root node is younger than its root";
	if (root->cut_seq == UINT64_MAX || root->tail_seq > root->cut_seq + 1)
		return "log tail is behind the cut";
	if (root->next_ino_seq > TRAX_INO_SEQS)
		return "more inode numbers are used than there are";
	if (root->group_bytes % sizeof(struct group_item))
		return "length of the group table is wrong";
	return NULL;
}

const char *root_decode(const void *buf, const uint8_t uuid[16],
			uint64_t sector, struct root *root)
{
	const struct disk_root *d = buf;
	struct root r;
	const char *why;

	if (le64_get(d->magic) != TRAX_ROOT_MAGIC)
		return "no root magic";
	if (le64_get(d->csum) != csum(d, offsetof(struct disk_root, csum)))
		return "root checksum is wrong";
	if (memcmp(d->uuid, uuid, sizeof(d->uuid)))
		return "root belongs to another file system";
	if (le64_get(d->sector) != sector)
		return "root belongs to another sector";
	if (le32_get(d->flags) & ~ROOT_CLEAN)
		return "root has unknown flags";
	memset(&r, 0, sizeof(r));
	root_load(d, &r);
	why = root_check(&r);
	if (why)
		return why;
	*root = r;
	return NULL;
}

bool root_is_blank(const uint8_t *block)
{
	return !block[0] && !memcmp(block, block + 1, TRAX_BLOCK_BYTES - 1);
}
