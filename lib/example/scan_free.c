/*
 * scan_free.c - reads the free space of a traxfs in the time in which the
 * disk's platter would turn for nothing, and prints where it cannot be read:
 *
 *	cc scan_free.c $(pkg-config --cflags --libs libtrax) -o scan_free
 *	scan_free /srv /var/lib/scan_free
 *
 * What was broken off goes on where the cursor, the second argument, says.
 * Exits with 1 if something cannot be read, 2 after an error.
 */
#include <stdio.h>
#include <string.h>

#include <trax.h>

int main(int argc, char **argv)
{
	struct trax_scan_options options = { .flags = TRAX_FREE_SPACE };
	unsigned long long read = 0, bad = 0;
	struct trax_scan *scan;
	struct trax_record r;
	int rc;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: scan_free PATH [CURSOR]\n");
		return 2;
	}
	options.cursor = argc > 2 ? argv[2] : NULL;
	rc = trax_scan_new(argv[1], &options, &scan);
	if (rc) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
		return 2;
	}
	while ((rc = trax_scan_next(scan, &r)) == 1) {
		if (r.type == TRAX_DATA) {
			read += r.bytes;
		} else if (r.type == TRAX_ERROR) {
			printf("bad: %llu bytes at %llu\n",
			       (unsigned long long)r.bytes,
			       (unsigned long long)r.offset);
			bad += r.bytes;
		}
	}
	trax_scan_free(scan);
	if (rc) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
		return 2;
	}
	printf("%llu bytes were read, %llu cannot be\n", read, bad);
	return bad > 0;
}
