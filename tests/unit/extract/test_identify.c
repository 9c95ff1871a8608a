/*
 * test_identify.c - what sysfs says of a drive, and settings put back, in a
 * folder that stands in for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "extract/drive/identify.h"
#include "extract/drive/settings.h"
#include "tests/rig/test.h"

static char root[64];

static void put(const char *name, const char *text, size_t bytes)
{
	char path[256], *at;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0777);
		*at = '/';
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
}

static void put_word(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static void get(const char *name, char *text, size_t bytes)
{
	char path[256];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, bytes - 1, f);
	text[n] = 0;
	fclose(f);
}

static void setup(void)
{
	strcpy(root, "/tmp/test_identify-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	ck_assert_int_eq(system(command), 0);
}

/* A block device of our own would need rights: the identity is made up as
 * identify() makes it. */
static struct identity made_up(void)
{
	struct identity id = { .actuators = 1 };

	snprintf(id.queue, sizeof(id.queue), "%s/queue", root);
	id.block = id.loop = true;
	return id;
}

START_TEST(files_are_no_devices)
{
	struct identity id;
	char path[128];

	put_word("image", "x");
	snprintf(path, sizeof(path), "%s/image", root);
	ck_assert_int_eq(identify(path, "/sys", &id), 0);
	ck_assert(!id.block);
	ck_assert_str_eq(id.name, "image");
	ck_assert_ptr_null(identify_refusal(&id));
	ck_assert_int_eq(identify("/nothing/there", "/sys", &id), -ENOENT);
}
END_TEST

START_TEST(refusals)
{
	struct identity id = made_up();

	ck_assert_ptr_null(identify_refusal(&id));
	id.actuators = 2;
	ck_assert_ptr_nonnull(identify_refusal(&id));
	id.actuators = 1;
	id.host_managed = true;
	ck_assert_ptr_nonnull(identify_refusal(&id));
}
END_TEST

START_TEST(settings_come_back)
{
	struct identity id = made_up();
	struct settings settings, later = { 0 };
	char text[1024], now[64], *line, *at;

	put_word("queue/scheduler", "none [mq-deadline] kyber\n");
	put_word("queue/read_ahead_kb", "128\n");
	put_word("queue/nomerges", "0\n");
	put_word("queue/max_hw_sectors_kb", "32767\n");
	put_word("queue/max_sectors_kb", "1280\n");
	settings_look(&id, "/nothing/there", false, &settings);
	ck_assert_uint_eq(settings.n, 4);
	ck_assert_uint_lt(settings_text(&settings, text, sizeof(text)),
			  sizeof(text));
	ck_assert_uint_eq(settings_apply(&settings), 4);
	get("queue/read_ahead_kb", now, sizeof(now));
	ck_assert_str_eq(now, "0");
	get("queue/max_sectors_kb", now, sizeof(now));
	ck_assert_int_eq(strncmp(now, "32767", 5), 0);
	/* Killed; somebody else finds the text. */
	for (line = strtok_r(text, "\n", &at); line;
	     line = strtok_r(NULL, "\n", &at))
		ck_assert(settings_parse(&later, line));
	ck_assert(!settings_parse(&later, "setting sysfs"));
	ck_assert(!settings_parse(&later, "setting nonsense a b"));
	ck_assert_uint_eq(later.n, 4);
	ck_assert_int_eq(settings_restore(&later), 0);
	get("queue/read_ahead_kb", now, sizeof(now));
	ck_assert_int_eq(strncmp(now, "128", 3), 0);
	get("queue/scheduler", now, sizeof(now));
	ck_assert_int_eq(strncmp(now, "mq-deadline", 11), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("identify");
	TCase *t = tcase_create("identify");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, files_are_no_devices);
	tcase_add_test(t, refusals);
	tcase_add_test(t, settings_come_back);
	suite_add_tcase(s, t);
	return test_run(s);
}
