/*
 * bad_sectors.c - sectors that could not be written.
 *
 *   failed write -> [written again, in halves, down to a block or a part of
 *                   MAX_RANGES] -> good: given back; bad: [txn] OWNER_BAD
 *
 * The sectors were taken for a write and have no owner yet, so anything may be
 * written to them.  No data waits for this: it was written elsewhere.  When
 * nothing at all can be written, here or elsewhere, the disk is in trouble and
 * not the place; then the try is repeated later, as often as the fault policy
 * repeats writes of data (disk/fault.h).  Sectors that fail even then are not
 * used until the next mount; nor is a write with too many bad ranges.  A sector
 * is bad when it fails twice, with a pause between.
 *
 * MAX_BADS failed writes are examined at a time.  The others wait as ranges of
 * sectors, neighbours as one, so a large bad place needs little memory.  They
 * follow when one has ended, or within a second when memory was short for all.
 */
#include "fs/data/bad_sectors.h"
#include "fs/data/failure.h"

#include <errno.h>

#include "base/msg.h"
#include "base/units.h"
#include "fs/data/file.h"

#define MAX_BADS 64u		/* most failed writes that are examined at a
				 * time */
/* Most sectors of waiting ranges that are examined as one write, which is
 * written with an iovec for each of its blocks: 4 MiB. */
#define MOST_SECTORS 8192u
#define MAX_RANGES 32u		/* bad ranges of one write, at most */
/* Most parts of one write that wait to be tried: one for each time that it is
 * halved, and a write of 1,024 blocks is a block after ten. */
#define MAX_HALVES 32u

/* Failed writes after which one try is given up, unless something shows that
 * the disk is well. */
#define MAX_FAILURES 8u
/* When memory was short another try is made this much later, if not before. */
#define MEMORY_WAIT_NS NS_PER_SECOND

static const uint8_t zeros[BLOCK_BYTES] __attribute__((aligned(4096)));

struct bad_range {
	uint64_t sector, n;
};

struct bad_write {
	struct files *files;
	struct list link;		/* in files->suspects while it waits */
	uint64_t due_ns;
	struct bad_range whole;
	unsigned failures;		/* number of tries that decided
					 * nothing */
	bool again;			/* the bad ranges are tried once more */
	struct bad_range todo[MAX_HALVES], found[MAX_RANGES];
	unsigned todo_n, found_n;
	bool some_good, too_many;
	unsigned failed;		/* failed writes of this try */
	uint64_t written_bytes;		/* bytes that the file system had
					 * written when the write failed */
	struct queue_request req;
	struct iovec iov[];
};

static void suspects_next(struct files *files)
{
	struct range r;

	if (files->fs->closing || tree_failed(files->fs->tree) ||
	    !rangeset_next(&files->unexamined, 0, &r))
		return;
	r.n = r.n < MOST_SECTORS ? r.n : MOST_SECTORS;
	/* Without memory it goes on waiting. */
	if (!rangeset_remove(&files->unexamined, r.first, r.n))
		bad_sectors_suspect(files, r.first, r.n);
}

static void bad_write_over(struct bad_write *bad)
{
	struct files *files = bad->files;

	files->bad_writes--;
	abandon_free(bad);
	suspects_next(files);
}

/* ---- Kept for good ---- */

static int bad_write_run(struct fs_txn *txn)
{
	struct bad_write *bad = txn->state;
	const struct bad_range *range = &bad->found[bad->found_n - 1];
	struct key key = key_make(0, ITEM_OWNER, addr_make(0, range->sector));
	struct owner_item owner = {
		.sectors = le64_put(range->n), .kind = OWNER_BAD,
	};
	struct tree_item item;
	int rc = tree_get(txn->tree_txn, key, &item);

	if (rc == 0)
		return -EUCLEAN;
	if (rc != -ENOENT)
		return rc;
	tree_put(txn->tree_txn, key, &owner, sizeof(owner));
	return 0;
}

static void bad_write_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct bad_write *bad = txn->state;
	const struct bad_range *range = &bad->found[bad->found_n - 1];

	(void)seq;
	if (!rc)
		msg_warn("%s: sectors %llu to %llu are bad and not used any "
			 "more", txn->fs->disk->name,
			 (unsigned long long)range->sector,
			 (unsigned long long)(range->sector + range->n - 1));
	if (!rc && --bad->found_n) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	bad_write_over(bad);
}

static const struct fs_txn_type bad_write_type = {
	.name = "bad sectors",
	.bounds = { .log_bytes = 512 },
	.paths = 2,
	.changes = 2,
	.run = bad_write_run,
	.end = bad_write_end,
};

/* ---- Which ---- */

static void bad_write_next(struct bad_write *bad);

/* Notes a bad block; adjacent ones become one range. */
static void bad_write_found(struct bad_write *bad,
			    const struct bad_range *range)
{
	struct bad_range *last = bad->found_n ?
		&bad->found[bad->found_n - 1] : NULL;

	if (last && last->sector + last->n == range->sector) {
		last->n += range->n;
		return;
	}
	if (bad->found_n == MAX_RANGES) {
		bad->too_many = true;
		return;
	}
	bad->found[bad->found_n++] = *range;
}

/* Divides a range; the first half is tried first, so bad ranges are found in
 * order. */
