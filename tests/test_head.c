/*
 * test_head.c - what is believed of the head, over simulated drives in virtual
 * time: found out from ordinary reads, given up when it is wrong.
 */
#include <string.h>

#include "base/msg.h"
#include "bench/rig.h"
#include "tests/test.h"

static struct rig rig;

static const char *drive_path(const char *name)
{
	static char path[4096];
	const char *top = getenv("top_srcdir");

	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : ".",
		 name);
	return path;
}

static void open_rig(const char *drive, bool blind,
		     void (*doubt)(struct spec *, struct spec *, void *))
{
	struct rig_options options = {
		.drive = drive_path(drive),
		.seed = 7,
		.blind = blind,
		.doubt = doubt,
	};

	ck_assert_int_eq(rig_open(&options, &rig), 0);
}

static struct rig_result run(unsigned clients, uint32_t sectors,
			     unsigned read_percent, uint64_t requests)
{
	struct rig_load load = {
		.clients = clients,
		.sectors = sectors,
		.read_percent = read_percent,
		.requests = requests,
		.seed = 3,
	};
	struct rig_result result;

	ck_assert_int_eq(rig_run(&rig, &load, &result), 0);
	return result;
}

static struct head_stats stats(void)
{
	struct head_stats s;

	head_get_stats(rig.head, &s);
	return s;
}


/* ---- beliefs that are off ---- */

static void skew_by_a_sector(struct spec *is, struct spec *believed, void *arg)
{
	size_t i;

	(void)is;
	(void)arg;
	for (i = 0; i < believed->zones_n; i++)
		believed->zones[i].track_skew += (angle)(UINT64_C(0x100000000) /
				believed->zones[i].around[0]);
}

static void bound_by_a_cylinder(struct spec *is, struct spec *believed,
				void *arg)
{
	size_t i;

	(void)is;
	(void)arg;
	for (i = 0; i + 1 < believed->zones_n; i++) {
		believed->zones[i].last_cylinder++;
		believed->zones[i + 1].first_cylinder++;
	}
}

static void spindle_fast(struct spec *is, struct spec *believed, void *arg)
{
	(void)believed;
	(void)arg;
	is->mech.period_ps -= is->mech.period_ps * 3 / 1000;
}

static void slip_unlisted(struct spec *is, struct spec *believed, void *arg)
{
	struct spec_list *slips = &believed->zones[0].slips;
	size_t i;

	(void)arg;
	(void)slips;
	(void)believed;
	for (i = 0; i < is->zones_n; i++) {
		slips = &is->zones[i].slips;
		slips->v = realloc(slips->v, (slips->n + 1) * sizeof(*slips->v));
		memmove(slips->v + 1, slips->v, slips->n * sizeof(*slips->v));
		slips->v[0] = 100;
		slips->n++;
	}
}

START_TEST(test_x)
{
	static const char *const drives[]={"atlas-10k","modern"};
	for (unsigned d=0; d<2; d++) for (unsigned c=1;c<=64;c*=8) {
		struct rig_result a,b; struct head_stats s;
		struct rig_options options = {
		.drive = drive_path(drives[d]),
		.seed = 7, .flat=true, .blind=true,.depth=32
		};

	ck_assert_int_eq(rig_open(&options, &rig), 0);
		a=run(c,8,67,3000); rig_close(&rig);
		options.blind=false;
	ck_assert_int_eq(rig_open(&options, &rig), 0);
		b=run(c,8,67,3000); s=stats();
		printf("%-14s c=%2u blind %.4f head %.4f %.3f| mode %d r%d w%d obs %lu gated %lu reacq %lu ref %lu | pred %lu wrong %lu miss %lu hits %lu guard %lu oh %lu| w pred %lu wrong %lu miss %lu guard %lu hits %lu\n",drives[d],c,a.ns/1e9,b.ns/1e9,1.0*b.ns/a.ns,s.mode,s.read.on,s.write.on,s.observed,s.gated,s.reacquired,s.references,s.read.predictions,s.read.wrong,s.read.misses,s.read.hits,s.read.guard_ns/1000,s.read.overhead_ns/1000,s.write.predictions,s.write.wrong,s.write.misses,s.write.guard_ns/1000,s.write.hits);
		rig_close(&rig);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("head");
	TCase *tc = tcase_create("head");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, test_x);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
