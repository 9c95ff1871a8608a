/*
 * scan_control.c - a program's hold on its scan: on a mount that reads nothing
 * for scans by itself (quiet=) data comes once the scan is promoted, stops when
 * it is paused, and all of it comes after it was resumed.  By libtrax.sh:
 *
 *	scan_control PATH
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include <trax.h>

#define LIMIT_SECONDS 120
#define STATUSES 3		/* 1.5 s of silence */

static uint64_t data_bytes, whole_files, files;

static struct trax_record next_record(struct trax_scan *scan)
{
	struct trax_record r;

	if (trax_scan_next(scan, &r) != 1)
		errx(1, "the scan is over too early");
	if (r.type == TRAX_DATA)
		data_bytes += r.bytes;
	else if (r.type == TRAX_WHOLE)
		whole_files++;
	else if (r.type != TRAX_STATUS)
		errx(1, "%s: record %d, error %d", r.path, r.type, r.error);
	if (r.type == TRAX_STATUS)
		files = r.status.files;
	return r;
}

/* Returns after STATUSES statuses in a row that no data came between. */
static void wait_for_silence(struct trax_scan *scan)
{
	int statuses = 0;

	while (statuses < STATUSES)
		statuses = next_record(scan).type == TRAX_STATUS ?
				   statuses + 1 : 0;
}

static void until_the_end(struct trax_scan *scan)
{
	struct trax_record r;
	int rc;

	while ((rc = trax_scan_next(scan, &r)) == 1)
		if (r.type == TRAX_DATA)
			data_bytes += r.bytes;
		else if (r.type == TRAX_WHOLE)
			whole_files++;
	if (rc)
		errx(1, "the scan ends with %d", rc);
}

int main(int argc, char **argv)
{
	const struct trax_scan_options options = { 0 };
	struct trax_scan *scan;
	uint64_t before;

	if (argc != 2)
		errx(2, "usage: scan_control PATH");
	alarm(LIMIT_SECONDS);
	if (trax_scan_new(argv[1], &options, &scan))
		errx(1, "no scan");
	wait_for_silence(scan);
	if (data_bytes)
		errx(1, "data came before the scan was promoted");
	if (trax_scan_promote(scan, 4))
		errx(1, "promote");
	while (!data_bytes)
		next_record(scan);
	if (trax_scan_pause(scan))
		errx(1, "pause");
	wait_for_silence(scan);
	before = data_bytes;
	if (whole_files == files)
		errx(1, "all had come before the pause");
	if (trax_scan_resume(scan))
		errx(1, "resume");
	until_the_end(scan);
	if (data_bytes == before || whole_files != files)
		errx(1, "%llu of %llu files, %llu bytes after the pause",
		     (unsigned long long)whole_files,
		     (unsigned long long)files,
		     (unsigned long long)(data_bytes - before));
	trax_scan_free(scan);
	printf("%llu bytes before the pause, %llu after\n",
	       (unsigned long long)before,
	       (unsigned long long)(data_bytes - before));
	return 0;
}
