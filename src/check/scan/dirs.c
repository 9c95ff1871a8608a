/*
 * dirs.c - names: each is there twice, by hash and by sequence.
 *
 * An order-free sum over the NAME records of a directory minus its ENTRY
 * records must be zero; only directories where it is not are collected and
 * compared name by name in a second walk.
 */
#include <dirent.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/scan/check_internal.h"

/* Most names that are compared one by one, about 1.2 GB of memory; further ones
 * are left out. */
#define MAX_EXACT (4u << 20)

static struct problem_place at_dir(uint64_t dir)
{
	return (struct problem_place){ .ino = dir };
}

uint64_t dirs_hash(const struct check *check, const void *name, size_t bytes)
{
	uint64_t mask = check->options.name_mask;

	return csum_seeded(name, bytes, check->super.hash_seed) &
	       (mask ? mask : UINT64_MAX);
}

static uint64_t record_hash(const struct name_record *record)
{
	return csum(record, sizeof(*record) + record->bytes);
}

static void name_hash(struct check *check, const struct inode_state *now,
		      uint64_t hash, const struct name_record *record)
{
	if (dirs_hash(check, record + 1, record->bytes) == hash)
		return;
	problem_report(check, PROBLEM_NAME_HASH, at_dir(now->ino),
		       (unsigned long long)now->ino,
		       (unsigned long long)le64_get(record->ino));
}

/* Length of a record; item_verify has seen that the records fill the value. */
static size_t record_bytes(const struct name_record *record)
{
	return sizeof(*record) + record->bytes;
}

static bool same_name(const struct name_record *a, const struct name_record *b)
{
	return a->bytes == b->bytes && !memcmp(a + 1, b + 1, a->bytes);
}

/* Does the same name stand in the value before the record at `at`, too? */
static bool name_before(const uint8_t *value, size_t at)
{
	const struct name_record *record = (const void *)(value + at);
	size_t i = 0;

	while (i < at) {
		const struct name_record *other = (const void *)(value + i);

		if (same_name(record, other))
			return true;
		i += record_bytes(other);
	}
	return false;
}

void dirs_names(struct check *check, struct inode_state *now, uint64_t hash,
		const void *value, size_t bytes)
{
	const uint8_t *p = value;
	size_t at = 0;

	while (at < bytes) {
		const struct name_record *record = (const void *)(p + at);

		now->names++;
		now->pair_sum += record_hash(record);
		name_hash(check, now, hash, record);
		if (name_before(p, at))
			problem_report(check, PROBLEM_NAME_TWICE,
				       at_dir(now->ino),
				       (unsigned long long)now->ino,
				       (unsigned long long)
					       le64_get(record->seq));
		at += record_bytes(record);
	}
}

void dirs_entry(struct check *check, struct inode_state *now, uint64_t seq,
		const void *value, size_t bytes)
{
	const struct name_record *record = value;

	(void)bytes;
	now->entries++;
	now->pair_sum -= record_hash(record);
	if (seq < TRAX_FIRST_SEQ)
		problem_report(check, PROBLEM_ENTRY_SEQ, at_dir(now->ino),
			       (unsigned long long)now->ino,
			       (unsigned long long)seq);
	if (seq >= now->next_seq)
		now->next_seq = seq == UINT64_MAX ? seq : seq + 1;
	if (record->type == DT_DIR)
		now->subdirs++;
	links_entry(check, now->ino, record);
}

