/*
 * super_root.c - superblocks, roots, and the payload of the best root.
 *
 * The best superblock is the good one with the highest version; the best root
 * is the good one with the highest generation. Copies that differ from the best
 * are rewritten at once when that is allowed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/csum.h"
#include "check/scan/check_internal.h"
#include "fs/drive/profile_load.h"

/* A super-root record that claims more than this is damaged; a round number. */
#define MAX_PAYLOAD_BYTES (1u << 30)

static struct problem_place at_sector(uint64_t sector)
{
	return (struct problem_place){ .sector = sector };
}

/* ---- Superblocks ---- */

static const char *super_read(struct check *check, uint64_t sector, void *buf,
			      struct super *super)
{
	if (device_read(check, sector, TRAX_BLOCK_SECTORS, buf))
		return "cannot be read";
	return super_decode(buf, sector, super);
}

/* The first place says where the others are; if it is bad they are where a new
 * file system of the device's size has them.  Returns what is wrong with the
 * first bad one. */
static const char *super_find(struct check *check, void *buf, bool *have)
{
	const char *first = super_read(check, TRAX_SUPER_SECTOR, buf,
				       &check->super);
	struct super super;
	uint64_t place[3];
	unsigned i;

	*have = !first;
	if (*have)
		super_places(&check->super, place);
	else
		super_usual_places(check->disk->limits.sectors, place);
	for (i = 1; i < 3; i++) {
		const char *why = super_read(check, place[i], buf, &super);

		if (!first)
			first = why;
		if (why || (*have && super.version <= check->super.version))
			continue;
		check->super = super;
		*have = true;
	}
	return first;
}

/* Copies that differ after a crash are no damage: the next mount writes them
 * all. */
static void super_copies(struct check *check)
{
	uint8_t *buf = device_buffer(check, 2 * TRAX_BLOCK_BYTES);
	uint8_t *want = buf + TRAX_BLOCK_BYTES;
	bool crashed = check->have_root && !check->root.clean;
	uint64_t place[3];
	unsigned i;

	if (!buf)
		return;
	super_places(&check->super, place);
	for (i = 0; i < 3; i++) {
		struct super super;
		const char *why = super_read(check, place[i], buf, &super);

		super_encode(&check->super, place[i], want);
		if (!why && !(crashed && super.version <
					 check->super.version) &&
		    memcmp(buf, want, TRAX_BLOCK_BYTES))
			why = "is older than another copy";
		if (why && problem_report(check, PROBLEM_SUPER_COPY,
					  at_sector(place[i]),
					  (unsigned long long)place[i], why))
			device_write(check, place[i], TRAX_BLOCK_SECTORS,
				     want);
	}
	free(buf);
}

static int super_fits(struct check *check)
{
	const struct super *super = &check->super;
	uint64_t unknown = super->ro_compat & ~TRAX_RO_COMPAT_KNOWN;

	if (super->sectors > check->disk->limits.sectors) {
		problem_report(check, PROBLEM_DEVICE_SMALL, at_sector(0),
			       (unsigned long long)super->sectors,
			       (unsigned long long)check->disk->limits.sectors);
		return -EFBIG;
	}
	/* A newer version may have set up structures that this one would
	 * break. */
	if (unknown) {
		problem_report(check, PROBLEM_SUPER_FEATURE, at_sector(0),
			       (unsigned long long)unknown);
		return -EINVAL;
	}
	return 0;
}

int super_root_load_super(struct check *check)
{
	uint8_t *buf = device_buffer(check, TRAX_BLOCK_BYTES);
	bool have = false;
	const char *why;
	int rc;

	if (!buf)
		return -ENOMEM;
	why = super_find(check, buf, &have);
	if (have) {
		memcpy(&check->fsid, check->super.uuid, sizeof(check->fsid));
		check->fsid = le64toh(check->fsid);
		rc = super_fits(check);
	} else {
		problem_report(check, PROBLEM_SUPER_NONE, at_sector(0), why);
		rc = -EINVAL;
	}
	free(buf);
	return rc;
}

