/*
 * traxctl_metrics.c - the counters of mounted file systems in the text format
 * of Prometheus, for its node exporter's textfile collector or anything else
 * that reads it.
 *
 * Names and units follow the documents of Prometheus: base units, "_total" for
 * values that only grow.  Each sample names its mount point.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/facts.h"
#include "tools/traxctl.h"

#define SECTOR_BYTES 512.0
#define NS 1e-9			/* seconds of a nanosecond */

enum kind { COUNTER, GAUGE };
enum source { STATS, SCRUB, MODEL };

static const char *const attributes[] = {
	[STATS] = "trax.stats", [SCRUB] = "trax.scrub", [MODEL] = "trax.model",
};
#define SOURCES (sizeof(attributes) / sizeof(attributes[0]))

static const struct metric {
	enum source source;
	const char *path;	/* path in the attribute's object */
	const char *name;	/* name behind "traxfs_" */
	enum kind kind;
	double unit;		/* the value is multiplied by it */
	const char *help;
} metrics[] = {
	{ STATS, "tree.inodes", "inodes", GAUGE, 1, "Inodes in use." },
	{ STATS, "space.free", "free_bytes", GAUGE, SECTOR_BYTES,
	  "Free space, replicas of data counted as free." },
	{ STATS, "errors", "damaged_places", GAUGE, 1,
	  "Damage met since the mount, healed or not." },
	{ STATS, "read_only", "read_only", GAUGE, 1,
	  "1 when nothing is written." },
	{ STATS, "failed", "failed", GAUGE, 1,
	  "1 when the file system has failed and must be mounted anew." },
	{ STATS, "log.commits", "log_commits_total", COUNTER, 1,
	  "Commits that somebody has waited for." },
	{ STATS, "log.records", "log_records_total", COUNTER, 1,
	  "Log records written." },
	{ STATS, "log.record_bytes", "log_record_bytes_total", COUNTER, 1,
	  "Bytes of log records written." },
	{ STATS, "log.retries", "log_retries_total", COUNTER, 1,
	  "Log records that had to be written elsewhere." },
	{ STATS, "log.fill_percent", "log_fill_ratio", GAUGE, 0.01,
	  "Share of the log that is in use." },
	{ STATS, "tree.checkpoints", "checkpoints_total", COUNTER, 1,
	  "Checkpoints of the metadata tree." },
	{ STATS, "tree.node_reads", "node_reads_total", COUNTER, 1,
	  "Nodes of the metadata tree read from the disk." },
	{ STATS, "tree.node_writes", "node_writes_total", COUNTER, 1,
	  "Nodes of the metadata tree written." },
	{ STATS, "replicas.sectors", "replica_bytes", GAUGE, SECTOR_BYTES,
	  "Space that replicas of hot data take." },
	{ STATS, "replicas.reads_used", "replica_reads_total", COUNTER, 1,
	  "Reads served from a replica." },
	{ SCRUB, "passes", "scrub_passes_total", COUNTER, 1,
	  "Scrubs of the whole disk that have ended." },
	{ SCRUB, "percent", "scrub_progress_ratio", GAUGE, 0.01,
	  "Share of the present scrub that is done." },
	{ SCRUB, "errors", "scrub_errors", GAUGE, 1,
	  "Damage that the present or last scrub has met." },
	{ SCRUB, "ended_seconds", "scrub_last_end_timestamp_seconds", GAUGE, 1,
	  "When the last scrub has ended, in seconds since 1970; 0: never." },
	{ SCRUB, "foreground_delay.p99_ms", "scrub_delay_p99_seconds", GAUGE,
	  1e-3, "Delay of requests by the scrub that 1 in 100 exceeds." },
	{ MODEL, "profile.known_share", "tracks_known_ratio", GAUGE, 1,
	  "Share of the disk of which the tracks are known." },
};
#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* Each class of requests to the disk has the same five counts. */
static const char *const classes[] = {
	"commit", "read", "read_ahead", "write_back", "idle",
};
#define CLASSES (sizeof(classes) / sizeof(classes[0]))

