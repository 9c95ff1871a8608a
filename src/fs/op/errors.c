/*
 * errors.c - see errors.h.
 *
 * A path is found by going up: the inode says in which directory it is, and the
 * directory's entries are searched for it, some leaves a transaction.
 */
#include "fs/op/errors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fs/op/abandon_alloc.h"
#include "fs/op/inode_item.h"
#include "fs/op/op.h"

/* Places of damage remembered in memory, so that each is noted once a mount.
 * When it is full the oldest is forgotten, and may be noted again. */
#define KNOWN 256u
/* Directories that a path has at most in a listing, so that a damaged tree
 * cannot make it endless; a deeper file is listed without its path. */
#define MAX_DEPTH 256u
/* Objects and bytes of text of one listing: it has to fit into an extended
 * attribute of 64 KiB, with room for the name that is being added. */
#define LISTING_MOST 200u
#define LISTING_BYTES 60000u
#define INDENT_BYTES 40u	/* Bytes that the indentation adds to an object
				 * within the array. */

struct errors {
	struct fs *fs;
	struct list adds;	/* struct error_add */
	bool busy;
	bool numbered;
	uint64_t next;		/* number of the next item */
	uint64_t count;
	struct {
		uint64_t sector, ino, off;
		uint8_t what, healed;
	} known[KNOWN];
	unsigned known_next;
	uint64_t first;		/* number of the first item of this mount; 0:
				 * there is none */
	unsigned clears;	/* transactions under way that remove items */
	bool watching, met;	/* damage of `watched` counts as met */
	struct error watched;
};

struct error_add {
	struct list link;
	struct error_item item;
	uint64_t number;
};

/* ---- Adding ---- */

static void errors_pump(struct errors *errors);

static int add_number(struct fs_txn *txn, struct errors *errors)
{
	struct tree_item item;
	int rc;

	if (errors->numbered)
		return 0;
	rc = tree_seek_le(txn->tree_txn, key_make(0, ITEM_ERROR, UINT64_MAX),
			  key_make(0, ITEM_ERROR, 0), &item);
	if (rc && rc != -ENOENT)
		return rc;
	errors->next = rc ? 1 : item.key.off + 1;
	errors->numbered = true;
	return 0;
}

static int add_run(struct fs_txn *txn)
{
	struct error_add *add = txn->state;
	struct errors *errors = txn->fs->errors;
	struct key key, old;
	struct tree_item item;
	int rc = add_number(txn, errors), gone;

	if (rc)
		return rc;
	key = key_make(0, ITEM_ERROR, errors->next);
	old = key_make(0, ITEM_ERROR, errors->next > ERRORS_KEPT ?
		       errors->next - ERRORS_KEPT : 0);
	rc = tree_get(txn->tree_txn, key, &item);
	gone = tree_get(txn->tree_txn, old, &item);
	if (rc == 0)
		return -EUCLEAN;
	if (rc != -ENOENT || (gone && gone != -ENOENT))
		return rc != -ENOENT ? rc : gone;
	tree_put(txn->tree_txn, key, &add->item, sizeof(add->item));
	if (!gone)
		tree_del(txn->tree_txn, old);
	return 0;
}

static void add_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct error_add *add = txn->state;
	struct errors *errors = txn->fs->errors;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (!rc && !errors->first)
		errors->first = errors->next;
	if (!rc)
		errors->next++;
	abandon_free(add);
	errors->busy = false;
	errors_pump(errors);
}

static const struct fs_txn_type add_type = {
	.name = "note error",
	.bounds = { .log_bytes = 256 },
	.paths = 3,
	.changes = 2,
	.stages = 2,
	.run = add_run,
	.end = add_end,
};

static void errors_pump(struct errors *errors)
{
	struct error_add *add =
		list_first(&errors->adds, struct error_add, link);

	if (!add || errors->busy)
		return;
	list_del(&add->link);
	errors->busy = true;
	if (fs_txn_start(errors->fs, &add_type, NULL, add)) {
		abandon_free(add);
		errors->busy = false;
	}
}

static struct errors *errors_get(struct fs *fs)
{
	struct errors *errors = fs->errors;

	if (errors)
		return errors;
	errors = calloc(1, sizeof(*errors));
	if (!errors)
		return NULL;
	errors->fs = fs;
	list_init(&errors->adds);
	fs->errors = errors;
	return errors;
}

