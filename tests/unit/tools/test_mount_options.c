/*
 * What stands behind -o: taken, handed on, refused with a reason.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "base/msg.h"
#include "tests/rig/test.h"
#include "tools/mount_options.h"

static char said[1024];

static void hear(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(said, sizeof(said), "%s", line);
}

static int take(struct mount_settings *s, const char *list)
{
	said[0] = 0;
	msg_set_sink(hear, NULL);
	mount_settings_init(s);
	return mount_settings_parse(s, list);
}

START_TEST(generic_options_are_taken)
{
	struct mount_settings s;

	ck_assert_int_eq(take(&s, "defaults,user=joe,x-systemd.automount,"
			      "strictatime,norelatime,silent,acl,nodev,"
			      "errors=remount-ro,user_id=0,blksize=4096"), 0);
	ck_assert(s.strictatime && s.silent);
	ck_assert_str_eq(s.flags, "nodev");
	ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(a_refusal_has_a_reason)
{
	static const struct {
		const char *option, *words;
	} refused[] = {
		{ "discard", "fstrim" },
		{ "errors=continue", "remount-ro" },
		{ "noacl", "always" },
		{ "usrquota", "no quotas" },
		{ "commit=0", "1 to 300 seconds" },
		{ "commit=301", "1 to 300 seconds" },
		{ "memory=1M", "at least 32M" },
		{ "replicas=5", "0 to 4" },
		{ "budget=51", "0 to 50 percent" },
		{ "awake=2", "0 or 1" },
		{ "watermarks=5/6/7", "HIGH/LOW/CRITICAL" },
		{ "nonsense", "not known" },
		{ "ronly", "not known" },
	};
	struct mount_settings s;
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		ck_assert_int_eq(take(&s, refused[i].option), -EINVAL);
		ck_assert_msg(strstr(said, refused[i].option) &&
			      strstr(said, refused[i].words), "%s", said);
	}
}
END_TEST

START_TEST(labels_are_handed_on_with_their_commas)
{
	struct mount_settings s;

	ck_assert_int_eq(take(&s, "context=\"system_u:object_r:tmp_t:"
			      "s0:c1,c2\",noexec,fscontext=x"), 0);
	ck_assert_str_eq(s.flags, "context=\"system_u:object_r:tmp_t:"
			 "s0:c1,c2\",noexec,fscontext=x");
	ck_assert_uint_eq(mount_settings_flags(&s), MS_NOEXEC);
}
END_TEST

START_TEST(flags_of_mount)
{
	struct mount_settings s;

	ck_assert_int_eq(take(&s, "ro,nosuid,suid,nodev,nosymfollow,noatime,"
			      "sync"), 0);
	ck_assert_uint_eq(mount_settings_flags(&s),
			  MS_RDONLY | MS_NODEV | MS_NOSYMFOLLOW | MS_NOATIME |
			  MS_SYNCHRONOUS);
	ck_assert_int_eq(take(&s, "ro,rw,noatime,relatime,nosymfollow,"
			      "symfollow,sync,async"), 0);
	ck_assert_uint_eq(mount_settings_flags(&s), 0);
}
END_TEST

START_TEST(some_need_a_new_mount)
{
	struct mount_settings before, after;

	ck_assert_int_eq(take(&before, "memory=64M,commit=9"), 0);
	after = before;
	ck_assert_int_eq(mount_settings_parse(&after, "remount,ro,memory=64M,"
					      "noatime,budget=1"), 0);
	ck_assert_ptr_null(mount_settings_fixed(&before, &after));
	ck_assert_int_eq(mount_settings_parse(&after, "memory=128M"), 0);
	ck_assert_str_eq(mount_settings_fixed(&before, &after), "memory=");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mount_options");
	TCase *tcase = tcase_create("mount_options");

	tcase_add_test(tcase, generic_options_are_taken);
	tcase_add_test(tcase, a_refusal_has_a_reason);
	tcase_add_test(tcase, labels_are_handed_on_with_their_commas);
	tcase_add_test(tcase, flags_of_mount);
	tcase_add_test(tcase, some_need_a_new_mount);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
