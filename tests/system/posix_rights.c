/*
 * posix_rights.c - owners, modes, times, extended attributes, ACLs, flags.
 */
#include "tests/system/posix_check.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define USER 12345
#define OTHER 23456

static mode_t mode_of(const char *name)
{
	return posix_stat(name).st_mode & 07777;
}

/* ---- Access ---- */

static int user_is_kept_out(void)
{
	return ERRNO_OF(open("private", O_RDONLY)) != EACCES ||
	       ERRNO_OF(open("read-only", O_WRONLY)) != EACCES ||
	       ERRNO_OF(open("closed/x", O_RDONLY)) != EACCES ||
	       ERRNO_OF(open("new", O_CREAT | O_WRONLY, 0644)) != EACCES ||
	       ERRNO_OF(unlink("private")) != EACCES ||
	       ERRNO_OF(mkdir("d", 0755)) != EACCES ||
	       ERRNO_OF(rename("private", "x")) != EACCES ||
	       ERRNO_OF(link("read-only", "x")) == 0 ||
	       ERRNO_OF(truncate("read-only", 0)) != EACCES ||
	       ERRNO_OF(chmod("private", 0777)) != EPERM ||
	       ERRNO_OF(chown("private", USER, USER)) != EPERM ||
	       ERRNO_OF(open("read-only", O_RDONLY)) != 0 ||
	       ERRNO_OF(access("read-only", W_OK)) != EACCES;
}

static void check_access(void)
{
	posix_make("private", "x");
	posix_make("read-only", "x");
	CHECK(mkdir("closed", 0700) == 0);
	posix_make("closed/x", "x");
	CHECK(chmod("private", 0600) == 0);
	CHECK(posix_as_user(USER, USER, user_is_kept_out));
}

static int user_meets_sticky(void)
{
	return ERRNO_OF(unlink("sticky/roots")) != EPERM ||
	       ERRNO_OF(rename("sticky/roots", "sticky/mine")) != EPERM ||
	       ERRNO_OF(rmdir("sticky/roots-dir")) != EPERM ||
	       ERRNO_OF(rename("sticky/users", "sticky/roots")) != EPERM ||
	       ERRNO_OF(rename("sticky/users", "sticky/users2")) != 0 ||
	       ERRNO_OF(unlink("sticky/users2")) != 0;
}

static void check_sticky(void)
{
	CHECK(mkdir("sticky", 0755) == 0 && chmod("sticky", 01777) == 0);
	posix_make("sticky/roots", "x");
	posix_make("sticky/users", "x");
	CHECK(mkdir("sticky/roots-dir", 0755) == 0);
	CHECK(chown("sticky/users", USER, USER) == 0);
	CHECK(posix_as_user(USER, USER, user_meets_sticky));
}

/* ---- Owners and modes ---- */

static int user_changes_own(void)
{
	return ERRNO_OF(chmod("mine", 0640)) != 0 ||
	       ERRNO_OF(chown("mine", OTHER, -1)) != EPERM ||
	       ERRNO_OF(chown("mine", -1, OTHER)) != EPERM ||
	       ERRNO_OF(chown("mine", USER, USER)) != 0 ||
	       /* Not of the file's group: set-gid can't be had. */
	       ERRNO_OF(chmod("foreign-group", 02755)) != 0;
}

static void check_chmod_chown(void)
{
	struct stat st;

	posix_make("mine", "x");
	posix_make("foreign-group", "x");
	CHECK(chown("mine", USER, USER) == 0);
	CHECK(chown("foreign-group", USER, OTHER) == 0);
	CHECK(posix_as_user(USER, USER, user_changes_own));
	CHECK(mode_of("mine") == 0640);
	CHECK(mode_of("foreign-group") == 0755);
	CHECK(chmod("mine", 07777) == 0 && mode_of("mine") == 07777);
	CHECK(chown("mine", 1, -1) == 0);
	st = posix_stat("mine");
	CHECK(st.st_uid == 1 && st.st_gid == USER);
	CHECK(chown("mine", 4000000000u, 4100000000u) == 0);
	st = posix_stat("mine");
	CHECK(st.st_uid == 4000000000u && st.st_gid == 4100000000u);
}