void dirs_finish(struct check *check, struct inode_state *now)
{
	uint64_t next = le64_get(now->item.next_seq);
	uint64_t entries = le64_get(now->item.entries);
	uint64_t nlink = le32_get(now->item.nlink);
	uint64_t *differ;

	if (now->pair_sum) {
		differ = check_add(check, &check->dirs.differ);
		if (differ)
			*differ = now->ino;
	}
	if (next < now->next_seq || next < TRAX_FIRST_SEQ)
		problem_report(check, PROBLEM_DIR_NEXT_SEQ, at_dir(now->ino),
			       (unsigned long long)now->ino,
			       (unsigned long long)next,
			       (unsigned long long)(now->next_seq ?
						    now->next_seq - 1 :
						    TRAX_FIRST_SEQ - 1));
	if (entries != now->entries)
		problem_report(check, PROBLEM_DIR_ENTRIES, at_dir(now->ino),
			       (unsigned long long)now->ino,
			       (unsigned long long)entries,
			       (unsigned long long)now->entries);
	if (nlink && nlink != 2 + now->subdirs)
		problem_report(check, PROBLEM_DIR_NLINK, at_dir(now->ino),
			       (unsigned long long)now->ino,
			       (unsigned long long)nlink,
			       (unsigned long long)(2 + now->subdirs));
}

/* ---- Exactly ---- */

bool dirs_need_exact(const struct check *check)
{
	return check->dirs.differ.n != 0;
}

static bool dirs_differs(const struct check *check, uint64_t dir)
{
	const struct vec *differ = &check->dirs.differ;

	return differ->n && bsearch(&dir, differ->items, differ->n,
				    differ->size, sort_u64_cmp);
}

static void exact_add(struct check *check, struct key key,
		      const struct name_record *record)
{
	struct name_seen *seen;

	if (check->dirs.exact.n >= MAX_EXACT)
		return;
	seen = check_add(check, &check->dirs.exact);
	if (!seen)
		return;
	memset(seen, 0, sizeof(*seen));
	seen->dir = key.ino;
	seen->ino = le64_get(record->ino);
	seen->seq = le64_get(record->seq);
	seen->type = record->type;
	seen->bytes = record->bytes;
	seen->entry = key.type == ITEM_ENTRY;
	memcpy(seen->name, record + 1, record->bytes);
}

void dirs_exact_item(struct check *check, struct key key, const void *value,
		     size_t bytes)
{
	const uint8_t *p = value;
	size_t at = 0;

	if ((key.type != ITEM_NAME && key.type != ITEM_ENTRY) ||
	    !dirs_differs(check, key.ino))
		return;
	while (at < bytes) {
		const struct name_record *record = (const void *)(p + at);

		exact_add(check, key, record);
		at += record_bytes(record);
	}
}

/* Sorts the two items of one name next to each other. */
static int seen_cmp(const void *a, const void *b)
{
	const struct name_seen *x = a, *y = b;

	return sort_order(x->dir, y->dir) ?:
	       sort_order(x->seq, y->seq) ?:
	       memcmp(x->name, y->name, sizeof(x->name)) ?:
	       sort_order(x->ino, y->ino) ?:
	       sort_order(x->entry, y->entry);
}

static bool seen_pair(const struct name_seen *name,
		      const struct name_seen *entry)
{
	return !name->entry && entry->entry && name->dir == entry->dir &&
	       name->seq == entry->seq && name->ino == entry->ino &&
	       name->type == entry->type && name->bytes == entry->bytes &&
	       !memcmp(name->name, entry->name, name->bytes);
}

void dirs_exact_finish(struct check *check)
{
	struct vec *exact = &check->dirs.exact;
	const struct name_seen *seen;
	size_t i;

	vec_sort(exact, seen_cmp);
	seen = exact->items;
	for (i = 0; i < exact->n; i++) {
		if (i + 1 < exact->n && seen_pair(&seen[i], &seen[i + 1])) {
			i++;
			continue;
		}
		problem_report(check, seen[i].entry ? PROBLEM_ENTRY_UNPAIRED :
			       PROBLEM_NAME_UNPAIRED, at_dir(seen[i].dir),
			       (unsigned long long)seen[i].dir,
			       (unsigned long long)seen[i].ino,
			       (unsigned long long)seen[i].seq);
	}
}

void dirs_free(struct check *check)
{
	vec_fini(&check->dirs.differ);
	vec_fini(&check->dirs.exact);
}
