/*
 * test_fault.c - the fault policy: every row of the table, as a caller meets it
 * and as doc/design/faults.md prints it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/fault.h"
#include "tests/rig/test.h"

#define MANY 1000u		/* failures: more than any finite row */

static uint8_t count_steps(enum fault_origin origin, enum fault_class class,
			   enum fault_step step)
{
	unsigned n = 0, i;

	for (i = 1; i <= MANY; i++)
		n += fault_next(origin, class, i, NULL) == step;
	return n == MANY ? FAULT_FOREVER : (uint8_t)n;
}

static bool row_is_used(int origin, int class)
{
	return fault_row((enum fault_origin)origin, (enum fault_class)class);
}

static void walk_row(enum fault_origin origin, enum fault_class class)
{
	const struct fault_row *row = fault_row(origin, class);
	enum fault_step step, before = FAULT_RETRY;
	uint64_t pause_ns, last_ns = 0;
	bool over = false;
	unsigned i;

	for (i = 1; i <= MANY; i++) {
		step = fault_next(origin, class, i, &pause_ns);
		if (step > FAULT_RELOCATE) {
			ck_assert_int_eq(step, row->last);
			ck_assert_uint_eq(pause_ns, 0);
			over = true;
			continue;
		}
		ck_assert(!over && step >= before);
		ck_assert_uint_ge(pause_ns, last_ns);
		ck_assert_uint_le(pause_ns,
				  FAULT_PAUSE_MOST_MS * UINT64_C(1000000));
		if (i == 1)
			ck_assert_uint_eq(pause_ns, 0);
		if (i == 2)
			ck_assert_uint_eq(pause_ns, row->pause_ms *
					  UINT64_C(1000000));
		before = step;
		last_ns = pause_ns;
	}
	if (row->retries == FAULT_FOREVER) {
		ck_assert(!over);
		return;
	}
	ck_assert(over);
	ck_assert_uint_eq(count_steps(origin, class, FAULT_RETRY),
			  row->retries);
	ck_assert_uint_eq(count_steps(origin, class, FAULT_RELOCATE),
			  row->places);
}

START_TEST(every_row_ends_with_its_last_step)
{
	int origin, class;

	for (origin = FAULT_CALLER + 1; origin < FAULT_ORIGINS; origin++)
		for (class = 0; class < FAULT_CLASSES; class++)
			if (row_is_used(origin, class))
				walk_row((enum fault_origin)origin,
				 (enum fault_class)class);
}
END_TEST

static const char *origin_name(enum fault_origin origin)
{
	static const char *const names[FAULT_ORIGINS] = {
		[FAULT_CALLER] = "caller",
		[FAULT_DATA] = "data",
		[FAULT_DESTAGE] = "logged data",
		[FAULT_LOG] = "log",
		[FAULT_MIRROR] = "log mirror",
		[FAULT_NODE] = "tree node",
		[FAULT_ROOT] = "root",
		[FAULT_SUPER] = "superblock",
		[FAULT_COPY] = "copy",
		[FAULT_READ_DATA] = "read of data",
		[FAULT_READ_NODE] = "read of a node",
		[FAULT_READ_ROOT] = "read of a root",
		[FAULT_READ_SUPER] = "read of a superblock",
		[FAULT_READ_LOG] = "read of the log",
	};

	return names[origin];
}

static const char *class_name(enum fault_class class)
{
	static const char *const names[FAULT_CLASSES] = {
		[FAULT_MEDIA] = "media",
		[FAULT_TRANSPORT] = "transport",
		[FAULT_FLUSH] = "flush",
		[FAULT_MEMORY] = "no memory",
	};

	return names[class];
}

static const char *step_name(enum fault_step step)
{
	static const char *const names[FAULT_STEPS] = {
		[FAULT_RETRY] = "retry",
		[FAULT_RELOCATE] = "relocate",
		[FAULT_GIVE_UP] = "give up",
		[FAULT_FAIL_REQUEST] = "fail the request",
		[FAULT_FAIL_FILE] = "fail the file",
		[FAULT_FAIL_FS] = "read-only, log kept",
	};

	return names[step];
}

