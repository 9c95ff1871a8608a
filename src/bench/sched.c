/*
 * sched.c - the table of experiments.
 */
#include <stddef.h>
#include <string.h>

#include "bench/sched.h"

const struct sched_experiment sched_table[] = {
	{ "free", "scans in the gaps of a foreground", sched_free },
	{ "scan", "a file scan beside clients (OSDI 2000, section 6)",
	  sched_scan },
	{ "pass", "random reads beside the scrub of a full file system",
	  sched_pass },
	{ "files", "the file system on a known drive, and blind", sched_files },
	{ "place", "files in a used file system: places chosen late, or fixed",
	  sched_place },
	{ "gap_writeback", "write-back in the gaps of random reads, and not",
	  sched_gap_writeback },
	{ "reads", "small random reads, ordered by the queue or by the drive",
	  sched_reads },
	{ "streams", "several readers, each reading on", sched_streams },
	{ "deadlines", "video streams that must be served in time",
	  sched_deadlines },
	{ "mix", "eight kinds of load beside each other", sched_mix },
	{ "segments", "segments of a log: what their size and place cost",
	  sched_segments },
	{ "age", "a month of use, against a fresh file system", sched_age },
	{ "clean", "a used file system, and one that is cleaned for nothing",
	  sched_clean },
	{ "postmark", "small files in 100 directories: what metadata costs",
	  sched_postmark },
	{ "fsync", "fsync of 4 KB appends, in revolutions", sched_fsync },
	{ "unpack", "a tree of small files, with sync", sched_unpack },
	{ "tpcb", "transactions on the log, and on others", sched_tpcb },
	{ "recover", "a mount after a crash, with a full log", sched_recover },
	{ "scale", "few inodes and many, an empty disk and a full one",
	  sched_scale },
	{ "cut", "others beside the end of a file of very many extents",
	  sched_cut },
	{ NULL, NULL, NULL },
};

const struct sched_experiment *sched_find(const char *name)
{
	const struct sched_experiment *experiment;

	for (experiment = sched_table; experiment->name; experiment++)
		if (!strcmp(experiment->name, name))
			return experiment;
	return NULL;
}