static int user_keeps_same_owner(void)
{
	return ERRNO_OF(chown("own", -1, USER)) != 0 ||
	       /* ext4 refuses, we can only do nothing. */
	       (chown("roots", -1, -1) && errno != EPERM) ||
	       ERRNO_OF(chown("plain", -1, -1)) != 0;
}

/* chown drops suid and, with group execution, sgid: for root too. */
static void check_chown_drops_suid(void)
{
	posix_make("f", "x");
	CHECK(chmod("f", 06755) == 0 && chown("f", 1, 1) == 0);
	CHECK(mode_of("f") == 0755);
	CHECK(chmod("f", 02644) == 0 && chown("f", 2, 2) == 0);
	CHECK((mode_of("f") & ~02000u) == 0644);
	CHECK(mkfifo("p", 0755) == 0 && chmod("p", 06755) == 0);
	CHECK(chown("p", 1, 1) == 0 && mode_of("p") == 0755);
	CHECK(mkdir("d", 0755) == 0 && chmod("d", 06755) == 0);
	CHECK(chown("d", 1, 1) == 0);
	CHECK(mode_of("d") == 06755);
	posix_make("own", "x");
	CHECK(chown("own", USER, USER) == 0 && chmod("own", 06755) == 0);
	posix_make("roots", "x");
	CHECK(chmod("roots", 06755) == 0);
	posix_make("plain", "x");
	CHECK(posix_as_user(USER, USER, user_keeps_same_owner));
	CHECK(mode_of("own") == 0755 && mode_of("roots") == 06755);
}

static int write_to(const char *name, int flags)
{
	int fd = open(name, O_WRONLY | flags);
	int rc = ERRNO_OF(fd);

	if (!rc && !(flags & O_TRUNC))
		rc = ERRNO_OF(write(fd, "y", 1));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int user_writes_suid(void)
{
	return write_to("w", 0) || write_to("t", O_TRUNC) ||
	       ERRNO_OF(truncate("c", 0)) || write_to("g", 0);
}

static void check_write_drops_suid(void)
{
	static const char *const names[] = { "w", "t", "c", "g", "root" };
	size_t i;

	for (i = 0; i < 5; i++) {
		posix_make(names[i], "text");
		CHECK(chmod(names[i], 06777) == 0);
	}
	CHECK(chmod("g", 02767) == 0);
	CHECK(posix_as_user(USER, USER, user_writes_suid));
	CHECK(mode_of("w") == 0777);
	CHECK(mode_of("t") == 0777);
	CHECK(mode_of("c") == 0777);
	/* Without group execution: it goes with whoever is not of the group. */
	CHECK(mode_of("g") == 0767);
	CHECK(write_to("root", 0) == 0);
	CHECK(mode_of("root") == 06777);
}

/* What execve(2) goes by: the mode, and no more than that, is asked for. */
static uint32_t executed_mode(const char *name)
{
	struct statx st = { 0 };

	CHECK(statx(AT_FDCWD, name, 0, STATX_MODE, &st) == 0);
	return st.stx_mode & 07777;
}

static int change_file(int fd, char how)
{
	static const char text[8192];
	loff_t from = 0, to = 4096;

	switch (how) {
	case 'w':
		return ERRNO_OF(write(fd, "y", 1));
	case 'f':
		return ERRNO_OF(fallocate(fd, 0, 0, 10000));
	case 'p':
		return ERRNO_OF(fallocate(fd, FALLOC_FL_PUNCH_HOLE |
					  FALLOC_FL_KEEP_SIZE, 0, 4096));
	case 'z':
		return ERRNO_OF(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096));
	default:
		return ERRNO_OF(write(fd, text, sizeof(text))) ||
		       ERRNO_OF(copy_file_range(fd, &from, fd, &to, 4096, 0));
	}
}

static const char change_kinds[] = "wfpzc";

static int user_changes_suid(void)
{
	char name[2] = "";
	const char *how;
	int rc = 0, fd;

	for (how = change_kinds; *how && !rc; how++) {
		name[0] = *how;
		fd = open(name, O_RDWR);
		rc = fd < 0 || change_file(fd, *how) ||
		     executed_mode(name) != 0777;
		close(fd);
	}
	return rc;
}