static void count_print(unsigned count, char *buf, size_t bytes)
{
	if (count == FAULT_FOREVER)
		snprintf(buf, bytes, "always");
	else
		snprintf(buf, bytes, "%u", count);
}

/* Prints a row as it stands in the document. */
static void row_print(enum fault_origin origin, enum fault_class class,
		      char *buf, size_t bytes)
{
	const struct fault_row *row = fault_row(origin, class);
	char retries[8], places[8];

	count_print(row->retries, retries, sizeof(retries));
	count_print(row->places, places, sizeof(places));
	snprintf(buf, bytes, "| %s | %s | %s | %s | %u ms | %s |",
		 origin_name(origin), class_name(class), retries, places,
		 row->pause_ms, step_name(row->last));
}

static bool document_has(FILE *f, const char *row)
{
	char line[256];

	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, row))
			return true;
	}
	return false;
}

/* Rows of the document's table, without the two of its head. */
static unsigned document_rows(FILE *f)
{
	char line[256];
	unsigned n = 0;

	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += line[0] == '|';
	return n - 2;
}

START_TEST(document_is_true)
{
	const char *top = getenv("top_srcdir");
	char path[512], row[256];
	unsigned rows = 0;
	int origin, class;
	FILE *f;

	snprintf(path, sizeof(path), "%s/doc/design/faults.md",
		 top ? top : ".");
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	for (origin = FAULT_CALLER + 1; origin < FAULT_ORIGINS; origin++)
		for (class = 0; class < FAULT_CLASSES; class++) {
			if (!row_is_used(origin, class))
				continue;
			rows++;
			row_print((enum fault_origin)origin,
				  (enum fault_class)class, row, sizeof(row));
			ck_assert_msg(document_has(f, row),
				      "doc/design/faults.md lacks: %s", row);
		}
	ck_assert_uint_eq(document_rows(f), rows);
	fclose(f);
}
END_TEST

/* What exists only once in memory or in the log is never dropped by a first
 * error, and what is logged never at all. */
START_TEST(nothing_lost_lightly)
{
	int class;

	for (class = 0; class < FAULT_CLASSES; class++) {
		if (row_is_used(FAULT_DESTAGE, class))
			ck_assert_int_eq(fault_row(FAULT_DESTAGE,
						   (enum fault_class)class)
					 ->last, FAULT_FAIL_FS);
		ck_assert_int_eq(fault_row(FAULT_LOG, (enum fault_class)class)
				 ->last, FAULT_FAIL_FS);
	}
	ck_assert_int_eq(fault_next(FAULT_DATA, FAULT_MEDIA, 1, NULL),
			 FAULT_RELOCATE);
	ck_assert_int_eq(fault_next(FAULT_LOG, FAULT_FLUSH, 1, NULL),
			 FAULT_FAIL_FS);
}
END_TEST

START_TEST(errors_have_their_classes)
{
	static const struct {
		enum disk_op op;
		int result;
		enum fault_class class;
	} cases[] = {
		{ DISK_WRITE, -EIO, FAULT_MEDIA },
		{ DISK_WRITE, -ENODATA, FAULT_MEDIA },
		{ DISK_WRITE, -EREMOTEIO, FAULT_MEDIA },
		{ DISK_WRITE, -ENOLINK, FAULT_TRANSPORT },
		{ DISK_READ, -ETIMEDOUT, FAULT_TRANSPORT },
		{ DISK_WRITE, -ENODEV, FAULT_TRANSPORT },
		{ DISK_WRITE, -ENOMEM, FAULT_MEMORY },
		{ DISK_FLUSH, -EIO, FAULT_FLUSH },
		{ DISK_FLUSH, -ETIMEDOUT, FAULT_FLUSH },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_int_eq(fault_class(cases[i].op, cases[i].result),
				 cases[i].class);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fault");
	TCase *tc = tcase_create("policy");

	tcase_add_test(tc, every_row_ends_with_its_last_step);
	tcase_add_test(tc, document_is_true);
	tcase_add_test(tc, nothing_lost_lightly);
	tcase_add_test(tc, errors_have_their_classes);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
