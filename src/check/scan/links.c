/*
 * links.c - how many names each inode has, and how directories hang together.
 *
 * Inodes are spread over buckets. In each bucket one order-free sum over what
 * inodes say (their number of links, or for a directory one name in its parent)
 * minus what entries say must be zero. Only buckets whose sums differ are
 * collected in a second walk. When names and parents agree, a directory is out
 * of reach of the root only if it is below itself.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/scan/check_internal.h"

/* Most links that are compared one by one, 512 MiB of memory; further ones are
 * left out. */
#define MAX_EXACT (16u << 20)

static uint64_t link_hash(uint64_t ino, uint8_t type, uint64_t dir)
{
	uint64_t tuple[3] = { ino, type, type == DT_DIR ? dir : 0 };

	return csum(tuple, sizeof(tuple));
}

static unsigned link_bucket(uint64_t ino)
{
	return (unsigned)(ino * 0x9e3779b97f4a7c15ull >> 32) % LINK_SUMS;
}

static uint8_t item_type(const struct inode_item *item)
{
	return (uint8_t)IFTODT(le32_get(item->mode));
}

/* The number of names that an inode should have by its own item. */
static uint32_t item_names(uint64_t ino, const struct inode_item *item)
{
	uint32_t nlink = le32_get(item->nlink);

	if (ino == TRAX_ROOT_INO)
		return 0;
	return item_type(item) == DT_DIR ? nlink != 0 : nlink;
}

static uint64_t item_parent(const struct inode_item *item)
{
	return item_type(item) == DT_DIR ? le64_get(item->parent) : 0;
}

void links_inode(struct check *check, const struct inode_state *now)
{
	uint64_t parent = item_parent(&now->item);
	uint8_t type = item_type(&now->item);
	struct dir_parent *dir;

	check->links.sum[link_bucket(now->ino)] +=
		item_names(now->ino, &now->item) *
		link_hash(now->ino, type, parent);
	if (type != DT_DIR || !le32_get(now->item.nlink))
		return;
	dir = check_add(check, &check->links.dirs);
	if (dir)
		*dir = (struct dir_parent){ now->ino, parent, 0 };
}

void links_entry(struct check *check, uint64_t dir,
		 const struct name_record *record)
{
	uint64_t ino = le64_get(record->ino);

	check->links.sum[link_bucket(ino)] -=
		link_hash(ino, record->type, dir);
}

/* ---- Loops of directories ---- */

static int dir_cmp(const void *a, const void *b)
{
	const struct dir_parent *x = a, *y = b;

	return sort_order(x->ino, y->ino);
}

static struct dir_parent *dir_find(struct check *check, uint64_t ino)
{
	struct dir_parent want = { .ino = ino };
	struct vec *dirs = &check->links.dirs;

	return dirs->n ? bsearch(&want, dirs->items, dirs->n, dirs->size,
				 dir_cmp) : NULL;
}

uint64_t links_parent(struct check *check, uint64_t dir)
{
	const struct dir_parent *found = dir_find(check, dir);

	return found ? found->parent : TRAX_ROOT_INO;
}

/* Goes up from directory i; a walk that meets its own mark is in a loop. */
static void dir_climb(struct check *check, size_t i)
{
	struct dir_parent *dir = vec_at(&check->links.dirs, i);
	uint32_t mark = (uint32_t)i + 1;

	while (dir && !dir->mark && dir->ino != TRAX_ROOT_INO) {
		dir->mark = mark;
		dir = dir_find(check, dir->parent);
	}
	if (dir && dir->mark == mark && dir->ino != TRAX_ROOT_INO)
		problem_report(check, PROBLEM_DIR_LOOP,
			       (struct problem_place){ .ino = dir->ino },
			       (unsigned long long)dir->ino);
}

static void root_parent(struct check *check)
{
	const struct dir_parent *root = dir_find(check, TRAX_ROOT_INO);

	if (!root) {
		if (!check->problem_found[PROBLEM_ROOT_DIR])
			problem_report(check, PROBLEM_ROOT_DIR,
				       (struct problem_place){ 0 }, "missing");
	} else if (root->parent != TRAX_ROOT_INO) {
		problem_report(check, PROBLEM_DIR_PARENT,
			       (struct problem_place){ .ino = TRAX_ROOT_INO },
			       (unsigned long long)TRAX_ROOT_INO,
			       (unsigned long long)root->parent,
			       (unsigned long long)TRAX_ROOT_INO);
	}
}

