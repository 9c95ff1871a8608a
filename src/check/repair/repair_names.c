/*
 * repair_names.c - names, links, directories, orphans, lost+found.
 *
 * All names leave the set as records: what a NAME and an ENTRY item say of one
 * name is one record.  When they agree with each other and with the inodes,
 * both kinds of items are made again from them:
 *
 *   extract -> one record a name -> inodes that exist, their types
 *     -> one name a directory, no loops -> what has no name: lost+found
 *     -> sequence numbers -> counts in the inodes -> items
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/repair/repair.h"

/* The directory for files without a name, as fsck of other file systems calls
 * it. */
#define LOST_NAME "lost+found"

struct record {
	uint64_t dir, seq, ino;
	uint64_t name;		/* offset in the texts */
	uint64_t hash;
	uint32_t mark;
	uint8_t bytes, type;
	bool entry;		/* an ENTRY item has this name */
	bool dead;
};

struct names {
	struct check *check;
	struct item_set *set;
	struct tmp_array records, texts;
	uint64_t lost_found;	/* inode number of lost+found; 0: not looked for
				 * yet */
};

static struct record *record_at(const struct names *names, size_t i)
{
	return tmp_array_at(&names->records, i);
}

static const char *record_name(const struct names *names,
			       const struct record *record)
{
	return (const char *)names->texts.base + record->name;
}

static int record_add(struct names *names, uint64_t dir, uint64_t seq,
		      uint64_t ino, uint8_t type, const char *name,
		      size_t bytes, bool entry)
{
	uint64_t at = names->texts.n;
	char *text = tmp_array_add(&names->texts, bytes);
	struct record *record;

	if (!text)
		return -ENOMEM;
	memcpy(text, name, bytes);
	record = tmp_array_add(&names->records, 1);
	if (!record)
		return -ENOMEM;
	*record = (struct record){
		.dir = dir, .seq = seq, .ino = ino, .name = at,
		.hash = dirs_hash(names->check, name, bytes),
		.bytes = (uint8_t)bytes, .type = type, .entry = entry,
	};
	return 0;
}

/* ---- Out of the set ---- */

static int names_extract(struct names *names)
{
	struct item_set *set = names->set;
	size_t i, at;
	int rc = 0;

	for (i = item_set_seek(set, key_make(1, 0, 0)); i < item_set_count(set);
	     i++) {
		struct item_set_item *item = item_set_at(set, i);
		const uint8_t *value = item_set_value(set, item);

		if (item->key.type != ITEM_NAME && item->key.type != ITEM_ENTRY)
			continue;
		for (at = 0; at < item->bytes && !rc;) {
			const struct name_record *r = (const void *)(value +
								     at);

			rc = record_add(names, item->key.ino,
					le64_get(r->seq), le64_get(r->ino),
					r->type, (const char *)(r + 1),
					r->bytes,
					item->key.type == ITEM_ENTRY);
			at += sizeof(*r) + r->bytes;
		}
		item_set_remove(item);
	}
	return rc ? rc : item_set_merge(set);
}

/* Removes the dead records. */
static void names_compact(struct names *names)
{
	size_t i, n = 0;

	for (i = 0; i < names->records.n; i++)
		if (!record_at(names, i)->dead)
			*record_at(names, n++) = *record_at(names, i);
	names->records.n = n;
}

/* ---- One record a name ---- */

static int by_name(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	/* Of two items that contradict each other the ENTRY is trusted. */
	return sort_order(x->dir, y->dir) ?:
	       sort_order(x->hash, y->hash) ?:
	       sort_order(x->seq, y->seq) ?:
	       sort_order(y->entry, x->entry) ?:
	       sort_order(x->ino, y->ino);
}

static bool same_name(const struct names *names, const struct record *a,
		      const struct record *b)
{
	return a->dir == b->dir && a->bytes == b->bytes &&
	       !memcmp(record_name(names, a), record_name(names, b), a->bytes);
}

static bool inode_there(const struct names *names, uint64_t ino)
{
	return item_set_find(names->set, key_make(ino, ITEM_INODE, 0)) != NULL;
}

/* Gives a second inode under the same name another name. */
static int record_rename(struct names *names, struct record *record)
{
	char text[TRAX_MAX_NAME_BYTES + 32];
	unsigned keep = record->bytes < 220 ? record->bytes : 220;
	int bytes = snprintf(text, sizeof(text), "%.*s.~%llx", (int)keep,
			     record_name(names, record),
			     (unsigned long long)record->ino);
	uint64_t at = names->texts.n;
	char *to = tmp_array_add(&names->texts, (size_t)bytes);

	if (!to)
		return -ENOMEM;
	memcpy(to, text, (size_t)bytes);
	record->name = at;
	record->bytes = (uint8_t)bytes;
	record->hash = dirs_hash(names->check, text, (size_t)bytes);
	return 0;
}