/* Whoever changes another's program cannot run it with its owner's rights: not
 * even at once. */
static void check_changed_is_not_suid(void)
{
	char name[2] = "";
	const char *how;

	for (how = change_kinds; *how; how++) {
		name[0] = *how;
		posix_make(name, "text");
		CHECK(chmod(name, 06777) == 0);
	}
	CHECK(posix_as_user(USER, USER, user_changes_suid));
	for (how = change_kinds; *how; how++) {
		name[0] = *how;
		CHECK(executed_mode(name) == 0777);
	}
}

static void check_set_gid_directory(void)
{
	CHECK(mkdir("d", 0755) == 0);
	CHECK(chown("d", 0, OTHER) == 0 && chmod("d", 02755) == 0);
	posix_make("d/file", "x");
	CHECK(mkdir("d/sub", 0755) == 0);
	CHECK(symlink("x", "d/link") == 0 && mkfifo("d/fifo", 0644) == 0);
	CHECK(posix_stat("d/file").st_gid == OTHER);
	CHECK(posix_stat("d/sub").st_gid == OTHER);
	CHECK(posix_stat("d/link").st_gid == OTHER);
	CHECK(posix_stat("d/fifo").st_gid == OTHER);
	CHECK(mode_of("d/sub") == 02755);
	CHECK(mode_of("d/file") == 0644);
}

static void check_umask(void)
{
	umask(027);
	CHECK(close(open("f", O_CREAT | O_WRONLY, 0666)) == 0);
	CHECK(mkdir("d", 0777) == 0);
	CHECK(mkfifo("p", 0666) == 0);
	CHECK(mode_of("f") == 0640 && mode_of("d") == 0750);
	CHECK(mode_of("p") == 0640);
	umask(0);
	CHECK(close(open("g", O_CREAT | O_WRONLY, 07777)) == 0);
	CHECK(mode_of("g") == 07777);
	/* What was just created may be written whatever its mode. */
	CHECK(close(open("h", O_CREAT | O_RDWR, 0)) == 0);
	CHECK(mode_of("h") == 0);
}

static int user_opens_new(void)
{
	int fd = open("dir/h", O_CREAT | O_RDWR, 0400);

	return fd < 0 || write(fd, "x", 1) != 1;
}

static void check_new_file_open(void)
{
	CHECK(mkdir("dir", 0755) == 0 && chown("dir", USER, USER) == 0);
	CHECK(posix_as_user(USER, USER, user_opens_new));
	CHECK(posix_stat("dir/h").st_uid == USER && mode_of("dir/h") == 0400);
}

