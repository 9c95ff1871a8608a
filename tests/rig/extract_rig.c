/*
 * extract_rig.c - see extract_rig.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/list.h"
#include "diskmodel/spec.h"
#include "extract/probe/phase.h"
#include "sim/drive.h"
#include "tests/rig/extract_rig.h"
#include "tests/rig/test.h"

#define DEPTH_MAX 64u		/* most reads that the drive has at once */

static double uniform(struct extract_rig *rig)
{
	return (double)(test_random(&rig->seed) >> 11) * 0x1p-53;
}

static uint64_t noise_ns(struct extract_rig *rig)
{
	double ns = 30000;

	if (rig->quiet)
		return 0;
	for (unsigned i = 0; i < 12; i++)
		ns += 8000 * (uniform(rig) - 0.5);
	ns -= 20000 * log(1 - uniform(rig));
	if (uniform(rig) < 0.01)
		ns += 100000 + 2900000 * uniform(rig);
	return ns > 0 ? (uint64_t)ns : 0;
}

struct one {
	struct disk_request req;
	struct iovec iov;
	bool done;
};

static void one_done(struct disk_request *req)
{
	container_of(req, struct one, req)->done = true;
}

static void submit(struct extract_rig *rig, struct one *o,
		   const struct probe_access *a)
{
	o->iov = (struct iovec){ rig->buf, a->sectors * SECTOR_BYTES };
	o->req = (struct disk_request){
		.op = DISK_READ, .sector = a->sector, .sectors = a->sectors,
		.iov = &o->iov, .iov_n = 1, .done = one_done,
	};
	o->done = false;
	disk_submit(sim_disk(rig->sim), &o->req);
}

static int rig_access(struct prober *prober, struct probe_access *access,
		      unsigned n, unsigned depth)
{
	struct extract_rig *rig = container_of(prober, struct extract_rig,
					       prober);
	struct one o[DEPTH_MAX];
	unsigned at_once = depth < DEPTH_MAX ? depth : DEPTH_MAX;

	for (unsigned i = 0; i < n; i += at_once) {
		unsigned k = n - i < at_once ? n - i : at_once;
		uint64_t latest = 0;

		if (access[i].not_before_ns > sim_now_ns(rig->sim))
			sim_advance(rig->sim, access[i].not_before_ns -
					      sim_now_ns(rig->sim));
		for (unsigned j = 0; j < k; j++)
			submit(rig, &o[j], &access[i + j]);
		sim_drain(rig->sim);
		for (unsigned j = 0; j < k; j++) {
			struct probe_access *a = &access[i + j];

			a->submit_ns = o[j].req.submit_ns;
			a->complete_ns = o[j].req.complete_ns + noise_ns(rig);
			a->result = o[j].req.result;
			latest = a->complete_ns > latest ? a->complete_ns :
							   latest;
		}
		if (latest > sim_now_ns(rig->sim))
			sim_advance(rig->sim, latest - sim_now_ns(rig->sim));
	}
	prober->accesses += n;
	return rig->stop_at && prober->accesses >= rig->stop_at ? -EINTR : 0;
}

int extract_rig_init(struct extract_rig *rig, const struct spec *spec,
		     uint64_t seed)
{
	struct sim_options o = { .seed = seed };

	*rig = (struct extract_rig){
		.seed = seed,
		/* Some bring their own. */
		.quiet = spec->noise.normal_ns || spec->noise.exponential_ns,
	};
	rig->sim = sim_new(spec, 0, &o);
	rig->buf = aligned_alloc(4096, 1 << 20);
	if (!rig->sim || !rig->buf)
		return -ENOMEM;
	rig->prober.env = sim_env(rig->sim);
	rig->prober.limits = &sim_disk(rig->sim)->limits;
	rig->prober.access = rig_access;
	return 0;
}

void extract_rig_fini(struct extract_rig *rig)
{
	sim_free(rig->sim);
	free(rig->buf);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double turns(angle a)
{
	return a * 0x1p-32;
}

/* The 99th percentile of how far angles are off, but for a constant. */
static double p99(double *off, size_t n)
{
	double base, mean = 0;

	if (!n)
		return 0;
	base = off[0];
	for (size_t i = 0; i < n; i++) {
		off[i] = phase_wrap(off[i] - base);
		mean += off[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++)
		off[i] = fabs(off[i] - mean);
	qsort(off, n, sizeof(*off), compare);
	return off[n * 99 / 100];
}

void extract_rig_judge(const struct extract_rig *rig, const struct geom *geom,
		       struct extract_verdict *verdict)
{
	const struct geom *truth = drive_geom(sim_drive(rig->sim));
	uint64_t tracks = geom_tracks(geom), each = tracks / 20000 + 1;
	double *off = calloc(tracks / each + 1, sizeof(*off));
	struct geom_track a, b;
	size_t n = 0;

	*verdict = (struct extract_verdict){
		.tracks = geom_tracks(truth), .sectors = geom_sectors(truth),
	};
	for (uint64_t i = 0; i < tracks; i++) {
		geom_track_at(geom, i, &a);
		if (!a.known) {
			verdict->unknown_sectors += a.sectors;
			continue;
		}
		geom_track_of(truth, a.first, &b);
		if (a.first != b.first || a.sectors != b.sectors) {
			if (!verdict->wrong++)
				verdict->first_wrong = a.first;
		} else if (off && i % each == 0) {
			off[n++] = turns(a.start - b.start);
		}
	}
	if (off)
		verdict->angle_p99 = p99(off, n);
	free(off);
}