/* Resolves a record that has the same name as `first`, which comes before
 * it. */
static int record_twice(struct names *names, struct record *first,
			struct record *record)
{
	if (first->ino == record->ino && first->seq == record->seq) {
		record->dead = true;
		return 0;
	}
	if (!inode_there(names, record->ino)) {
		record->dead = true;
		return 0;
	}
	if (!inode_there(names, first->ino)) {
		first->ino = record->ino;
		first->type = record->type;
		record->dead = true;
		return 0;
	}
	if (first->seq == record->seq || first->ino == record->ino) {
		record->dead = true;
		return 0;
	}
	return record_rename(names, record);
}

static int names_unique(struct names *names)
{
	size_t i, k, n = names->records.n;
	int rc = 0;

	tmp_array_sort(&names->records, by_name);
	for (i = 0; i < n && !rc; i++) {
		struct record *first = record_at(names, i);

		for (k = i + 1; k < n && !first->dead && !rc; k++) {
			struct record *other = record_at(names, k);

			if (other->dir != first->dir ||
			    other->hash != first->hash)
				break;
			if (!other->dead && same_name(names, first, other))
				rc = record_twice(names, first, other);
		}
	}
	names_compact(names);
	return rc;
}

/* ---- Inodes ---- */

static void names_inodes(struct names *names)
{
	bool keep_dangling = repair_refused(names->check,
					  PROBLEM_ENTRY_DANGLING);
	bool keep_type = repair_refused(names->check, PROBLEM_ENTRY_TYPE);
	size_t i;

	for (i = 0; i < names->records.n; i++) {
		struct record *record = record_at(names, i);
		struct inode_item item;

		if (!repair_get_inode(names->set, record->ino, &item))
			record->dead = !keep_dangling;
		else if (!keep_type)
			record->type = (uint8_t)IFTODT(le32_get(item.mode));
		if (record->ino == TRAX_ROOT_INO)
			record->dead = true;
	}
	names_compact(names);
}

static int by_inode(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return sort_order(x->ino, y->ino) ?:
	       sort_order(x->dir, y->dir) ?:
	       sort_order(x->seq, y->seq);
}

/* Records of an inode, when they are sorted by inode: [*first, end). */
static size_t records_of(const struct names *names, uint64_t ino,
			 size_t *first)
{
	size_t low = 0, high = names->records.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (record_at(names, mid)->ino < ino)
			low = mid + 1;
		else
			high = mid;
	}
	*first = low;
	while (low < names->records.n && record_at(names, low)->ino == ino)
		low++;
	return low;
}

/* A directory keeps the name that its parent pointer means or, when there is
 * none, its first name. */
static void names_one_parent(struct names *names)
{
	size_t i, k, end, keep;

	tmp_array_sort(&names->records, by_inode);
	for (i = 0; i < names->records.n; i = end) {
		struct record *record = record_at(names, i);
		struct inode_item item;

		end = records_of(names, record->ino, &i);
		if (record->type != DT_DIR || end - i < 2 ||
		    !repair_get_inode(names->set, record->ino, &item))
			continue;
		for (keep = i, k = i; k < end; k++)
			if (record_at(names, k)->dir == le64_get(item.parent))
				keep = k;
		for (k = i; k < end; k++)
			record_at(names, k)->dead = k != keep;
	}
	names_compact(names);
}

/* ---- Loops ---- */

static struct record *name_of_dir(struct names *names, uint64_t ino)
{
	size_t first, end = records_of(names, ino, &first);

	return first < end ? record_at(names, first) : NULL;
}

static void names_loops(struct names *names)
{
	size_t i;

	for (i = 0; i < names->records.n; i++) {
		struct record *record = record_at(names, i);
		uint32_t mark = (uint32_t)i + 1;

		if (record->type != DT_DIR)
			continue;
		while (record && !record->mark && !record->dead) {
			record->mark = mark;
			record = name_of_dir(names, record->dir);
		}
		if (record && record->mark == mark)
			record->dead = true;
	}
	names_compact(names);
}

/* ---- lost+found ---- */