/* ---- Times ---- */

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec ||
	       (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Which times of `name` a step has moved: 'm' and 'c'. */
static void moved(const char *name, const struct stat *before, char *out)
{
	struct stat st = posix_stat(name);

	if (later(st.st_mtim, before->st_mtim))
		*out++ = 'm';
	if (later(st.st_ctim, before->st_ctim))
		*out++ = 'c';
	*out = 0;
}

#define MOVES(name, wanted, step)                   \
	do {                                        \
		struct stat before_ = posix_stat(name); \
		char got_[3];                       \
		posix_tick();                       \
		CHECK((step) == 0);                 \
		moved(name, &before_, got_);        \
		CHECK(!strcmp(got_, wanted));       \
	} while (0)

/* What was just written is in the kernel's cache. */
static void check_cached_read(void)
{
	struct stat before;
	char c;
	int fd;

	posix_make("f", "x");
	before = posix_stat("f");
	posix_tick();
	fd = open("f", O_RDONLY);
	CHECK(read(fd, &c, 1) == 1 && close(fd) == 0);
	CHECK(later(posix_stat("f").st_atim, before.st_atim));
	before = posix_stat("f");
	posix_tick();
	fd = open("f", O_RDONLY);
	CHECK(read(fd, &c, 1) == 1 && close(fd) == 0);
	CHECK(!later(posix_stat("f").st_atim, before.st_atim));
}

static void check_directory_times(void)
{
	CHECK(mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0);
	posix_make("f", "x");
	MOVES("d", "mc", close(open("d/a", O_CREAT | O_WRONLY, 0644)));
	MOVES("d", "mc", mkdir("d/b", 0755));
	MOVES("d", "mc", symlink("x", "d/s"));
	MOVES("d", "mc", mkfifo("d/p", 0644));
	MOVES("d", "mc", link("f", "d/f"));
	MOVES("f", "c", link("f", "d/f2"));
	MOVES("f", "c", unlink("d/f2"));
	MOVES("d", "mc", rename("d/a", "d/a2"));
	MOVES("d", "mc", rename("d/a2", "e/a"));
	MOVES("e", "mc", rename("e/a", "d/a"));
	MOVES("f", "c", rename("d/f", "d/f3"));
}

static void check_directory_times_removal(void)
{
	CHECK(mkdir("d", 0755) == 0 && mkdir("d/b", 0755) == 0);
	posix_make("d/a", "x");
	MOVES("d", "mc", unlink("d/a"));
	MOVES("d", "mc", rmdir("d/b"));
	MOVES("d", "c", chmod("d", 0700));
	MOVES("d", "c", chown("d", 1, 1));
	MOVES("d", "c", setxattr("d", "user.x", "1", 1, 0));
}

static int append_to(const char *name)
{
	int fd = open(name, O_WRONLY | O_APPEND);
	int bad = fd < 0 || write(fd, "more", 4) != 4;

	return bad | close(fd);
}

static void check_file_times(void)
{
	struct timespec times[2] = { { 1, 5 }, { 15000000000, 999999999 } };
	struct timespec omit[2] = { { 0, UTIME_OMIT }, { 7, 8 } };
	struct stat st;

	posix_make("f", "x");
	MOVES("f", "mc", append_to("f"));
	MOVES("f", "mc", truncate("f", 2));
	MOVES("f", "mc", truncate("f", 2000));
	MOVES("f", "c", chmod("f", 0600));
	MOVES("f", "c", setxattr("f", "user.x", "1", 1, 0));
	MOVES("f", "c", removexattr("f", "user.x"));
	CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0);
	st = posix_stat("f");
	CHECK(st.st_atim.tv_sec == 1 && st.st_atim.tv_nsec == 5);
	CHECK(st.st_mtim.tv_sec == 15000000000 &&
	      st.st_mtim.tv_nsec == 999999999);
	CHECK(utimensat(AT_FDCWD, "f", omit, 0) == 0);
	st = posix_stat("f");
	CHECK(st.st_atim.tv_sec == 1 && st.st_mtim.tv_sec == 7 &&
	      st.st_mtim.tv_nsec == 8);
	times[0].tv_sec = -1000;
	CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0);
	CHECK(posix_stat("f").st_atim.tv_sec == -1000);
	CHECK(utimensat(AT_FDCWD, "f", NULL, 0) == 0);
	CHECK(posix_stat("f").st_mtim.tv_sec > 1600000000);
}

static int user_sets_times(void)
{
	struct timespec times[2] = { { 1, 5 }, { 2, 6 } };

	return ERRNO_OF(utimensat(AT_FDCWD, "open", NULL, 0)) != 0 ||
	       ERRNO_OF(utimensat(AT_FDCWD, "open", times, 0)) != EPERM ||
	       ERRNO_OF(utimensat(AT_FDCWD, "shut", NULL, 0)) != EACCES;
}

static void check_times_rights(void)
{
	posix_make("open", "x");
	posix_make("shut", "x");
	CHECK(chmod("open", 0666) == 0);
	CHECK(posix_as_user(USER, USER, user_sets_times));
}

static void check_birth_time(void)
{
	struct statx x;

	posix_make("f", "x");
	CHECK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS | STATX_BTIME, &x) ==
	      0);
	CHECK(x.stx_mask & STATX_BTIME);
	CHECK(x.stx_btime.tv_sec > 1600000000);
	CHECK(x.stx_btime.tv_sec <= x.stx_mtime.tv_sec);
}

/* ---- Extended attributes ---- */

