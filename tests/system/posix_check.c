/*
 * posix_check.c - what POSIX and Linux promise of a file system, tried out in
 * a directory given: "posix_check DIRECTORY [NAME...]".  Passes on any Linux
 * file system, so it can be checked itself.  Exit: 0, 1 (something is wrong),
 * 77 (not root).
 */
#include "tests/system/posix_check.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
	const char *current;
	unsigned wrong, run;
} state;

void posix_wrong(int line, const char *what, int wanted, int got)
{
	state.wrong++;
	printf("%s:%d: %s", state.current, line, what);
	if (wanted)
		printf(": wanted %s", strerrorname_np(wanted));
	printf(", got %s\n", got ? strerrorname_np(got) : "success");
	fflush(stdout);
}

bool posix_as_user(uid_t uid, gid_t gid, int (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int rc;

		if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
			_exit(99);
		rc = run();
		if (rc)
			printf("%s: as user %u: %d\n", state.current, uid, rc);
		fflush(stdout);
		_exit(rc != 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void posix_make(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(close(fd) == 0);
}

struct stat posix_stat(const char *name)
{
	struct stat st = { 0 };

	CHECK(lstat(name, &st) == 0);
	return st;
}

void posix_tick(void)
{
	struct timespec moment = { 0, 12000000 };

	nanosleep(&moment, NULL);
}

static bool wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void run_one(const struct posix_check *check)
{
	state.current = check->name;
	state.run++;
	umask(022);
	if (mkdir(check->name, 0755) || chdir(check->name)) {
		posix_wrong(__LINE__, "directory of the check", 0, errno);
		return;
	}
	check->run();
	if (chdir(".."))
		posix_wrong(__LINE__, "chdir", 0, errno);
}

int main(int argc, char **argv)
{
	const struct posix_check *lists[] = { posix_checks_names,
					      posix_checks_rights,
					      posix_checks_data };
	const struct posix_check *check;
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "usage: posix_check DIRECTORY [NAME...]\n");
		return 2;
	}
	if (geteuid()) {
		fprintf(stderr, "needs root\n");
		return 77;
	}
	if (chdir(argv[1])) {
		perror(argv[1]);
		return 2;
	}
	for (i = 0; i < 3; i++)
		for (check = lists[i]; check->name; check++)
			if (wanted(check->name, argv + 2))
				run_one(check);
	printf("%u checks, %u things wrong\n", state.run, state.wrong);
	return state.wrong || !state.run;
}