static int super_root_write_super(struct check *check)
{
	uint8_t *buf = device_buffer(check, TRAX_BLOCK_BYTES);
	uint64_t place[3];
	unsigned i, good = 0;
	int rc = 0;

	if (!buf)
		return -ENOMEM;
	check->super.version++;
	super_places(&check->super, place);
	for (i = 0; i < 3; i++) {
		super_encode(&check->super, place[i], buf);
		rc = device_write(check, place[i], TRAX_BLOCK_SECTORS, buf);
		if (rc && !device_place_failed(rc))
			break;
		good += !rc;
	}
	free(buf);
	return rc && !good ? rc : device_flush(check);
}

/* ---- Geometry ---- */

static const char *geom_read(struct check *check, struct geom **geom)
{
	const struct super *super = &check->super;
	uint64_t sectors = profile_record_sectors(super);
	uint8_t *buf = device_buffer(check, sectors * SECTOR_BYTES);
	struct profile *profile;
	const char *why = NULL;

	if (!buf)
		return "out of memory";
	if (device_read(check, super->geom_sector, sectors, buf))
		why = "cannot be read";
	else if (csum(buf, super->geom_bytes) != super->geom_csum)
		why = "checksum is wrong";
	else if (profile_record_decode(super, buf, &profile))
		why = "contradicts itself";
	free(buf);
	if (!why) {
		*geom = profile->geom;
		profile->geom = NULL;
		profile_free(profile);
	}
	return why;
}

/* The geometry is advice: without it regular tracks do as well. */
static void super_root_geometry(struct check *check)
{
	struct super *super = &check->super;
	const char *why;

	if (!super->geom_sector)
		return;
	why = geom_read(check, &check->geom);
	if (!why || check->rc)
		return;
	if (!problem_report(check, PROBLEM_GEOMETRY,
			    at_sector(super->geom_sector), why))
		return;
	/* Its sectors lose their owner with the next new tree; the second check
	 * reports that and asks for one. */
	super->geom_sector = 0;
	super->geom_bytes = 0;
	super->geom_csum = 0;
	super->room_sector = 0;
	super->room_sectors = 0;
	if (super->pseudo_track_sectors < 64)
		super->pseudo_track_sectors = 2048;
	super_root_write_super(check);
}

/* ---- Roots ---- */

struct root_copy {
	const char *why;	/* why it is bad; NULL: it is good */
	struct root root;
	uint64_t sector;
};

/* A copy that is no good may have been the newest root: the log tells. */
static void root_read(struct check *check, struct root_copy copy[4], void *buf)
{
	bool blank;
	unsigned i;

	check->roots_doubted = false;
	for (i = 0; i < 4; i++) {
		struct root_copy *c = &copy[i];

		c->sector = check->super.area_sector[i / 2][i % 2];
		if (device_read(check, c->sector, TRAX_BLOCK_SECTORS, buf)) {
			c->why = "cannot be read";
			blank = false;
		} else {
			c->why = root_decode(buf, check->super.uuid, c->sector,
					     &c->root);
			blank = root_is_blank(buf);
		}
		check->roots_doubted |= c->why && !blank;
	}
}

/* Index of the best copy; -1: none. */
static int root_choose(const struct root_copy copy[4])
{
	int best = -1;
	int i;

	for (i = 0; i < 4; i++)
		if (!copy[i].why && (best < 0 ||
				     copy[i].root.gen > copy[best].root.gen))
			best = i;
	return best;
}

static uint64_t payload_bytes(const struct root *root)
{
	return (uint64_t)root->slotmap_bytes + root->group_bytes;
}

static uint64_t payload_sectors(const struct root *root)
{
	return (payload_bytes(root) + TRAX_BLOCK_BYTES - 1) /
	       TRAX_BLOCK_BYTES * TRAX_BLOCK_SECTORS;
}

static const char *payload_read(struct check *check, const struct root *root,
				uint64_t sector, uint8_t **payload)
{
	uint64_t bytes = payload_bytes(root);
	const char *why = NULL;

	if (bytes > MAX_PAYLOAD_BYTES ||
	    payload_sectors(root) + TRAX_BLOCK_SECTORS >
	    check->super.area_sectors)
		return "does not fit its area";
	*payload = device_buffer(check, payload_sectors(root) * SECTOR_BYTES);
	if (!*payload)
		return "out of memory";
	if (device_read(check, sector + TRAX_BLOCK_SECTORS,
			payload_sectors(root), *payload))
		why = "cannot be read";
	else if (csum(*payload, bytes) != root->payload_csum)
		why = "checksum is wrong";
	if (why) {
		free(*payload);
		*payload = NULL;
	}
	return why;
}