static int user_lists_xattrs(void)
{
	char buf[256];
	ssize_t n = listxattr("f", buf, sizeof(buf));

	return n < 0 || memmem(buf, n, "trusted.t", 10) ||
	       !memmem(buf, n, "user.empty", 11);
}

static void check_xattrs(void)
{
	char buf[256];
	ssize_t n;

	posix_make("f", "x");
	CHECK(symlink("f", "s") == 0);
	CHECK(setxattr("f", "user.a", "one", 3, XATTR_CREATE) == 0);
	FAILS_WITH(EEXIST, setxattr("f", "user.a", "x", 1, XATTR_CREATE));
	FAILS_WITH(ENODATA, setxattr("f", "user.b", "x", 1, XATTR_REPLACE));
	CHECK(setxattr("f", "user.a", "three", 5, XATTR_REPLACE) == 0);
	CHECK(getxattr("f", "user.a", buf, sizeof(buf)) == 5);
	CHECK(!memcmp(buf, "three", 5));
	CHECK(getxattr("f", "user.a", NULL, 0) == 5);
	FAILS_WITH(ERANGE, getxattr("f", "user.a", buf, 4));
	FAILS_WITH(ENODATA, getxattr("f", "user.none", buf, 4));
	FAILS_WITH(ENODATA, removexattr("f", "user.none"));
	FAILS_WITH(EOPNOTSUPP, setxattr("f", "foo", "x", 1, 0));
	FAILS_WITH(EOPNOTSUPP, setxattr("f", "foo.bar", "x", 1, 0));
	CHECK(setxattr("f", "user.empty", "", 0, 0) == 0);
	CHECK(getxattr("f", "user.empty", buf, sizeof(buf)) == 0);
	CHECK(setxattr("f", "trusted.t", "t", 1, 0) == 0);
	CHECK(setxattr("f", "security.s", "s", 1, 0) == 0);
	FAILS_WITH(EPERM, lsetxattr("s", "user.a", "x", 1, 0));
	CHECK(lsetxattr("s", "trusted.a", "x", 1, 0) == 0);
	n = listxattr("f", buf, sizeof(buf));
	CHECK(n > 0 && memmem(buf, n, "user.a", 7));
	CHECK(memmem(buf, n, "user.empty", 11));
	CHECK(memmem(buf, n, "trusted.t", 10));
	CHECK(!memmem(buf, n, "trax.", 5));
	CHECK(posix_as_user(USER, USER, user_lists_xattrs));
	FAILS_WITH(ERANGE, listxattr("f", buf, 3));
	CHECK(removexattr("f", "user.a") == 0);
	FAILS_WITH(ENODATA, getxattr("f", "user.a", buf, 4));
}

static void check_large_xattrs(void)
{
	char *value = malloc(65536), *back = malloc(65536), name[64];
	unsigned i;
	int error;

	for (i = 0; i < 65536; i++)
		value[i] = (char)(i * 7 + i / 256);
	posix_make("f", "x");
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "user.many-%u", i);
		CHECK(setxattr("f", name, value, 150, 0) == 0);
	}
	error = ERRNO_OF(setxattr("f", "user.large", value, 65536, 0));
	if (!error) {
		CHECK(getxattr("f", "user.large", back, 65536) == 65536);
		CHECK(!memcmp(value, back, 65536));
		CHECK(setxattr("f", "user.large", value, 10, 0) == 0);
		CHECK(getxattr("f", "user.large", back, 65536) == 10);
	} else {
		/* ext4 has no room for it. */
		CHECK(error == ENOSPC || error == E2BIG);
	}
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "user.many-%u", i);
		CHECK(getxattr("f", name, back, 65536) == 150);
		CHECK(removexattr("f", name) == 0);
	}
	free(value);
	free(back);
}

/* ---- ACLs ---- */

struct acl {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry entry[5];
};

/* Owner rwx, user USER as given, group none, mask rwx, others none. */
static struct acl make_acl(unsigned user_perm)
{
	return (struct acl){
		{ POSIX_ACL_XATTR_VERSION },
		{ { ACL_USER_OBJ, 7, ACL_UNDEFINED_ID },
		  { ACL_USER, (uint16_t)user_perm, USER },
		  { ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID },
		  { ACL_MASK, 7, ACL_UNDEFINED_ID },
		  { ACL_OTHER, 0, ACL_UNDEFINED_ID } },
	};
}

