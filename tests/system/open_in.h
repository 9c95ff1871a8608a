/*
 * open_in.h - opening files of a directory, for programs that test a mount:
 * what fails ends the program with 2.
 */
#ifndef TRAX_SYSTEM_OPEN_IN_H
#define TRAX_SYSTEM_OPEN_IN_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static inline void give_up(const char *what)
{
	perror(what);
	exit(2);
}

static inline int open_in(const char *dir, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags, 0600);
	if (fd < 0)
		give_up(path);
	return fd;
}

#endif
