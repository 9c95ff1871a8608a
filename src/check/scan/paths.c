/*
 * paths.c - paths of the inodes that problems name.
 *
 * The walk does not keep names. When there are problems, two more walks look
 * for them: the first one for one entry of each inode, the second for the names
 * of the directories above, which links.c knows. What is no longer in the tree
 * is left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "check/scan/check_internal.h"

#define MAX_NAMED 1024u		/* most inodes whose paths are reported */
#define MAX_DEPTH 256u		/* most directories above one inode; deeper ones
				 * have no path */
#define MAX_PATH 65536u

/* An inode, and one name of it. */
struct named {
	uint64_t ino, dir;
	char *name;		/* NULL: its name has not been found yet */
	bool asked;		/* named by a problem; otherwise a directory
				 * above one */
};

static int named_cmp(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return sort_order(x->ino, y->ino);
}

static struct named *named_find(struct check *check, uint64_t ino)
{
	struct named want = { .ino = ino };
	struct vec *named = &check->paths.sorted;

	return named->n ? bsearch(&want, named->items, named->n, named->size,
				  named_cmp) : NULL;
}

void paths_init(struct check *check)
{
	vec_init(&check->paths.kept, sizeof(uint64_t));
}

void paths_fini(struct check *check)
{
	vec_fini(&check->paths.kept);
}

void paths_begin(struct check *check)
{
	vec_init(&check->paths.asked, sizeof(uint64_t));
	vec_init(&check->paths.sorted, sizeof(struct named));
}

void paths_free(struct check *check)
{
	struct named *named;
	size_t i;

	for (i = 0; i < check->paths.sorted.n; i++) {
		named = vec_at(&check->paths.sorted, i);
		free(named->name);
	}
	vec_fini(&check->paths.sorted);
	vec_fini(&check->paths.asked);
}

static void paths_note(struct check *check, struct vec *vec, uint64_t ino)
{
	uint64_t *next;
	size_t i;

	if (!ino || !check->options.named || vec->n >= MAX_NAMED)
		return;
	for (i = vec->n; i > 0; i--)
		if (*(uint64_t *)vec_at(vec, i - 1) == ino)
			return;
	next = check_add(check, vec);
	if (next)
		*next = ino;
}

void paths_ask(struct check *check, uint64_t ino)
{
	paths_note(check, &check->paths.asked, ino);
}

void paths_keep(struct check *check, uint64_t ino)
{
	paths_note(check, &check->paths.kept, ino);
}

static bool paths_add(struct check *check, uint64_t ino, bool asked)
{
	struct named *named = check_add(check, &check->paths.sorted);

	if (named)
		*named = (struct named){ .ino = ino, .asked = asked };
	return named;
}

/* Called for each item of a walk: takes the first entry of each inode that has
 * no name yet. */
static void paths_item(struct check *check, struct key key, const void *value,
		       size_t bytes)
{
	const struct name_record *record = value;
	struct named *named;
	size_t n;

	if (key.type != ITEM_ENTRY || bytes < sizeof(*record))
		return;
	named = named_find(check, le64_get(record->ino));
	n = record->bytes;
	if (!named || named->name || n > bytes - sizeof(*record))
		return;
	named->name = malloc(n + 1);
	if (!named->name) {
		check_fail(check, -ENOMEM);
		return;
	}
	memcpy(named->name, record + 1, n);
	named->name[n] = '\0';
	named->dir = key.ino;
}

/* Adds the directories above inodes whose name was found. */
static void paths_add_parents(struct check *check)
{
	struct vec *sorted = &check->paths.sorted;
	size_t i, depth, n = sorted->n;
	const struct named *named;
	uint64_t dir;

	for (i = 0; i < n && !check->rc; i++) {
		named = vec_at(sorted, i);
		dir = named->name ? named->dir : TRAX_ROOT_INO;
		for (depth = 0; dir != TRAX_ROOT_INO && depth < MAX_DEPTH;
		     depth++) {
			if (!paths_add(check, dir, false))
				return;
			dir = links_parent(check, dir);
		}
	}
}

/* Sorts so that each inode is there once; those with a name or named by a
 * problem come first. */
static int named_order(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int cmp = named_cmp(a, b);

	return cmp ? cmp : (y->name != NULL) - (x->name != NULL);
}

static void paths_sort(struct check *check)
{
	struct vec *sorted = &check->paths.sorted;
	struct named *to, *from;
	size_t i, n = 0;

	vec_sort(sorted, named_order);
	for (i = 0; i < sorted->n; i++) {
		from = vec_at(sorted, i);
		to = n ? vec_at(sorted, n - 1) : NULL;
		if (to && to->ino == from->ino) {
			to->asked |= from->asked;
			continue;
		}
		*(struct named *)vec_at(sorted, n++) = *from;
	}
	sorted->n = n;
}

/* The path, written from its end; NULL: a part of it is unknown. */
static const char *paths_text(struct check *check, uint64_t ino, char *buffer)
{
	char *at = buffer + MAX_PATH - 1;
	const struct named *named;
	unsigned depth;
	size_t n;

	*at = '\0';
	for (depth = 0; ino != TRAX_ROOT_INO; depth++) {
		named = named_find(check, ino);
		if (!named || !named->name || depth >= MAX_DEPTH)
			return NULL;
		n = strlen(named->name);
		if (n + 1 > (size_t)(at - buffer))
			return NULL;
		at -= n;
		memcpy(at, named->name, n);
		*--at = '/';
		ino = named->dir;
	}
	return *at ? at : "/";
}

static void paths_tell(struct check *check)
{
	char *buffer = malloc(MAX_PATH);
	const struct named *named;
	const char *path;
	size_t i;

	for (i = 0; buffer && i < check->paths.sorted.n; i++) {
		named = vec_at(&check->paths.sorted, i);
		path = named->asked ?
		       paths_text(check, named->ino, buffer) : NULL;
		if (path)
			check->options.named(check->options.arg, named->ino,
					     path);
	}
	free(buffer);
}

void paths_finish(struct check *check)
{
	size_t i;

	for (i = 0; check->again && i < check->paths.kept.n; i++)
		paths_ask(check, *(uint64_t *)vec_at(&check->paths.kept, i));
	if (!check->paths.asked.n || check->rc)
		return;
	for (i = 0; i < check->paths.asked.n; i++)
		if (!paths_add(check, *(uint64_t *)vec_at(&check->paths.asked,
							  i), true))
			return;
	paths_sort(check);
	walk_tree(check, false, paths_item);
	if (check->rc)
		return;
	paths_add_parents(check);
	paths_sort(check);
	walk_tree(check, false, paths_item);
	if (!check->rc)
		paths_tell(check);
}