static int user_reads_acl_file(void)
{
	return ERRNO_OF(open("f", O_RDONLY)) != 0 ||
	       ERRNO_OF(open("f", O_WRONLY)) != EACCES;
}

static int other_is_kept_out(void)
{
	return ERRNO_OF(open("f", O_RDONLY)) != EACCES;
}

static void check_acl(void)
{
	struct acl acl = make_acl(4), back;

	posix_make("f", "x");
	CHECK(setxattr("f", "system.posix_acl_access", &acl, sizeof(acl), 0) ==
	      0);
	CHECK(mode_of("f") == 0770);
	CHECK(posix_as_user(USER, USER, user_reads_acl_file));
	CHECK(posix_as_user(OTHER, OTHER, other_is_kept_out));
	/* chmod changes the mask. */
	CHECK(chmod("f", 0700) == 0);
	CHECK(posix_as_user(USER, USER, other_is_kept_out));
	CHECK(getxattr("f", "system.posix_acl_access", &back, sizeof(back)) ==
	      sizeof(back));
	CHECK(back.entry[3].e_tag == ACL_MASK && back.entry[3].e_perm == 0);
	CHECK(removexattr("f", "system.posix_acl_access") == 0);
	FAILS_WITH(ENODATA, getxattr("f", "system.posix_acl_access", &back,
				     sizeof(back)));
}

static void check_default_acl(void)
{
	struct acl acl = make_acl(5), back;

	umask(077);
	CHECK(mkdir("d", 0755) == 0);
	CHECK(setxattr("d", "system.posix_acl_default", &acl, sizeof(acl),
		       0) == 0);
	CHECK(close(open("d/f", O_CREAT | O_WRONLY, 0664)) == 0);
	CHECK(mkdir("d/sub", 0777) == 0);
	/* The umask does not count where a default ACL rules. */
	CHECK(mode_of("d/f") == 0660);
	CHECK(mode_of("d/sub") == 0770);
	CHECK(getxattr("d/f", "system.posix_acl_access", &back,
		       sizeof(back)) == sizeof(back));
	CHECK(back.entry[1].e_id == USER && back.entry[1].e_perm == 5);
	CHECK(back.entry[3].e_perm == 6);
	CHECK(getxattr("d/sub", "system.posix_acl_default", &back,
		       sizeof(back)) == sizeof(back));
	FAILS_WITH(ENODATA, getxattr("d/f", "system.posix_acl_default", &back,
				     sizeof(back)));
	FAILS_WITH(EACCES, setxattr("d/f", "system.posix_acl_default", &acl,
				    sizeof(acl), 0));
}

static int user_sets_acl(void)
{
	struct acl acl = make_acl(4);

	return ERRNO_OF(setxattr("f", "system.posix_acl_access", &acl,
				 sizeof(acl), 0));
}

/* An owner who is not of the file's group loses set-gid by an ACL. */
static void check_acl_drops_sgid(void)
{
	posix_make("f", "x");
	CHECK(chown("f", USER, OTHER) == 0 && chmod("f", 02755) == 0);
	CHECK(posix_as_user(USER, USER, user_sets_acl));
	CHECK(!(mode_of("f") & 02000));
}

/* ---- Flags ---- */

static int set_flags(const char *name, int flags)
{
	int fd = open(name, O_RDONLY);
	int all = 0, back = 0;
	int rc = ioctl(fd, FS_IOC_GETFLAGS, &all);

	all = (all & ~(FS_IMMUTABLE_FL | FS_APPEND_FL)) | flags;
	if (!rc)
		rc = ioctl(fd, FS_IOC_SETFLAGS, &all);
	if (!rc)
		rc = ioctl(fd, FS_IOC_GETFLAGS, &back);
	close(fd);
	return rc || back != all;
}