static bool error_is_known(struct errors *errors, const struct error *error)
{
	unsigned i;

	for (i = 0; i < KNOWN; i++)
		if (errors->known[i].what == error->what &&
		    errors->known[i].sector == error->sector &&
		    (error->sector || (errors->known[i].ino == error->ino &&
				       errors->known[i].off == error->off)) &&
		    errors->known[i].healed == error->healed)
			return true;
	i = errors->known_next++ % KNOWN;
	errors->known[i].sector = error->sector;
	errors->known[i].ino = error->ino;
	errors->known[i].off = error->off;
	errors->known[i].what = (uint8_t)error->what;
	errors->known[i].healed = error->healed;
	return false;
}

/* Is this damage of the place that is watched? */
static bool error_is_watched(const struct errors *errors,
			     const struct error *error)
{
	const struct error *place = &errors->watched;

	if (!errors->watching || error->healed || error->ino != place->ino)
		return false;
	if (!error->ino)
		return error->sector == place->sector;
	return error->off < place->off +
				    (uint64_t)place->sectors * SECTOR_BYTES &&
	       error->off + (uint64_t)error->sectors * SECTOR_BYTES >
		       place->off;
}

void errors_watch(struct fs *fs, const struct error *error)
{
	struct errors *errors = errors_get(fs);

	if (!errors)
		return;
	errors->watched = *error;
	errors->watching = true;
	errors->met = false;
}

bool errors_unwatch(struct fs *fs)
{
	/* Without memory nothing was watched, and the note stays. */
	if (!fs->errors || !fs->errors->watching)
		return true;
	fs->errors->watching = false;
	return fs->errors->met;
}

void errors_add(struct fs *fs, const struct error *error)
{
	struct errors *errors = errors_get(fs);
	struct error_add *add;
	bool known;

	if (!errors)
		return;
	known = error_is_known(errors, error);
	if (error_is_watched(errors, error)) {
		errors->met = true;
		return;
	}
	if (known)
		return;
	errors->count++;
	if (fs_read_only(fs))
		return;
	add = abandon_alloc(fs, sizeof(*add));
	if (!add)
		return;
	add->item = (struct error_item){
		.ino = le64_put(error->ino),
		.off = le64_put(error->off),
		.addr = le64_put(addr_make(0, error->sector)),
		.sectors = le32_put(error->sectors),
		.what = (uint8_t)error->what,
		.healed = error->healed,
		.seconds = le64_put((uint64_t)env_wall_seconds(fs->env)),
	};
	list_add(&errors->adds, &add->link);
	errors_pump(errors);
}

uint64_t errors_count(const struct fs *fs)
{
	return fs->errors ? fs->errors->count : 0;
}

bool errors_idle(const struct fs *fs)
{
	return !fs->errors || (!fs->errors->busy && !fs->errors->clears);
}

void errors_free(struct fs *fs)
{
	free(fs->errors);
	fs->errors = NULL;
}

/* ---- Clearing ---- */

/* Items that one transaction removes. */
#define CLEAR_AT_ONCE 8u

struct error_clear {
	uint64_t from, end;	/* numbers that are removed */
	uint64_t number[CLEAR_AT_ONCE];
	struct error_item item[CLEAR_AT_ONCE];
	unsigned n;
};

/* What a removed note said is noted again when it is met again. */
static void clear_forget(struct errors *errors, uint64_t number,
			 const struct error_item *item)
{
	uint64_t sector = addr_sector(le64_get(item->addr));
	unsigned i;

	if (errors->first && number >= errors->first && errors->count)
		errors->count--;
	for (i = 0; i < KNOWN; i++)
		if (errors->known[i].sector == sector &&
		    errors->known[i].ino == le64_get(item->ino) &&
		    errors->known[i].off == le64_get(item->off))
			errors->known[i].what = 0;
}

static int clear_run(struct fs_txn *txn)
{
	struct error_clear *clear = txn->state;
	struct key low = key_make(0, ITEM_ERROR, clear->from);
	struct key high = key_make(0, ITEM_ERROR, clear->end - 1);
	struct tree_item item;
	unsigned i;
	int rc = 0;

	for (clear->n = 0; clear->n < CLEAR_AT_ONCE; clear->n++) {
		rc = tree_seek_ge(txn->tree_txn, low, high, &item);
		if (rc)
			break;
		clear->number[clear->n] = item.key.off;
		memcpy(&clear->item[clear->n], item.value,
		       sizeof(clear->item[0]));
		low.off = item.key.off + 1;
	}
	if (rc && rc != -ENOENT)
		return rc;
	for (i = 0; i < clear->n; i++)
		tree_del(txn->tree_txn,
			 key_make(0, ITEM_ERROR, clear->number[i]));
	return 0;
}

