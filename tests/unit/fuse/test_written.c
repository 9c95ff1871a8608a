/*
 * test_written.c - when the kernel is told to forget how much room open files
 * take: src/fuse/written.c, in time that the test lets pass.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/units.h"
#include "fuse/ops.h"
#include "fuse/session_internal.h"
#include "fuse/written.h"
#include "tests/rig/test.h"

#define FILES 150u
#define BEGIN_NS NS_PER_SECOND
#define DELAY_NS NS_PER_SECOND
#define TURN_MOST 64u		/* files that one turn may tell of */
#define TURNS_MOST 10u
#define WAIT_MS 10000		/* for the thread that sends the notices */

static struct {
	struct env env;
	uint64_t now_ns;
	struct fs *fs;
	struct session *session;
	int kernel, server;		/* the two ends */
} t;

static uint64_t now_ns(struct env *env)
{
	(void)env;
	return t.now_ns;
}

static void setup(void)
{
	struct session_options o = { .env = &t.env, .signal_fd = -1 };
	int ends[2];

	t.env.now_ns = now_ns;
	t.now_ns = BEGIN_NS;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	t.kernel = ends[0];
	o.fd = t.server = ends[1];
	ck_assert_int_eq(fs_open(NULL, NULL, NULL, &t.fs), 0);
	ck_assert_int_eq(session_new(t.fs, &o, &t.session), 0);
	ck_assert_int_eq(notify_new(t.server, &t.session->notify), 0);
	for (unsigned i = 1; i <= FILES; i++)
		ops_note_writer(t.session, i, O_WRONLY, 1);
}

static void teardown(void)
{
	for (unsigned i = 1; i <= FILES; i++)
		ops_note_writer(t.session, i, O_WRONLY, -1);
	t.session->attached = false;
	session_free(t.session);
	fs_close(t.fs);
	close(t.kernel);
	close(t.server);
}

/* The inode whose attributes are to be forgotten; 0: of none within wait_ms. */
static uint64_t told(int wait_ms)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_inval_inode_out inode;
	} notice;
	struct pollfd fd = { .fd = t.kernel, .events = POLLIN };

	if (poll(&fd, 1, wait_ms) <= 0)
		return 0;
	ck_assert_int_eq(recv(t.kernel, &notice, sizeof(notice), 0),
			 sizeof(notice));
	ck_assert_int_eq(notice.header.error, FUSE_NOTIFY_INVAL_INODE);
	ck_assert_int_eq(notice.inode.off, -1);
	return notice.inode.ino;
}

/* Once for all writes of a second. */
START_TEST(a_second_later)
{
	written_note(t.session, 1);
	t.now_ns += DELAY_NS / 2;
	written_note(t.session, 1);
	ck_assert_uint_eq(written_run(t.session), BEGIN_NS + DELAY_NS);
	t.now_ns = BEGIN_NS + DELAY_NS;
	ck_assert_uint_eq(written_run(t.session), UINT64_MAX);
	ck_assert_uint_eq(told(WAIT_MS), 1);
	written_note(t.session, 2);
	ck_assert_uint_eq(written_run(t.session), t.now_ns + DELAY_NS);
	t.now_ns += DELAY_NS;
	written_run(t.session);
	ck_assert_uint_eq(told(WAIT_MS), 2);
}
END_TEST

/* A close does it by itself, and of a file that nobody writes the kernel has
 * no attributes of its own. */
START_TEST(not_of_what_is_closed)
{
	written_note(t.session, 1);
	written_note(t.session, 2);
	written_note(t.session, FILES + 1);
	ops_note_writer(t.session, 1, O_WRONLY, -1);
	t.now_ns += DELAY_NS;
	written_run(t.session);
	ck_assert_uint_eq(told(WAIT_MS), 2);
	ck_assert_uint_eq(hashmap_count(t.session->written), 0);
	ck_assert_uint_eq(written_run(t.session), UINT64_MAX);
	ops_note_writer(t.session, 1, O_WRONLY, 1);
}
END_TEST

/* Of many files some are told of in each turn. */
START_TEST(turns_are_short)
{
	unsigned left = FILES, turns = 0;

	for (unsigned i = 1; i <= FILES; i++)
		written_note(t.session, i);
	t.now_ns += DELAY_NS;
	while (left) {
		ck_assert_uint_lt(turns++, TURNS_MOST);
		ck_assert_uint_eq(written_run(t.session),
				  left > TURN_MOST ? 0 : UINT64_MAX);
		for (unsigned i = 0; i < TURN_MOST && left; i++, left--)
			ck_assert_uint_ne(told(WAIT_MS), 0);
		ck_assert_uint_eq(hashmap_count(t.session->written), left);
	}
	ck_assert_uint_eq(told(0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("written");
	TCase *c = tcase_create("written");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_second_later);
	tcase_add_test(c, not_of_what_is_closed);
	tcase_add_test(c, turns_are_short);
	suite_add_tcase(suite, c);
	return test_run(suite);
}