static void check_immutable(void)
{
	int fd;

	posix_make("f", "text");
	posix_make("g", "text");
	fd = open("f", O_RDWR);
	CHECK(set_flags("f", FS_IMMUTABLE_FL) == 0);
	FAILS_WITH(EPERM, fallocate(fd, 0, 0, 10));
	FAILS_WITH(EPERM, copy_file_range(open("g", O_RDONLY), NULL, fd, NULL,
					  3, 0));
	CHECK(close(fd) == 0 && unlink("g") == 0);
	FAILS_WITH(EPERM, unlink("f"));
	FAILS_WITH(EPERM, rename("f", "g"));
	FAILS_WITH(EPERM, link("f", "g"));
	FAILS_WITH(EPERM, chmod("f", 0600));
	FAILS_WITH(EPERM, chown("f", 1, 1));
	FAILS_WITH(EPERM, truncate("f", 0));
	FAILS_WITH(EPERM, open("f", O_WRONLY));
	FAILS_WITH(EPERM, open("f", O_RDWR | O_APPEND));
	FAILS_WITH(EPERM, open("f", O_CREAT | O_WRONLY, 0644));
	FAILS_WITH(EPERM, open("f", O_WRONLY | O_TRUNC));
	CHECK(close(open("f", O_RDONLY)) == 0);
	FAILS_WITH(EPERM, setxattr("f", "user.x", "x", 1, 0));
	CHECK(set_flags("f", 0) == 0);
	CHECK(unlink("f") == 0);
}

static void check_append_only(void)
{
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	int fd;

	posix_make("f", "x");
	fd = open("f", O_RDWR);
	CHECK(set_flags("f", FS_APPEND_FL) == 0);
	CHECK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10) == 0);
	FAILS_WITH(EPERM, fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 10));
	CHECK(close(fd) == 0);
	FAILS_WITH(EPERM, unlink("f"));
	FAILS_WITH(EPERM, truncate("f", 0));
	FAILS_WITH(EPERM, open("f", O_WRONLY));
	FAILS_WITH(EPERM, open("f", O_RDWR | O_TRUNC | O_APPEND));
	CHECK(append_to("f") == 0);
	CHECK(utimensat(AT_FDCWD, "f", NULL, 0) == 0);
	FAILS_WITH(EPERM, utimensat(AT_FDCWD, "f", old, 0));
	CHECK(set_flags("f", 0) == 0);
	CHECK(unlink("f") == 0);
}

static void check_xflags(void)
{
	struct fsxattr x = { 0 };
	int fd;

	posix_make("f", "x");
	fd = open("f", O_RDONLY);
	CHECK(ioctl(fd, FS_IOC_FSGETXATTR, &x) == 0);
	x.fsx_xflags |= FS_XFLAG_NODUMP;
	CHECK(ioctl(fd, FS_IOC_FSSETXATTR, &x) == 0);
	CHECK(ioctl(fd, FS_IOC_FSGETXATTR, &x) == 0);
	CHECK(x.fsx_xflags & FS_XFLAG_NODUMP);
	CHECK(close(fd) == 0);
}

const struct posix_check posix_checks_rights[] = {
	{ "access", check_access },
	{ "sticky", check_sticky },
	{ "chmod-chown", check_chmod_chown },
	{ "chown-drops-suid", check_chown_drops_suid },
	{ "write-drops-suid", check_write_drops_suid },
	{ "what is changed is not set-uid", check_changed_is_not_suid },
	{ "set-gid-directory", check_set_gid_directory },
	{ "umask", check_umask },
	{ "new-file-open", check_new_file_open },
	{ "a cached read is an access", check_cached_read },
	{ "directory-times", check_directory_times },
	{ "directory-times-removal", check_directory_times_removal },
	{ "file-times", check_file_times },
	{ "times-rights", check_times_rights },
	{ "birth-time", check_birth_time },
	{ "xattrs", check_xattrs },
	{ "large-xattrs", check_large_xattrs },
	{ "acl", check_acl },
	{ "default-acl", check_default_acl },
	{ "acl-drops-sgid", check_acl_drops_sgid },
	{ "immutable", check_immutable },
	{ "append-only", check_append_only },
	{ "xflags", check_xflags },
	{ NULL, NULL },
};
