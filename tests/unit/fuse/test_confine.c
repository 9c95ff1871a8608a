/*
 * test_confine.c - what a confined process is refused, and what it may still
 * do.  A child is confined; its exit code is the number of the line that was
 * not as expected.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/confine.h"
#include "tests/rig/test.h"

#define EXPECT(condition)              \
	do {                           \
		if (!(condition))      \
			_exit(__LINE__ & 255); \
	} while (0)

static int code_of(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		body();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void *run_thread(void *arg)
{
	/* Threads are confined, too. */
	EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || errno == EPERM);
	return arg;
}

static void serve(void)
{
	int pipes[2];
	pthread_t thread;
	char byte = 1;
	void *p;

	EXPECT(pipe(pipes) == 0);
	EXPECT(confine() == 0);
	EXPECT(write(pipes[1], &byte, 1) == 1);
	EXPECT(read(pipes[0], &byte, 1) == 1);
	p = malloc(100 << 20);
	EXPECT(p);
	free(p);
	EXPECT(pthread_create(&thread, NULL, run_thread, NULL) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
}

#if defined(HAVE_SECCOMP) && !defined(__SANITIZE_ADDRESS__)

#define REFUSED(call) EXPECT((errno = 0, (long)(call) == -1 && errno == EPERM))

static void try_all(void)
{
	char *const argv[] = { "sh", NULL };

	EXPECT(confine() == 0);
	REFUSED(open("/etc/passwd", O_RDONLY));
	REFUSED(open("/tmp/x", O_RDWR | O_CREAT, 0600));
	REFUSED(execv("/bin/sh", argv));
	REFUSED(fork());
	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	REFUSED(mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	REFUSED(unlink("/tmp/x"));
	REFUSED(kill(getppid(), 0));
	REFUSED(setuid(0));
}

START_TEST(calls_are_refused)
{
	ck_assert_int_eq(code_of(try_all), 0);
}
END_TEST

#endif

START_TEST(serving_goes_on)
{
	ck_assert_int_eq(code_of(serve), 0);
}
END_TEST

static void take_descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY);

	EXPECT(fd >= 0 && dup2(fd, 77) == 77);
	close(1);
	EXPECT(confine_descriptors() == 0);
	EXPECT(fcntl(77, F_GETFD) == -1 && fcntl(fd, F_GETFD) == -1);
	EXPECT(fcntl(1, F_GETFD) == 0);
	EXPECT(open("/dev/null", O_RDONLY) == 3);
}

START_TEST(descriptors_are_closed)
{
	ck_assert_int_eq(code_of(take_descriptors), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("confine");
	TCase *c = tcase_create("confine");

	tcase_add_test(c, serving_goes_on);
#if defined(HAVE_SECCOMP) && !defined(__SANITIZE_ADDRESS__)
	tcase_add_test(c, calls_are_refused);
#endif
	tcase_add_test(c, descriptors_are_closed);
	suite_add_tcase(suite, c);
	return test_run(suite);
}
