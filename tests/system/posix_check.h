/*
 * posix_check.h - the checks of posix_check.c and what they are made of.
 *
 * A check starts in an empty directory of its own, as root.  CHECK and
 * FAILS_WITH say what is wrong and go on.
 */
#ifndef TRAX_SYSTEM_POSIX_CHECK_H
#define TRAX_SYSTEM_POSIX_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct posix_check {
	const char *name;
	void (*run)(void);
};

/* Ends with a row without name. */
extern const struct posix_check posix_checks_names[];
extern const struct posix_check posix_checks_rights[];
extern const struct posix_check posix_checks_data[];

void posix_wrong(int line, const char *what, int wanted, int got);

#define CHECK(condition)                                             \
	do {                                                         \
		errno = 0;                                           \
		if (!(condition))                                    \
			posix_wrong(__LINE__, #condition, 0, errno); \
	} while (0)

/* The call must return -1 with this errno. */
#define FAILS_WITH(wanted, call)                                        \
	do {                                                            \
		errno = 0;                                              \
		if ((call) != -1 || errno != (wanted))                  \
			posix_wrong(__LINE__, #call, (wanted), errno);  \
	} while (0)

/* Runs in a child as user `uid`, group `gid`, no supplementary groups; true
 * when it returned 0. */
bool posix_as_user(uid_t uid, gid_t gid, int (*run)(void));

/* Errno of a call, 0 when it worked; for use in children. */
#define ERRNO_OF(call) ((call) == -1 ? errno : 0)

/* Makes a file with this text. */
void posix_make(const char *name, const char *text);
struct stat posix_stat(const char *name);

/* A moment, longer than the clock of the kernel's timestamps. */
void posix_tick(void);

#endif