static uint64_t new_ino(const struct names *names)
{
	uint64_t seq = names->check->root.next_ino_seq, mask;
	size_t i;

	mask = (1ull << TRAX_INO_SEQ_BITS) - 1;
	for (i = 0; i < item_set_count(names->set); i++) {
		const struct item_set_item *item = item_set_at(names->set, i);

		if (item->key.type == ITEM_INODE &&
		    seq <= (item->key.ino & mask))
			seq = (item->key.ino & mask) + 1;
	}
	return ino_make(0, seq);
}

static bool is_lost_found(const struct names *names,
			  const struct record *record)
{
	return record->dir == TRAX_ROOT_INO && record->type == DT_DIR &&
	       record->bytes == strlen(LOST_NAME) &&
	       !memcmp(record_name(names, record), LOST_NAME, record->bytes);
}

static int lost_found_make(struct names *names)
{
	struct inode_item item;
	uint64_t ino = new_ino(names);
	int rc;

	repair_new_inode(names->check, S_IFDIR | 0700, &item);
	item.dirgroup = le64_put(names->check->root.next_dirgroup %
				 TRAX_DIRGROUPS);
	rc = repair_put_inode(names->set, ino, &item);
	if (!rc)
		rc = item_set_merge(names->set);
	if (!rc)
		rc = record_add(names, TRAX_ROOT_INO, 0, ino, DT_DIR, LOST_NAME,
				strlen(LOST_NAME), true);
	names->lost_found = ino;
	return rc;
}

static int lost_found(struct names *names)
{
	size_t i;

	for (i = 0; i < names->records.n && !names->lost_found; i++)
		if (is_lost_found(names, record_at(names, i)))
			names->lost_found = record_at(names, i)->ino;
	return names->lost_found ? 0 : lost_found_make(names);
}

static int rescue(struct names *names, uint64_t ino, uint32_t mode)
{
	char name[32];
	int bytes = snprintf(name, sizeof(name), "#%llu",
			     (unsigned long long)ino);
	int rc = record_add(names, names->lost_found, 0, ino,
			    (uint8_t)IFTODT(mode), name, (size_t)bytes, true);

	problem_report(names->check, PROBLEM_RESCUED,
		       (struct problem_place){ .ino = ino },
		       (unsigned long long)ino, name);
	return rc;
}

static struct item_set_item *orphan_find(const struct names *names,
					 uint64_t ino)
{
	return item_set_find(names->set, key_make(0, ITEM_ORPHAN, ino));
}

static bool orphan_deletes(const struct item_set *set,
			   const struct item_set_item *item)
{
	const struct orphan_item *orphan =
		item ? item_set_value(set, item) : NULL;

	return orphan && orphan->what == ORPHAN_DELETE;
}

/* Handles an inode that no record leads to. true: it needs a name. */
static int unnamed(struct names *names, uint64_t ino,
		   const struct inode_item *item, bool *wants)
{
	struct item_set_item *orphan = orphan_find(names, ino);
	struct orphan_item new = { .what = ORPHAN_DELETE };

	*wants = false;
	if (ino == TRAX_ROOT_INO)
		return 0;
	if (!le32_get(item->nlink)) {
		if (orphan_deletes(names->set, orphan) ||
		    repair_refused(names->check, PROBLEM_ORPHAN_MISSING))
			return 0;
		return item_set_put(names->set, key_make(0, ITEM_ORPHAN, ino),
				    &new, sizeof(new));
	}
	if (orphan_deletes(names->set, orphan) &&
	    !repair_refused(names->check, PROBLEM_ORPHAN_STRAY))
		item_set_remove(orphan);
	*wants = !repair_refused(names->check, PROBLEM_INODE_UNREACHED);
	return 0;
}

/* Inodes without a name. Records of those that get one are added behind the
 * others, which leaves the search by inode intact for the rest. */
static int names_unnamed(struct names *names)
{
	struct tmp_array lost;
	size_t i, first;
	int rc = tmp_array_init(&lost, sizeof(uint64_t),
			    names->check->options.scratch);

	for (i = 0; i < item_set_count(names->set) && !rc; i++) {
		const struct item_set_item *item = item_set_at(names->set, i);
		const struct inode_item *inode =
			item_set_value(names->set, item);
		uint64_t *ino;
		bool wants;

		if (item->key.type != ITEM_INODE ||
		    records_of(names, item->key.ino, &first) > first)
			continue;
		rc = unnamed(names, item->key.ino, inode, &wants);
		if (rc || !wants)
			continue;
		ino = tmp_array_add(&lost, 1);
		if (ino)
			*ino = item->key.ino;
		else
			rc = -ENOMEM;
	}
	if (!rc)
		rc = item_set_merge(names->set);
	if (!rc && lost.n)
		rc = lost_found(names);
	for (i = 0; i < lost.n && !rc; i++) {
		struct inode_item item;
		uint64_t ino = *(uint64_t *)tmp_array_at(&lost, i);

		if (repair_get_inode(names->set, ino, &item))
			rc = rescue(names, ino, le32_get(item.mode));
	}
	tmp_array_fini(&lost);
	return rc;
}

