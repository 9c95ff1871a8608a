/*
 * prober_disk.c - accesses handed over by hand.
 *
 * The time of a completion is the back end's, taken before anything else is
 * done; the next access is handed over straight after it.  Waiting for a moment
 * sleeps up to shortly before it and looks at the clock for the rest: a real
 * timer wakes late.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "extract/probe/prober_disk.h"

#define SPIN_NS 100000u
#define ALIGN 4096u
/* After so many errors one after another, and nothing else, it is looked for in
 * so many places: who measures may have come back to one that is bad. */
#define GONE_ERRORS 64u
#define GONE_PLACES 8u

/* One of those outstanding. */
struct slot {
	struct disk_request req;
	struct iovec iov;
	struct probe_access *access;
	void *buf;
	size_t bytes;
	bool busy;
	struct prober_disk *prober;
};

struct prober_disk {
	struct prober prober;
	struct disk *disk;
	const volatile sig_atomic_t *stop;
	bool scratch;
	struct slot *slots;
	unsigned slots_n, busy;
	unsigned errors;	/* in a row */
};

static void slot_done(struct disk_request *req)
{
	struct slot *slot = container_of(req, struct slot, req);
	struct probe_access *a = slot->access;

	a->submit_ns = req->submit_ns;
	a->complete_ns = req->complete_ns;
	a->result = req->result;
	slot->busy = false;
	slot->prober->busy--;
	slot->prober->errors = req->result ? slot->prober->errors + 1 : 0;
}

static int slot_room(struct slot *slot, size_t bytes)
{
	if (slot->bytes >= bytes)
		return 0;
	free(slot->buf);
	slot->bytes = 0;
	slot->buf = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
	if (!slot->buf)
		return -ENOMEM;
	memset(slot->buf, 0, bytes);
	slot->bytes = bytes;
	return 0;
}

static int slots_room(struct prober_disk *p, unsigned depth)
{
	struct slot *slots;

	if (p->slots_n >= depth)
		return 0;
	slots = realloc(p->slots, depth * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots + p->slots_n, 0, (depth - p->slots_n) * sizeof(*slots));
	p->slots = slots;
	p->slots_n = depth;
	return 0;
}

/* Why an access can't be done; 0: it can. */
static int unfit(const struct prober_disk *p, const struct probe_access *a)
{
	const struct disk_limits *l = p->prober.limits;
	uint32_t unit = l->logical_bytes / SECTOR_BYTES;

	if (a->sector % unit || a->sectors % unit)
		return -EINVAL;
	if (!a->sectors || a->sectors > l->max_sectors ||
	    a->sector >= l->sectors || a->sectors > l->sectors - a->sector)
		return -EINVAL;
	if (a->write && (!p->scratch || l->read_only))
		return -EROFS;
	return 0;
}

static int submit(struct prober_disk *p, struct slot *slot,
		  struct probe_access *a)
{
	size_t bytes = (size_t)a->sectors * SECTOR_BYTES;
	int err = slot_room(slot, bytes);

	if (err)
		return err;
	slot->prober = p;
	slot->access = a;
	slot->iov = (struct iovec){ slot->buf, bytes };
	slot->req = (struct disk_request){
		.op = a->write ? DISK_WRITE : DISK_READ,
		.fua = a->write,
		.sector = a->sector,
		.sectors = a->sectors,
		.iov = &slot->iov,
		.iov_n = 1,
		.done = slot_done,
	};
	slot->busy = true;
	p->busy++;
	p->prober.accesses++;
	disk_submit(p->disk, &slot->req);
	return 0;
}

static void wait_until(struct prober_disk *p, uint64_t at_ns)
{
	struct env *env = p->prober.env;
	uint64_t now_ns;

	while ((now_ns = env_now_ns(env)) < at_ns) {
		if (p->stop && *p->stop)
			return;
		if (env != env_real())
			env_wait(env, at_ns - now_ns);
		else if (at_ns - now_ns > SPIN_NS)
			env_wait(env, at_ns - now_ns - SPIN_NS);
	}
}

static int wait_one(struct prober_disk *p)
{
	int rc = disk_poll(p->disk, -1);

	return rc < 0 && rc != -EINTR ? rc : 0;
}

static struct slot *free_slot(struct prober_disk *p)
{
	unsigned i = 0;

	while (p->slots[i].busy)
		i++;
	return &p->slots[i];
}

/* Why the measuring has to end; 0: it has not. */
static int verdict(const struct prober_disk *p)
{
	return p->stop && *p->stop ? -EINTR : 0;
}

/* Can it still be read anywhere? */
static int look_for_it(struct prober_disk *p)
{
	uint32_t unit = p->prober.limits->physical_bytes / SECTOR_BYTES;
	uint64_t each = p->prober.limits->sectors / GONE_PLACES;
	int err = slots_room(p, 1);

	for (unsigned i = 0; i < GONE_PLACES && !err; i++) {
		struct probe_access a = {
			.sector = (i * each + each / 2) / unit * unit,
			.sectors = unit,
		};

		if (unfit(p, &a))
			continue;
		err = submit(p, free_slot(p), &a);
		while (!err && p->busy)
			err = wait_one(p);
		if (!p->errors)
			return 0;
	}
	return err ? err : -ENODEV;
}

static int one(struct prober_disk *p, struct probe_access *a, unsigned depth)
{
	int err = 0;

	a->result = unfit(p, a);
	if (a->result)
		return a->result == -EROFS ? -EROFS : 0;
	while (!err && p->busy >= depth)
		err = wait_one(p);
	if (!err)
		err = verdict(p);
	if (err)
		return err;
	if (a->not_before_ns)
		wait_until(p, a->not_before_ns);
	return submit(p, free_slot(p), a);
}

static int prober_disk_access(struct prober *prober,
			      struct probe_access *access, unsigned n,
			      unsigned depth)
{
	struct prober_disk *p = container_of(prober, struct prober_disk,
					     prober);
	int err = slots_room(p, depth ? depth : 1), rc;

	for (unsigned i = 0; !err && i < n; i++)
		err = one(p, &access[i], depth ? depth : 1);
	/* Whatever happened: what is outstanding points at the accesses. */
	while (p->busy) {
		rc = wait_one(p);
		if (rc)
			return rc;
	}
	if (!err && p->errors > GONE_ERRORS)
		err = look_for_it(p);
	return err ? err : verdict(p);
}

struct prober *prober_disk_new(struct env *env, struct disk *disk,
			       bool scratch, const volatile sig_atomic_t *stop)
{
	struct prober_disk *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->prober.env = env;
	p->prober.limits = &disk->limits;
	p->prober.access = prober_disk_access;
	p->disk = disk;
	p->scratch = scratch;
	p->stop = stop;
	return &p->prober;
}

void prober_disk_free(struct prober *prober)
{
	struct prober_disk *p;

	if (!prober)
		return;
	p = container_of(prober, struct prober_disk, prober);
	for (unsigned i = 0; i < p->slots_n; i++)
		free(p->slots[i].buf);
	free(p->slots);
	free(p);
}