static void clear_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct error_clear *clear = txn->state;
	struct errors *errors = txn->fs->errors;
	unsigned i;

	(void)seq;
	for (i = 0; !rc && i < clear->n; i++)
		clear_forget(errors, clear->number[i], &clear->item[i]);
	if (!rc && clear->n == CLEAR_AT_ONCE) {
		fs_txn_restart(txn);
		return;
	}
	abandon_free(clear);
	errors->clears--;
	fs_txn_finish(txn, rc);
}

static const struct fs_txn_type clear_type = {
	.name = "clear errors",
	.bounds = { .log_bytes = 64 * CLEAR_AT_ONCE },
	.paths = CLEAR_AT_ONCE + 1,
	.changes = CLEAR_AT_ONCE,
	.stages = CLEAR_AT_ONCE + 1,
	.run = clear_run,
	.end = clear_end,
};

/* Removes the notes in [from, end); op: NULL, or what is answered then. */
static void clear_start(struct fs *fs, struct fs_op *op, uint64_t from,
			uint64_t end)
{
	struct errors *errors = errors_get(fs);
	struct error_clear *clear =
		errors ? abandon_alloc(fs, sizeof(*clear)) : NULL;

	if (!clear) {
		if (op)
			fs_answer(fs, op, -ENOMEM);
		return;
	}
	clear->from = from;
	clear->end = end;
	if (fs_txn_start(fs, &clear_type, op, clear))
		abandon_free(clear);
	else
		errors->clears++;
}

void errors_remove(struct fs *fs, uint64_t number)
{
	clear_start(fs, NULL, number, number + 1);
}

void errors_op_clear(struct fs *fs, struct fs_op *op)
{
	if (op->size > op->offset2)
		clear_start(fs, op, op->offset2, op->size);
	else
		fs_answer(fs, op, 0);
}

/* ---- Listing ---- */

struct error_listing {
	struct fs_op *op;
	json_t *array;
	uint64_t next;		/* number of the item that is read next */
	bool read;
	bool active;		/* the path of an object is being looked up */
	size_t at;		/* index of the object at hand */
	size_t bytes;		/* bytes of text of the objects before */
	uint64_t ino, dir;	/* inode whose name is looked up, and the
				 * directory where it is */
	uint64_t seq;		/* number of the directory entry that is looked
				 * at next */
	unsigned depth;
	bool gone;
	char *path;		/* the end of the path that is known so far */
};

static const char *what_name(uint8_t what)
{
	switch (what) {
	case ERROR_READ:
		return "unreadable";
	case ERROR_LOST:
		return "lost";
	default:
		return "checksum";
	}
}

static void error_json(struct error_listing *listing, uint64_t number,
		       const struct error_item *item)
{
	json_t *o = json_pack(
		"{s:I, s:I, s:I, s:I, s:i, s:s, s:b, s:I}",
		"number", (json_int_t)number,
		"ino", (json_int_t)le64_get(item->ino),
		"offset", (json_int_t)le64_get(item->off),
		"lbn", (json_int_t)addr_sector(le64_get(item->addr)),
		"sectors", (int)le32_get(item->sectors),
		"what", what_name(item->what),
		"healed", item->healed,
		"seconds", (json_int_t)le64_get(item->seconds));

	if (o)
		json_array_append_new(listing->array, o);
}

static int listing_read(struct fs_txn *txn, struct error_listing *listing)
{
	struct tree_item item;
	int rc;

	while (tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
		if (json_array_size(listing->array) == LISTING_MOST) {
			listing->read = true;
			return 0;
		}
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(0, ITEM_ERROR, listing->next),
				  key_make(0, ITEM_ERROR, UINT64_MAX), &item);
		if (rc == -ENOENT) {
			listing->read = true;
			return 0;
		}
		if (rc)
			return rc;
		error_json(listing, item.key.off, item.value);
		listing->next = item.key.off + 1;
	}
	return 0;
}

/* Puts a name in front of the part of the path that is known. */
static bool path_prepend(struct error_listing *listing,
			 const struct name_record *record)
{
	size_t old = listing->path ? strlen(listing->path) : 0;
	char *path = malloc(old + record->bytes + 2);

	if (!path)
		return false;
	path[0] = '/';
	memcpy(path + 1, record + 1, record->bytes);
	memcpy(path + 1 + record->bytes, listing->path ? listing->path : "",
	       old);
	path[1 + record->bytes + old] = 0;
	free(listing->path);
	listing->path = path;
	return true;
}

