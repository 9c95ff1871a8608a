/*
 * guard.c - see guard.h.
 *
 * A child waits for the end of a pipe that only this process can write to.  It
 * ignores what a terminal sends, has a session of its own, and goes on trying:
 * a command that was under way may still mount something.
 */
#include "bench/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/msg.h"

/* Room for the path of the directory and the commands around it. */
#define SCRIPT_BYTES (PATH_MAX + 1024)

static const char script[] =
	"cd '%s' || exit 0\n"
	"for i in 1 2 3 4 5 6 7 8 9 10; do\n"
	"	if mountpoint -q mnt; then umount mnt || umount -l mnt; fi\n"
	"	if [ -s loop ]; then losetup -d $(cat loop) && : > loop; fi\n"
	"	if [ -s group ] && rmdir $(cat group); then : > group; fi\n"
	"	if mountpoint -q drive; then fusermount3 -u drive; fi\n"
	"	if ! mountpoint -q mnt && ! mountpoint -q drive &&\n"
	"		[ ! -s group ]; then\n"
	"		rm -rf --one-file-system \"$PWD\" && exit 0\n"
	"	fi\n"
	"	sleep 1\n"
	"done\n"
	"exit 1\n";

static void child_run(int fd, const char *dir)
{
	char text[SCRIPT_BYTES], byte;
	ssize_t n;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	snprintf(text, sizeof(text), script, dir);
	_exit(system(text) ? 1 : 0);
}

/*
 * What is mounted from now on is seen by this process and its children only: a
 * namespace that somebody copies meanwhile (unshare, a container) would keep
 * the mounts, and with them the loop device and the daemon.  What others
 * unmount goes here, too.  Whoever is not allowed to do this mounts as ever.
 */
static void mounts_for_ourselves(void)
{
	if (!unshare(CLONE_NEWNS) &&
	    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		msg_debug("mounts are seen by others: %s", strerror(errno));
}

int guard_begin(struct guard *guard, const char *dir)
{
	int fds[2];

	mounts_for_ourselves();
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	guard->pid = fork();
	if (guard->pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (guard->pid == 0) {
		close(fds[1]);
		child_run(fds[0], dir);
	}
	close(fds[0]);
	guard->fd = fds[1];
	return 0;
}

void guard_end(struct guard *guard, const char *dir)
{
	int status = 0;

	close(guard->fd);
	while (waitpid(guard->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (status)
		msg_error("%s: not all of it could be removed", dir);
}
