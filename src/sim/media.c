/*
 * media.c - a radix tree of reference-counted pages.
 *
 * Nodes and pages are immutable while anybody else refers to them: a writer
 * copies the path from the root to the page and then writes.  A missing node
 * or page is zeros.
 *
 *   root -> node -> ... -> node -> page (8 sectors)
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk/disk.h"
#include "sim/media.h"

#define PAGE_SECTORS 8u	/* 4 KiB: a block of the file system. */
#define PAGE_BYTES (PAGE_SECTORS * SECTOR_BYTES)
/* Nodes of 128 pointers, 1 KiB; a copied path of a large disk has five. */
#define FAN_SHIFT 7
#define FAN (1u << FAN_SHIFT)

/* Both kinds begin with their count of references. */
struct node {
	uint32_t refs;
	void *slot[FAN];	/* nodes, or pages at the lowest level */
};

struct media_page {
	uint32_t refs;
	uint8_t damaged;	/* a bit for each sector */
	uint8_t data[PAGE_BYTES];
};

struct media {
	uint64_t sectors;
	unsigned levels;	/* of nodes above the pages, at least 1 */
	struct node *root;
};

struct media *media_new(uint64_t sectors)
{
	struct media *m = calloc(1, sizeof(*m));
	uint64_t pages = sectors / PAGE_SECTORS + 1;

	if (!m)
		return NULL;
	m->sectors = sectors;
	m->levels = 1;
	while (m->levels * FAN_SHIFT < 64 &&
	       pages >> (m->levels * FAN_SHIFT))
		m->levels++;
	return m;
}

struct media *media_clone(const struct media *media)
{
	struct media *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	*m = *media;
	if (m->root)
		m->root->refs++;
	return m;
}

static void node_put(struct node *node, unsigned level)
{
	if (!node || --node->refs)
		return;
	for (unsigned i = 0; i < FAN; i++) {
		struct media_page *page = node->slot[i];

		if (level > 1)
			node_put(node->slot[i], level - 1);
		else if (page && !--page->refs)
			free(page);
	}
	free(node);
}

void media_free(struct media *media)
{
	if (!media)
		return;
	node_put(media->root, media->levels);
	free(media);
}

uint64_t media_sectors(const struct media *media)
{
	return media->sectors;
}

static unsigned slot_of(uint64_t page, unsigned level)
{
	return (page >> ((level - 1) * FAN_SHIFT)) % FAN;
}

static const struct media_page *page_find(const struct media *m, uint64_t page)
{
	const struct node *node = m->root;
	unsigned level;

	for (level = m->levels; node && level > 1; level--)
		node = node->slot[slot_of(page, level)];
	return node ? node->slot[slot_of(page, 1)] : NULL;
}

/* A node of our own in place of *at, which may be shared or missing. */
static struct node *node_own(struct node **at, unsigned level)
{
	struct node *node = *at, *copy;

	if (node && node->refs == 1)
		return node;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	if (node) {
		memcpy(copy->slot, node->slot, sizeof(copy->slot));
		for (unsigned i = 0; i < FAN; i++) {
			if (!node->slot[i])
				continue;
			if (level > 1)
				((struct node *)node->slot[i])->refs++;
			else
				((struct media_page *)node->slot[i])->refs++;
		}
		node->refs--;
	}
	copy->refs = 1;
	*at = copy;
	return copy;
}

static struct media_page *page_own(struct media *m, uint64_t number)
{
	struct node **at = &m->root, *node;
	struct media_page *page, *copy;
	unsigned level;

	for (level = m->levels;; level--) {
		node = node_own(at, level);
		if (!node)
			return NULL;
		if (level == 1)
			break;
		at = (struct node **)&node->slot[slot_of(number, level)];
	}
	page = node->slot[slot_of(number, 1)];
	if (page && page->refs == 1)
		return page;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	if (page) {
		*copy = *page;
		page->refs--;
	}
	copy->refs = 1;
	node->slot[slot_of(number, 1)] = copy;
	return copy;
}

/* -EIO when one of sectors [in, in + n) of the page is damaged, of which the
 * first is called `sector`. */
static int damage_find(const struct media_page *page, unsigned in, unsigned n,
		       uint64_t sector, uint64_t *bad)
{
	for (unsigned i = in; i < in + n; i++) {
		if (!(page->damaged & (1u << i)))
			continue;
		if (bad)
			*bad = sector + i - in;
		return -EIO;
	}
	return 0;
}

int media_read(const struct media *media, uint64_t sector, uint64_t sectors,
	       void *buf, uint64_t *bad)
{
	uint8_t *to = buf;
	int err = 0;

	assert(sector <= media->sectors && sectors <= media->sectors - sector);
	while (sectors) {
		unsigned in = sector % PAGE_SECTORS, n = PAGE_SECTORS - in;
		const struct media_page *page = page_find(media,
						    sector / PAGE_SECTORS);

		if (n > sectors)
			n = (unsigned)sectors;
		if (page)
			memcpy(to, page->data + in * SECTOR_BYTES,
			       n * SECTOR_BYTES);
		else
			memset(to, 0, n * SECTOR_BYTES);
		if (page && page->damaged && !err)
			err = damage_find(page, in, n, sector, bad);
		to += n * SECTOR_BYTES;
		sector += n;
		sectors -= n;
	}
	return err;
}

int media_write(struct media *media, uint64_t sector, uint64_t sectors,
		const void *buf)
{
	const uint8_t *from = buf;

	assert(sector <= media->sectors && sectors <= media->sectors - sector);
	while (sectors) {
		unsigned in = sector % PAGE_SECTORS, n = PAGE_SECTORS - in;
		struct media_page *page =
			page_own(media, sector / PAGE_SECTORS);

		if (!page)
			return -ENOMEM;
		if (n > sectors)
			n = (unsigned)sectors;
		memcpy(page->data + in * SECTOR_BYTES, from, n * SECTOR_BYTES);
		page->damaged &= (uint8_t)~(((1u << n) - 1) << in);
		from += n * SECTOR_BYTES;
		sector += n;
		sectors -= n;
	}
	return 0;
}

int media_damage(struct media *media, uint64_t sector, uint64_t sectors)
{
	assert(sector <= media->sectors && sectors <= media->sectors - sector);
	for (; sectors; sector++, sectors--) {
		struct media_page *page =
			page_own(media, sector / PAGE_SECTORS);

		if (!page)
			return -ENOMEM;
		page->damaged |= (uint8_t)(1u << sector % PAGE_SECTORS);
	}
	return 0;
}

int media_flip(struct media *media, uint64_t sector, unsigned bit)
{
	struct media_page *page;

	assert(sector < media->sectors && bit < SECTOR_BYTES * 8);
	page = page_own(media, sector / PAGE_SECTORS);
	if (!page)
		return -ENOMEM;
	page->data[sector % PAGE_SECTORS * SECTOR_BYTES + bit / 8] ^=
		(uint8_t)(1u << bit % 8);
	return 0;
}
