/*
 * shell.c - see shell.h.
 */
#include "bench/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/msg.h"

int shell_run(const char *fmt, ...)
{
	char command[4 * PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	if (system(command)) {
		msg_error("failed: %s", command);
		return -EIO;
	}
	return 0;
}

int shell_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = write(fd, text, strlen(text));
		close(fd);
	}
	if (n == (ssize_t)strlen(text))
		return 0;
	msg_error("%s: %s", path, strerror(errno));
	return -EIO;
}

int shell_drop_caches(void)
{
	sync();
	return shell_write("/proc/sys/vm/drop_caches", "3\n");
}

int shell_word(const char *path, char *word, unsigned bytes)
{
	FILE *file = fopen(path, "r");
	int rc = file && fgets(word, (int)bytes, file) ? 0 : -EIO;

	if (file)
		fclose(file);
	if (rc)
		msg_error("%s: cannot be read", path);
	else
		word[strcspn(word, " \n")] = 0;
	return rc;
}

int shell_unmount(const char *mountpoint)
{
	if (!umount2(mountpoint, 0) || !umount2(mountpoint, MNT_DETACH))
		return 0;
	msg_error("%s: %s", mountpoint, strerror(errno));
	return -EIO;
}