/* Removes orphan items of inodes that do not exist, or that have names. */
static int names_orphans(struct names *names)
{
	struct item_set *set = names->set;
	size_t i, first;

	tmp_array_sort(&names->records, by_inode);
	if (repair_refused(names->check, PROBLEM_ORPHAN_STRAY))
		return 0;
	for (i = item_set_seek(set, key_make(0, ITEM_ORPHAN, 0));
	     i < item_set_count(set); i++) {
		struct item_set_item *item = item_set_at(set, i);
		struct inode_item inode;

		if (item->key.ino || item->key.type != ITEM_ORPHAN)
			break;
		if (!repair_get_inode(set, item->key.off, &inode))
			item_set_remove(item);
		else if (orphan_deletes(set, item) ?
			 records_of(names, item->key.off, &first) > first :
			 !S_ISREG(le32_get(inode.mode)))
			item_set_remove(item);
	}
	return item_set_merge(set);
}

/* ---- Sequence numbers ---- */

static int by_seq(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return sort_order(x->dir, y->dir) ?:
	       sort_order(x->seq, y->seq) ?:
	       sort_order(y->entry, x->entry) ?:
	       sort_order(x->name, y->name);
}

/* Gives new numbers, above all others, where a number is reserved or used
 * twice. */
static void names_number(struct names *names)
{
	size_t first, end, i;

	tmp_array_sort(&names->records, by_seq);
	for (first = 0; first < names->records.n; first = end) {
		uint64_t dir = record_at(names, first)->dir, last, next;

		for (end = first; end < names->records.n; end++)
			if (record_at(names, end)->dir != dir)
				break;
		next = record_at(names, end - 1)->seq + 1;
		if (next < TRAX_FIRST_SEQ)
			next = TRAX_FIRST_SEQ;
		for (last = 0, i = first; i < end; i++) {
			struct record *record = record_at(names, i);

			if (record->seq < TRAX_FIRST_SEQ || record->seq == last)
				record->seq = next++;
			else
				last = record->seq;
		}
	}
}

/* ---- Counts ---- */

struct dir_count {
	uint64_t dir, entries, subdirs, next_seq;
};

/* Counts the names of the directory whose records begin at *i, and moves *i
 * behind them. */
static struct dir_count count_dir(const struct names *names, size_t *i)
{
	struct dir_count count = { .dir = record_at(names, *i)->dir };

	for (; *i < names->records.n; ++*i) {
		const struct record *record = record_at(names, *i);

		if (record->dir != count.dir)
			break;
		count.entries++;
		count.subdirs += record->type == DT_DIR;
		if (record->seq >= count.next_seq)
			count.next_seq = record->seq + 1;
	}
	return count;
}

static void count_apply(const struct names *names, struct inode_item *item,
			const struct dir_count *count)
{
	const struct check *check = names->check;

	if (!repair_refused(check, PROBLEM_DIR_ENTRIES))
		item->entries = le64_put(count->entries);
	if (!repair_refused(check, PROBLEM_DIR_NLINK) && le32_get(item->nlink))
		item->nlink = le32_put((uint32_t)(2 + count->subdirs));
	if (le64_get(item->next_seq) < count->next_seq ||
	    le64_get(item->next_seq) < TRAX_FIRST_SEQ)
		item->next_seq = le64_put(count->next_seq < TRAX_FIRST_SEQ ?
					  TRAX_FIRST_SEQ : count->next_seq);
}

/* Directories and records in order of number, side by side. */
static int names_count_dirs(struct names *names)
{
	struct item_set *set = names->set;
	size_t i, at = 0;
	int rc = 0;

	tmp_array_sort(&names->records, by_seq);
	for (i = 0; i < item_set_count(set) && !rc; i++) {
		const struct item_set_item *found = item_set_at(set, i);
		struct dir_count count = { 0 };
		struct inode_item item;

		if (found->key.type != ITEM_INODE)
			continue;
		item = *(const struct inode_item *)item_set_value(set, found);
		if (!S_ISDIR(le32_get(item.mode)))
			continue;
		while (at < names->records.n &&
		       record_at(names, at)->dir < found->key.ino)
			at++;
		if (at < names->records.n &&
		    record_at(names, at)->dir == found->key.ino)
			count = count_dir(names, &at);
		/* A directory whose deletion was under way stays when it has
		 * names. */
		if (!le32_get(item.nlink) && count.entries)
			item.nlink = le32_put(2);
		count_apply(names, &item, &count);
		rc = repair_put_inode(set, found->key.ino, &item);
	}
	return rc ? rc : item_set_merge(set);
}