static int root_copy_write(struct check *check, const struct root *root,
			   uint64_t sector, const void *payload)
{
	uint64_t bytes = payload_sectors(root) * SECTOR_BYTES;
	uint8_t *buf = device_buffer(check, TRAX_BLOCK_BYTES + bytes);
	int rc;

	if (!buf)
		return -ENOMEM;
	root_encode(root, check->super.uuid, sector, buf);
	memcpy(buf + TRAX_BLOCK_BYTES, payload, bytes);
	rc = device_write(check, sector,
			  (TRAX_BLOCK_BYTES + bytes) / SECTOR_BYTES, buf);
	free(buf);
	return rc;
}

/* The two copies of the chosen area must be alike. */
static void root_copies(struct check *check, const struct root_copy *copy)
{
	const char *why[2] = { NULL, NULL };
	uint8_t *payload[2] = { NULL, NULL };
	bool good[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		good[i] = !copy[i].why && copy[i].root.gen == check->root.gen;
		why[i] = payload_read(check, &check->root, copy[i].sector,
				      &payload[i]);
	}
	check->payload = payload[0] ? payload[0] : payload[1];
	if (payload[0])
		free(payload[1]);
	if (!check->payload) {
		problem_report(check, PROBLEM_PAYLOAD, at_sector(0),
			       (unsigned long long)check->root.gen, why[0]);
		return;
	}
	/* A crash between the two copies is no damage. */
	if (!check->root.clean)
		return;
	for (i = 0; i < 2; i++) {
		bool repair = false;

		if (!good[i])
			repair = problem_report(
				check, PROBLEM_ROOT_COPY,
				at_sector(copy[i].sector),
				(unsigned long long)copy[i].sector,
				copy[i].why ? copy[i].why : "is older");
		else if (why[i])
			repair = problem_report(
				check, PROBLEM_PAYLOAD_COPY,
				at_sector(copy[i].sector),
				(unsigned long long)copy[i].sector, why[i]);
		if (repair)
			root_copy_write(check, &check->root, copy[i].sector,
					check->payload);
	}
}

int super_root_best_root(struct check *check, struct root *root)
{
	uint8_t *buf = device_buffer(check, TRAX_BLOCK_BYTES);
	struct root_copy copy[4];
	int best;

	if (!buf)
		return -ENOMEM;
	root_read(check, copy, buf);
	free(buf);
	best = root_choose(copy);
	if (best < 0)
		return -ENOENT;
	*root = copy[best].root;
	return 0;
}

int super_root_load_root(struct check *check)
{
	uint8_t *buf = device_buffer(check, TRAX_BLOCK_BYTES);
	struct root_copy copy[4];
	int best;

	if (!buf)
		return -ENOMEM;
	super_root_geometry(check);
	root_read(check, copy, buf);
	free(buf);
	best = root_choose(copy);
	if (best >= 0) {
		check->have_root = true;
		check->root = copy[best].root;
	}
	super_copies(check);
	if (best < 0) {
		problem_report(check, PROBLEM_ROOT_NONE, at_sector(0),
			       copy[0].why);
		return check->rc;
	}
	check->area = (unsigned)best / 2;
	root_copies(check, &copy[best & ~1]);
	return check->rc;
}

int super_root_write_root(struct check *check, unsigned area,
		      const struct root *root, const void *payload)
{
	unsigned i, good = 0;
	int rc = 0, flushed;

	for (i = 0; i < 2; i++) {
		const uint64_t sector = check->super.area_sector[area][i];
		const int written = root_copy_write(check, root, sector,
						    payload);

		if (written && !device_place_failed(written))
			return check_fail(check, written);
		if (written)
			rc = written;
		else
			good++;
		flushed = device_flush(check);
		if (flushed)
			return check_fail(check, flushed);
	}
	return good ? check->rc : check_fail(check, rc);
}

void super_root_free(struct check *check)
{
	free(check->payload);
	check->payload = NULL;
	check->have_root = false;
	geom_free(check->geom);
	check->geom = NULL;
}