static const struct metric class_metrics[] = {
	{ STATS, "requests", "disk_requests_total", COUNTER, 1,
	  "Requests to the disk." },
	{ STATS, "bytes", "disk_bytes_total", COUNTER, 1,
	  "Bytes of requests to the disk." },
	{ STATS, "wait_ns", "disk_wait_seconds_total", COUNTER, NS,
	  "Time that requests have waited in the queue." },
	{ STATS, "service_ns", "disk_service_seconds_total", COUNTER, NS,
	  "Time that requests have been with the disk." },
	{ STATS, "max_wait_ns", "disk_max_wait_seconds", GAUGE, NS,
	  "Longest wait of a request in the queue since the mount." },
};
#define CLASS_METRICS (sizeof(class_metrics) / sizeof(class_metrics[0]))

struct mount_facts {
	const char *path;
	json_t *object[SOURCES];
};

/* A label's value: backslash, quote and newline are escaped. */
static void print_label(const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", stdout);
		else if (*value == '\\' || *value == '"')
			printf("\\%c", *value);
		else
			putchar(*value);
	}
}

static void print_head(const struct metric *metric)
{
	printf("# HELP traxfs_%s %s\n# TYPE traxfs_%s %s\n", metric->name,
	       metric->help, metric->name,
	       metric->kind == COUNTER ? "counter" : "gauge");
}

static void print_sample(const struct metric *metric, const char *path,
			 const char *class, json_t *value)
{
	double n = json_is_boolean(value) ? json_is_true(value) :
					    json_number_value(value);

	if (!value)
		return;
	printf("traxfs_%s{mountpoint=\"", metric->name);
	print_label(path);
	if (class)
		printf("\",class=\"%s", class);
	printf("\"} %.15g\n", n * metric->unit);
}

static void print_all(const struct mount_facts *mounts, unsigned n)
{
	json_t *queue, *object;
	size_t m, c;
	unsigned i;

	for (m = 0; m < METRICS; m++) {
		print_head(&metrics[m]);
		for (i = 0; i < n; i++) {
			object = mounts[i].object[metrics[m].source];
			print_sample(&metrics[m], mounts[i].path, NULL,
				     fact_at(object, metrics[m].path));
		}
	}
	for (m = 0; m < CLASS_METRICS; m++) {
		print_head(&class_metrics[m]);
		for (i = 0; i < n; i++) {
			queue = fact_at(mounts[i].object[STATS], "queue");
			for (c = 0; c < CLASSES; c++)
				print_sample(&class_metrics[m], mounts[i].path,
					     classes[c],
					     fact_at(fact_at(queue, classes[c]),
						     class_metrics[m].path));
		}
	}
}

/* Nothing is printed when one of them does not answer: a collector takes a
 * missing sample for a failure, and should. */
int run_metrics(const struct arguments *a)
{
	struct mount_facts *mounts = calloc(a->paths_n, sizeof(*mounts));
	struct arguments one = *a;
	int code = mounts ? EXIT_SUCCESS : EXIT_FAILED;
	unsigned i;
	size_t s;

	for (i = 0; i < a->paths_n && code == EXIT_SUCCESS; i++) {
		one.path = mounts[i].path = a->paths[i];
		for (s = 0; s < SOURCES; s++) {
			mounts[i].object[s] = read_json(one.path,
							attributes[s]);
			if (!mounts[i].object[s] && s == STATS)
				code = complain(&one, attributes[s]);
		}
	}
	if (code == EXIT_SUCCESS)
		print_all(mounts, a->paths_n);
	for (i = 0; mounts && i < a->paths_n; i++)
		for (s = 0; s < SOURCES; s++)
			json_decref(mounts[i].object[s]);
	free(mounts);
	return code;
}
