/*
 * mirrors.c - the second copies of nodes.
 *
 * The walk reads a mirror only where the node itself is bad.  All others are
 * noted and verified behind it in order of address, since a checkpoint writes
 * mirrors one behind the other, whatever nodes they are of.
 */
#include <errno.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/scan/check_internal.h"

#define BATCH 64u	/* Nodes that are read together: 1 MiB. */

struct mirror {
	uint64_t sector;	/* sector of the mirror */
	uint64_t node;		/* sector of the node */
	uint64_t csum;		/* checksum of both */
};

void mirrors_begin(struct check *check)
{
	vec_init(&check->mirrors, sizeof(struct mirror));
}

void mirrors_free(struct check *check)
{
	vec_fini(&check->mirrors);
}

void mirrors_note(struct check *check, const struct node_ptr *ptr)
{
	struct mirror *mirror = check_add(check, &check->mirrors);

	if (mirror)
		*mirror = (struct mirror){
			addr_sector(ptr->addr2), addr_sector(ptr->addr),
			ptr->csum,
		};
}

static int mirror_cmp(const void *a, const void *b)
{
	const struct mirror *x = a, *y = b;

	return sort_order(x->sector, y->sector);
}

const char *mirrors_damage(const void *node, int rc, uint64_t sum)
{
	if (rc == -ERANGE)
		return "lies outside the device";
	if (rc)
		return "cannot be read";
	return csum(node, TRAX_NODE_BYTES) == sum ? NULL :
						    "checksum is wrong";
}

void mirrors_repair(struct check *check, uint64_t sector, const void *node,
		    const char *why)
{
	struct problem_place place = { .sector = sector };

	/* Writing the same bytes where this tree keeps them is always safe. */
	if (problem_report(check, PROBLEM_NODE_MIRROR, place,
			   (unsigned long long)sector, why) &&
	    device_write(check, sector, TRAX_NODE_SECTORS, node))
		check->rewrite = true;
}

static void mirror_bad(struct check *check, const struct mirror *mirror,
		       const char *why, void *buf)
{
	int rc = device_read(check, mirror->node, TRAX_NODE_SECTORS, buf);

	if (mirrors_damage(buf, rc, mirror->csum))
		return;
	mirrors_repair(check, mirror->sector, buf, why);
}

/* Reads and verifies mirrors[0 .. n), which are sorted by address. */
static void batch_verify(struct check *check, const struct mirror *mirrors,
			 size_t n, uint8_t *buf)
{
	struct device_read reads[BATCH];
	size_t i;

	for (i = 0; i < n; i++)
		reads[i] = (struct device_read){
			.sector = mirrors[i].sector,
			.sectors = TRAX_NODE_SECTORS,
			.buf = buf + i * TRAX_NODE_BYTES,
		};
	device_read_many(check, reads, n);
	for (i = 0; i < n && !check->rc; i++) {
		const char *why = mirrors_damage(reads[i].buf, reads[i].rc,
						 mirrors[i].csum);

		if (why)
			mirror_bad(check, &mirrors[i], why, reads[i].buf);
	}
}

void mirrors_verify(struct check *check)
{
	const struct mirror *mirrors;
	uint8_t *buf = device_buffer(check, (size_t)BATCH * TRAX_NODE_BYTES);
	size_t i, n;

	if (!buf)
		return;
	vec_sort(&check->mirrors, mirror_cmp);
	mirrors = check->mirrors.items;
	for (i = 0; i < check->mirrors.n && !check->rc; i += n) {
		n = check->mirrors.n - i < BATCH ? check->mirrors.n - i : BATCH;
		batch_verify(check, mirrors + i, n, buf);
		check_progress(check, "mirrors", i + n, check->mirrors.n);
	}
	free(buf);
}