static int names_count_links(struct names *names)
{
	struct item_set *set = names->set;
	size_t i, first, end;
	int rc = 0;

	tmp_array_sort(&names->records, by_inode);
	for (i = 0; i < item_set_count(set) && !rc; i++) {
		const struct item_set_item *found = item_set_at(set, i);
		struct inode_item item, before;

		if (found->key.type != ITEM_INODE)
			continue;
		before = *(const struct inode_item *)item_set_value(set, found);
		item = before;
		end = records_of(names, found->key.ino, &first);
		if (found->key.ino == TRAX_ROOT_INO)
			item.parent = le64_put(TRAX_ROOT_INO);
		else if (end > first && S_ISDIR(le32_get(item.mode)))
			item.parent = le64_put(record_at(names, first)->dir);
		else if (end > first &&
			 !repair_refused(names->check, PROBLEM_INODE_NLINK))
			item.nlink = le32_put((uint32_t)(end - first));
		if (memcmp(&item, &before, sizeof(item)))
			rc = repair_put_inode(set, found->key.ino, &item);
	}
	return rc ? rc : item_set_merge(set);
}

/* ---- Back into the set ---- */

static size_t record_encode(const struct names *names,
			    const struct record *record, uint8_t *to)
{
	struct name_record head = {
		.ino = le64_put(record->ino),
		.seq = le64_put(record->seq),
		.type = record->type,
		.bytes = record->bytes,
	};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), record_name(names, record), record->bytes);
	return sizeof(head) + record->bytes;
}

static int names_put(struct names *names)
{
	uint8_t entry[sizeof(struct name_record) + TRAX_MAX_NAME_BYTES];
	uint8_t value[TRAX_MAX_ITEM_BYTES];
	size_t i, bytes, used = 0;
	int rc = 0;

	tmp_array_sort(&names->records, by_name);
	for (i = 0; i < names->records.n && !rc; i++) {
		const struct record *record = record_at(names, i);
		const struct record *next = i + 1 < names->records.n ?
					    record_at(names, i + 1) : NULL;

		bytes = record_encode(names, record, entry);
		rc = item_set_put(names->set, key_make(record->dir, ITEM_ENTRY,
						  record->seq), entry, bytes);
		if (used + bytes <= sizeof(value)) {
			memcpy(value + used, entry, bytes);
			used += bytes;
		}
		if (rc || (next && next->dir == record->dir &&
			   next->hash == record->hash))
			continue;
		rc = item_set_put(names->set, key_make(record->dir, ITEM_NAME,
						  record->hash), value, used);
		used = 0;
	}
	return rc ? rc : item_set_merge(names->set);
}

/* ---- All of it ---- */

static int names_root(struct names *names)
{
	struct inode_item item;

	if (repair_get_inode(names->set, TRAX_ROOT_INO, &item) ||
	    repair_refused(names->check, PROBLEM_ROOT_DIR))
		return 0;
	repair_new_inode(names->check, S_IFDIR | 0755, &item);
	if (repair_put_inode(names->set, TRAX_ROOT_INO, &item))
		return -ENOMEM;
	return item_set_merge(names->set);
}

static int names_repair(struct names *names)
{
	int rc = names_root(names);

	if (!rc)
		rc = names_extract(names);
	if (!rc)
		rc = names_unique(names);
	if (rc)
		return rc;
	names_inodes(names);
	names_one_parent(names);
	names_loops(names);
	rc = names_unnamed(names);
	if (!rc)
		rc = names_unique(names);
	if (!rc)
		rc = names_orphans(names);
	if (rc)
		return rc;
	names_number(names);
	rc = names_count_dirs(names);
	if (!rc)
		rc = names_count_links(names);
	return rc ? rc : names_put(names);
}

int repair_names(struct check *check, struct item_set *set)
{
	struct names names = { .check = check, .set = set };
	int rc = tmp_array_init(&names.records, sizeof(struct record),
			    check->options.scratch);

	names.texts.fd = -1;
	if (!rc)
		rc = tmp_array_init(&names.texts, 1, check->options.scratch);
	if (!rc)
		rc = names_repair(&names);
	tmp_array_fini(&names.records);
	tmp_array_fini(&names.texts);
	return rc;
}
