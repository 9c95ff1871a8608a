/*
 * peers_report.c - see peers_report.h.
 */
#include "bench/peers_report.h"

#include <libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

/* Names that `latency` of struct peer_sample has in the report. */
static const char *const peer_latency_names[5] = {
	"p50_ms", "p90_ms", "p99_ms", "p999_ms", "longest_ms"
};

void peers_latencies(struct work_result *result, double parts[5])
{
	static const unsigned thousandths[5] = { 500, 900, 990, 999, 1000 };

	if (!result->n)
		return;
	qsort(result->latency, result->n, sizeof(*result->latency),
	      sort_double_cmp);
	for (unsigned i = 0; i < 5; i++) {
		unsigned at = (unsigned)((uint64_t)result->n * thousandths[i] /
					 1000);

		parts[i] = result->latency[at < result->n ? at :
							    result->n - 1];
	}
}

static int by_elapsed(const void *a, const void *b)
{
	return sort_double_cmp(&((const struct peer_sample *)a)->elapsed,
			       &((const struct peer_sample *)b)->elapsed);
}

static int by_value(const void *a, const void *b)
{
	return sort_double_cmp(&((const struct peer_sample *)a)->value,
			       &((const struct peer_sample *)b)->value);
}

static double counts(const struct work *work, const struct peer_sample *sample)
{
	return work->unit ? sample->value : sample->elapsed;
}

void peers_add_row(json_t *rows, const struct work *work, const char *name,
		   const char *fs, struct peer_sample *sample, unsigned n,
		   double limit)
{
	const struct peer_sample *s = &sample[n / 2];
	json_t *row;

	qsort(sample, n, sizeof(*sample), work->unit ? by_value : by_elapsed);
	row = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, "
			"s:f, s:f, s:f, s:f, s:f}",
			"workload", name, "about", work->about, "fs", fs,
			"unit", work->unit ? work->unit : "s",
			"value", counts(work, s),
			"least", counts(work, &sample[0]),
			"most", counts(work, &sample[n - 1]),
			"elapsed_s", s->elapsed, "seek_s", s->head.seek,
			"rotation_s", s->head.rotation,
			"transfer_s", s->head.transfer,
			"ahead_s", s->head.ahead, "idle_s", s->head.idle,
			"requests", s->head.requests,
			"over_limit", limit > 0 ? s->elapsed / limit : 0);
	for (unsigned i = 0; i < 5 && s->latency[4] > 0; i++)
		json_object_set_new(row, peer_latency_names[i],
				    json_real(1e3 * s->latency[i]));
	if (work->beside)
		json_object_set_new(row, "beside_mb_s",
				    json_real(s->beside_mb));
	json_array_append_new(rows, row);
}

static double number_of(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

/* By how much traxfs is slower: 1 is the same. */
static double ratio(const json_t *ours, const json_t *row)
{
	double a = number_of(ours, "value"), b = number_of(row, "value");
	double swap = a;

	if (strcmp(text_of(row, "unit"), "s")) {
		a = b;
		b = swap;
	}
	return b > 0 ? a / b : 0;
}

void peers_compare(json_t *rows)
{
	const json_t *ours;
	json_t *row;
	size_t i, k;

	json_array_foreach(rows, i, ours) {
		if (strcmp(text_of(ours, "fs"), "traxfs"))
			continue;
		json_array_foreach(rows, k, row)
			if (!strcmp(text_of(row, "workload"),
				    text_of(ours, "workload")))
				json_object_set_new(row, "traxfs_over_this",
					json_real(ratio(ours, row)));
	}
}

void peers_print(const json_t *rows)
{
	static const char *const columns[] = {
		"workload", "fs", "value", "unit", "least", "most", "seek_s",
		"rotation_s", "transfer_s", "idle_s", "requests", "p50_ms",
		"p99_ms", "beside_mb_s", "traxfs_over_this", "over_limit"
	};
	struct libscols_table *table;
	size_t i, n = sizeof(columns) / sizeof(columns[0]);
	const json_t *row;

	scols_init_debug(0);
	table = scols_new_table();
	for (i = 0; i < n; i++)
		scols_table_new_column(table, columns[i], 0,
				       i < 2 || i == 3 ? 0 : SCOLS_FL_RIGHT);
	json_array_foreach(rows, i, row) {
		struct libscols_line *line = scols_table_new_line(table, NULL);

		for (size_t c = 0; c < n; c++) {
			const json_t *v = json_object_get(row, columns[c]);
			char text[64] = "";

			if (json_is_number(v))
				snprintf(text, sizeof(text),
					 json_number_value(v) >= 1000 ? "%.0f" :
									"%.2f",
					 json_number_value(v));
			scols_line_set_data(line, c, json_is_string(v) ?
					    json_string_value(v) : text);
		}
	}
	scols_print_table(table);
	scols_unref_table(table);
}