static void bad_write_halve(struct bad_write *bad,
			    const struct bad_range *range)
{
	uint64_t middle = (range->sector + range->n / 2) / BLOCK_SECTORS *
			  BLOCK_SECTORS;

	if (bad->again || range->n <= BLOCK_SECTORS ||
	    range->n <= bad->whole.n / MAX_RANGES || middle <= range->sector ||
	    bad->todo_n + 2 > MAX_HALVES) {
		bad_write_found(bad, range);
		return;
	}
	bad->todo[bad->todo_n++] = (struct bad_range){
		middle, range->sector + range->n - middle };
	bad->todo[bad->todo_n++] = (struct bad_range){
		range->sector, middle - range->sector };
}

/* Has every write since failed, here and elsewhere? */
static bool is_in_trouble(const struct bad_write *bad)
{
	return !bad->some_good &&
	       bad->written_bytes == bad->files->written_bytes;
}

static void bad_write_written(struct disk_request *req)
{
	struct bad_write *bad = req->owner;
	struct bad_range range = bad->todo[--bad->todo_n];

	if (req->result) {
		bad_write_halve(bad, &range);
		if (++bad->failed >= MAX_FAILURES && is_in_trouble(bad))
			bad->todo_n = bad->found_n = 0;
	} else {
		bad->some_good = true;
		space_give_back(tree_space(bad->files->fs->tree), range.sector,
				range.n);
	}
	bad_write_next(bad);
}

static void bad_write_begin(struct bad_write *bad)
{
	bad->todo[0] = bad->whole;
	bad->todo_n = 1;
	if (bad->again)
		for (bad->todo_n = 0; bad->found_n;)
			bad->todo[bad->todo_n++] = bad->found[--bad->found_n];
	bad->found_n = 0;
	bad->too_many = false;
	bad->failed = 0;
	bad_write_next(bad);
}

/* Tries again later: the disk may be in trouble now and well again then. */
static void bad_write_later(struct bad_write *bad)
{
	struct files *files = bad->files;
	uint64_t pause_ns;
	enum fault_step step = fault_next(FAULT_DATA, FAULT_MEDIA,
					  ++bad->failures, &pause_ns);

	if (step != FAULT_RELOCATE || files->fs->closing) {
		bad_write_over(bad);
		return;
	}
	bad->due_ns = env_now_ns(files->fs->env) + pause_ns;
	list_add(&files->suspects, &bad->link);
	files_wake_at(files, bad->due_ns);
}

void bads_run(struct files *files, uint64_t now_ns)
{
	bool stop = files->fs->closing || tree_failed(files->fs->tree);
	struct list *pos, *next;
	struct bad_write *bad;

	list_for_each_safe(pos, next, &files->suspects) {
		bad = list_entry(pos, struct bad_write, link);
		if (!stop && bad->due_ns > now_ns) {
			files_wake_at(files, bad->due_ns);
			continue;
		}
		list_del(&bad->link);
		if (stop)
			bad_write_over(bad);
		else
			bad_write_begin(bad);
	}
	if (!files->bad_writes)
		suspects_next(files);
}

static void bad_write_next(struct bad_write *bad)
{
	const struct bad_range *range;
	struct files *files = bad->files;
	uint64_t off, part;
	unsigned n = 0;

	if (!bad->todo_n) {
		if (is_in_trouble(bad)) {
			bad_write_later(bad);
			return;
		}
		/* The place may be bad, or the disk was in trouble, which is
		 * over now. */
		if (bad->found_n && !bad->too_many && !bad->again) {
			bad->again = true;
			bad_write_later(bad);
			return;
		}
		if (!bad->found_n || bad->too_many ||
		    fs_txn_start(files->fs, &bad_write_type, NULL, bad))
			bad_write_over(bad);
		return;
	}
	range = &bad->todo[bad->todo_n - 1];
	for (off = 0; off < range->n; off += part) {
		part = range->n - off;
		part = part < BLOCK_SECTORS ? part : BLOCK_SECTORS;
		bad->iov[n++] = (struct iovec){ (void *)zeros,
						part * SECTOR_BYTES };
	}
	bad->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE, .sector = range->sector,
			.sectors = (uint32_t)range->n, .iov = bad->iov,
			.iov_n = n, .done = bad_write_written, .owner = bad,
		},
		.class = QUEUE_WRITE_BACK,
	};
	queue_submit(files->fs->queue, &bad->req);
}

void bad_sectors_suspect(struct files *files, uint64_t sector, uint64_t n)
{
	size_t blocks = n / BLOCK_SECTORS + 1;
	struct bad_write *bad = NULL;

	if (tree_failed(files->fs->tree))
		return;
	if (files->bad_writes < MAX_BADS)
		bad = abandon_alloc(files->fs, sizeof(*bad) +
					       blocks * sizeof(bad->iov[0]));
	if (!bad) {
		/* Without memory for that either they stay taken until the next
		 * mount. */
		(void)rangeset_add(&files->unexamined, sector, n);
		files_wake_at(files,
			      env_now_ns(files->fs->env) + MEMORY_WAIT_NS);
		return;
	}
	bad->files = files;
	list_init(&bad->link);
	bad->whole = (struct bad_range){ sector, n };
	bad->written_bytes = files->written_bytes;
	files->bad_writes++;
	bad_write_begin(bad);
}