/* Finds the directory that `ino` is in. */
static int path_up(struct fs_txn *txn, struct error_listing *listing)
{
	struct inode_item item;
	int rc;

	rc = inode_get(txn, listing->ino, &item);
	if (rc == -ENOENT || rc == -ESTALE || le32_get(item.nlink) == 0) {
		listing->gone = rc != -EAGAIN;
		return rc == -EAGAIN ? rc : 0;
	}
	if (rc)
		return rc;
	listing->dir = le64_get(item.parent);
	listing->seq = 0;
	return 0;
}

static int path_search(struct fs_txn *txn, struct error_listing *listing)
{
	const struct name_record *record;
	struct tree_item item;
	int rc;

	while (tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(listing->dir, ITEM_ENTRY,
					   listing->seq),
				  key_make(listing->dir, ITEM_ENTRY,
					   UINT64_MAX), &item);
		if (rc == -ENOENT)
			listing->gone = true;
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		record = item.value;
		listing->seq = item.key.off + 1;
		if (le64_get(record->ino) != listing->ino)
			continue;
		listing->gone = !path_prepend(listing, record) ||
				++listing->depth > MAX_DEPTH;
		listing->ino = listing->dir;
		listing->dir = 0;
		return 0;
	}
	return 0;
}

static bool path_is_over(const struct error_listing *listing)
{
	return listing->gone || listing->ino == TRAX_ROOT_INO;
}

static int listing_run(struct fs_txn *txn)
{
	struct error_listing *listing = txn->state;

	if (!listing->read)
		return listing_read(txn, listing);
	if (!listing->active || path_is_over(listing))
		return 0;
	return listing->dir ? path_search(txn, listing) :
			      path_up(txn, listing);
}

static size_t object_bytes(const json_t *o)
{
	return json_dumpb(o, NULL, 0, JSON_INDENT(2)) + INDENT_BYTES;
}

/* The path of the present object is known: stores it, and goes on to the next
 * object if there is room for it. */
static void listing_next(struct error_listing *listing)
{
	json_t *o = json_array_get(listing->array, listing->at);

	json_object_set_new(o, "path", listing->gone || !listing->path ?
			    json_null() : json_string(listing->path));
	free(listing->path);
	listing->path = NULL;
	/* A path that is too long for the attribute is left out. */
	if (object_bytes(o) > LISTING_BYTES)
		json_object_set_new(o, "path", json_null());
	listing->bytes += object_bytes(o);
	if (listing->bytes <= LISTING_BYTES) {
		listing->at++;
		return;
	}
	while (json_array_size(listing->array) > listing->at)
		json_array_remove(listing->array, listing->at);
}

static void listing_begin(struct error_listing *listing)
{
	json_t *o = json_array_get(listing->array, listing->at);

	listing->ino = (uint64_t)json_integer_value(json_object_get(o, "ino"));
	listing->dir = 0;
	listing->depth = 0;
	listing->gone = listing->ino == 0;
	listing->active = true;
}

static void listing_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct error_listing *listing = txn->state;
	struct fs_op *op = listing->op;

	(void)seq;
	if (!rc && listing->active && path_is_over(listing)) {
		listing_next(listing);
		listing->active = false;
	}
	if (!rc && listing->read && !listing->active &&
	    listing->at < json_array_size(listing->array))
		listing_begin(listing);
	if (!rc && (!listing->read || listing->active)) {
		fs_txn_restart(txn);
		return;
	}
	op->buffer = rc ? NULL : json_dumps(listing->array, JSON_INDENT(2));
	if (!rc && !op->buffer)
		rc = -ENOMEM;
	op->result = rc ? 0 : strlen(op->buffer);
	json_decref(listing->array);
	free(listing->path);
	abandon_free(listing);
	fs_txn_finish(txn, rc);
}

static const struct fs_txn_type listing_type = {
	.name = "list errors",
	.bounds = { .nodes = 16 },
	.stages = 16,
	.run = listing_run,
	.end = listing_end,
};

void errors_op_list(struct fs *fs, struct fs_op *op)
{
	struct error_listing *listing =
		abandon_alloc(fs, sizeof(*listing));

	if (listing)
		listing->array = json_array();
	if (!listing || !listing->array) {
		abandon_free(listing);
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	listing->op = op;
	listing->next = op->offset2;
	fs_txn_start(fs, &listing_type, op, listing);
}