bool links_finish(struct check *check)
{
	size_t i;

	root_parent(check);
	for (i = 0; i < check->links.dirs.n; i++)
		dir_climb(check, i);
	for (i = 0; i < LINK_SUMS; i++)
		if (check->links.sum[i])
			check->links.differ = true;
	return check->links.differ;
}

/* ---- Exactly ---- */

static struct link_seen *exact_add(struct check *check, uint64_t ino)
{
	struct links *links = &check->links;

	if (!links->sum[link_bucket(ino)] || links->exact.n >= MAX_EXACT)
		return NULL;
	return check_add(check, &links->exact);
}

void links_exact_item(struct check *check, struct key key, const void *value)
{
	const struct inode_item *item = value;
	const struct name_record *record = value;
	struct link_seen *seen;

	if (key.type == ITEM_INODE) {
		seen = exact_add(check, key.ino);
		if (seen)
			*seen = (struct link_seen){
				.ino = key.ino,
				.dir = item_parent(item),
				.nlink = item_names(key.ino, item),
				.type = item_type(item),
			};
	} else if (key.type == ITEM_ENTRY) {
		seen = exact_add(check, le64_get(record->ino));
		if (seen)
			*seen = (struct link_seen){
				.ino = le64_get(record->ino),
				.dir = key.ino,
				.seq = le64_get(record->seq),
				.type = record->type,
				.entry = true,
			};
	}
}

/* Sorts by inode: the inode itself first, then its entries. */
static int seen_cmp(const void *a, const void *b)
{
	const struct link_seen *x = a, *y = b;

	return sort_order(x->ino, y->ino) ?:
	       sort_order(x->entry, y->entry) ?:
	       sort_order(x->dir, y->dir) ?:
	       sort_order(x->seq, y->seq);
}

static void report_entry(struct check *check, enum problem problem,
			 const struct link_seen *entry)
{
	problem_report(check, problem,
		       (struct problem_place){ .ino = entry->dir },
		       (unsigned long long)entry->dir,
		       (unsigned long long)entry->seq,
		       (unsigned long long)entry->ino);
}

static void exact_dir(struct check *check, const struct link_seen *inode,
		      const struct link_seen *entries, size_t n)
{
	struct problem_place place = { .ino = inode->ino };
	size_t i;

	if (n > 1)
		problem_report(check, PROBLEM_DIR_LINKS, place,
			       (unsigned long long)inode->ino,
			       (unsigned long long)n);
	for (i = 0; i < n; i++)
		if (entries[i].dir == inode->dir)
			return;
	problem_report(check, PROBLEM_DIR_PARENT, place,
		       (unsigned long long)inode->ino,
		       (unsigned long long)inode->dir,
		       (unsigned long long)entries[0].dir);
}

/* Compares an inode with all entries that lead to it. */
static void exact_inode(struct check *check, const struct link_seen *inode,
			const struct link_seen *entries, size_t n)
{
	struct problem_place place = { .ino = inode->ino };
	size_t i;

	for (i = 0; i < n; i++)
		if (entries[i].type != inode->type)
			report_entry(check, PROBLEM_ENTRY_TYPE, &entries[i]);
	if (inode->ino == TRAX_ROOT_INO) {
		if (n)
			problem_report(check, PROBLEM_DIR_LINKS, place,
				       (unsigned long long)inode->ino,
				       (unsigned long long)n);
	} else if (!n) {
		if (inode->nlink)
			problem_report(check, PROBLEM_INODE_UNREACHED, place,
				       (unsigned long long)inode->ino);
	} else if (inode->type == DT_DIR && inode->nlink) {
		exact_dir(check, inode, entries, n);
	} else if (inode->nlink != n) {
		problem_report(check, PROBLEM_INODE_NLINK, place,
			       (unsigned long long)inode->ino,
			       (unsigned long long)inode->nlink,
			       (unsigned long long)n);
	}
}

void links_exact_finish(struct check *check)
{
	struct vec *exact = &check->links.exact;
	const struct link_seen *seen;
	size_t first, end;

	vec_sort(exact, seen_cmp);
	seen = exact->items;
	for (first = 0; first < exact->n; first = end) {
		for (end = first + 1; end < exact->n; end++)
			if (seen[end].ino != seen[first].ino)
				break;
		if (!seen[first].entry) {
			exact_inode(check, &seen[first], &seen[first + 1],
				    end - first - 1);
			continue;
		}
		for (; first < end; first++)
			report_entry(check, PROBLEM_ENTRY_DANGLING,
				     &seen[first]);
	}
}

void links_free(struct check *check)
{
	vec_fini(&check->links.dirs);
	vec_fini(&check->links.exact);
	memset(check->links.sum, 0, sizeof(check->links.sum));
	check->links.differ = false;
}
