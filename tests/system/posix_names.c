/*
 * posix_names.c - names, directories, links.
 */
#include "tests/system/posix_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static void fill_name(char *name, size_t bytes)
{
	memset(name, 'n', bytes);
	name[bytes] = 0;
}

static void check_long_names(void)
{
	char longest[256], too_long[257];
	struct stat st;

	fill_name(longest, 255);
	fill_name(too_long, 256);
	posix_make(longest, "x");
	CHECK(stat(longest, &st) == 0);
	CHECK(rename(longest, "short") == 0);
	CHECK(link("short", longest) == 0);
	CHECK(unlink(longest) == 0);
	CHECK(mkdir(longest, 0755) == 0 && rmdir(longest) == 0);
	FAILS_WITH(ENAMETOOLONG, open(too_long, O_CREAT | O_WRONLY, 0644));
	FAILS_WITH(ENAMETOOLONG, open(too_long, O_RDONLY));
	FAILS_WITH(ENAMETOOLONG, stat(too_long, &st));
	FAILS_WITH(ENAMETOOLONG, mkdir(too_long, 0755));
	FAILS_WITH(ENAMETOOLONG, rmdir(too_long));
	FAILS_WITH(ENAMETOOLONG, unlink(too_long));
	FAILS_WITH(ENAMETOOLONG, mkfifo(too_long, 0644));
	FAILS_WITH(ENAMETOOLONG, symlink("x", too_long));
	FAILS_WITH(ENAMETOOLONG, link("short", too_long));
	FAILS_WITH(ENAMETOOLONG, rename("short", too_long));
	FAILS_WITH(ENAMETOOLONG, rename(too_long, "short"));
	FAILS_WITH(ENAMETOOLONG, chmod(too_long, 0644));
	FAILS_WITH(ENAMETOOLONG, truncate(too_long, 0));
}

static void check_very_long_names(void)
{
	char name[1100];
	struct stat st;

	fill_name(name, 1025);
	FAILS_WITH(ENAMETOOLONG, stat(name, &st));
	FAILS_WITH(ENAMETOOLONG, open(name, O_CREAT | O_WRONLY, 0644));
}

static void check_not_a_directory(void)
{
	struct stat st;

	posix_make("file", "x");
	FAILS_WITH(ENOTDIR, open("file/x", O_CREAT | O_WRONLY, 0644));
	FAILS_WITH(ENOTDIR, stat("file/x", &st));
	FAILS_WITH(ENOTDIR, mkdir("file/x", 0755));
	FAILS_WITH(ENOTDIR, rmdir("file"));
	FAILS_WITH(ENOTDIR, unlink("file/x"));
	FAILS_WITH(ENOTDIR, open("file", O_RDONLY | O_DIRECTORY));
	FAILS_WITH(ENOTDIR, rename("file/x", "y"));
	FAILS_WITH(ENOTDIR, link("file/x", "y"));
	FAILS_WITH(ENOTDIR, chdir("file"));
	FAILS_WITH(ENOENT, stat("nothing/x", &st));
	FAILS_WITH(ENOENT, open("nothing", O_RDONLY));
	FAILS_WITH(ENOENT, unlink("nothing"));
	FAILS_WITH(ENOENT, rename("nothing", "x"));
}

static void check_exists(void)
{
	posix_make("file", "x");
	CHECK(mkdir("dir", 0755) == 0);
	CHECK(symlink("nowhere", "link") == 0);
	FAILS_WITH(EEXIST, mkdir("file", 0755));
	FAILS_WITH(EEXIST, mkdir("dir", 0755));
	FAILS_WITH(EEXIST, mkdir("link", 0755));
	FAILS_WITH(EEXIST, open("file", O_CREAT | O_EXCL | O_WRONLY, 0644));
	FAILS_WITH(EEXIST, open("link", O_CREAT | O_EXCL | O_WRONLY, 0644));
	FAILS_WITH(EEXIST, symlink("x", "file"));
	FAILS_WITH(EEXIST, link("file", "dir"));
	FAILS_WITH(EEXIST, mkfifo("file", 0644));
	FAILS_WITH(EISDIR, open("dir", O_WRONLY));
	FAILS_WITH(EISDIR, unlink("dir"));
	FAILS_WITH(EPERM, link("dir", "hard"));
}

static void check_symlinks(void)
{
	char target[PATH_MAX], buf[PATH_MAX];
	struct stat st;

	fill_name(target, PATH_MAX - 1);
	CHECK(symlink(target, "long") == 0);
	CHECK(readlink("long", buf, sizeof(buf)) == PATH_MAX - 1);
	CHECK(!memcmp(target, buf, PATH_MAX - 1));
	CHECK(lstat("long", &st) == 0 && S_ISLNK(st.st_mode) &&
	      st.st_size == PATH_MAX - 1);
	CHECK(symlink("loop", "loop") == 0);
	FAILS_WITH(ELOOP, stat("loop", &st));
	FAILS_WITH(ELOOP, open("loop", O_RDONLY));
	FAILS_WITH(ELOOP, open("long", O_RDONLY | O_NOFOLLOW));
	FAILS_WITH(ENOENT, symlink("", "empty"));
	posix_make("file", "x");
	FAILS_WITH(EINVAL, readlink("file", buf, sizeof(buf)));
	CHECK(symlink("file", "good") == 0);
	CHECK(stat("good", &st) == 0 && S_ISREG(st.st_mode));
	CHECK(lchown("good", 5, 6) == 0);
	CHECK(lstat("good", &st) == 0 && st.st_uid == 5 && st.st_gid == 6);
}

static void check_links(void)
{
	struct stat st;
	int fd;

	posix_make("a", "text");
	CHECK(link("a", "b") == 0);
	CHECK(posix_stat("a").st_nlink == 2);
	CHECK(posix_stat("a").st_ino == posix_stat("b").st_ino);
	CHECK(unlink("a") == 0);
	CHECK(posix_stat("b").st_nlink == 1);
	CHECK(symlink("b", "s") == 0 && link("s", "s2") == 0);
	CHECK(posix_stat("s2").st_nlink == 2);
	CHECK(mkfifo("p", 0644) == 0 && link("p", "p2") == 0);
	fd = open("b", O_RDWR);
	CHECK(unlink("b") == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 4);
	CHECK(ftruncate(fd, 100) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 100);
	CHECK(fchmod(fd, 0600) == 0);
	CHECK(close(fd) == 0);
}

static void check_directory_links(void)
{
	CHECK(posix_stat(".").st_nlink == 2);
	CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
	CHECK(posix_stat(".").st_nlink == 4);
	CHECK(rename("a", "b/a") == 0);
	CHECK(posix_stat(".").st_nlink == 3);
	CHECK(posix_stat("b").st_nlink == 3);
	FAILS_WITH(ENOTEMPTY, rmdir("b"));
	FAILS_WITH(EINVAL, rmdir("b/."));
	FAILS_WITH(ENOTEMPTY, rmdir("b/.."));
	CHECK(rmdir("b/a") == 0 && rmdir("b") == 0);
	CHECK(posix_stat(".").st_nlink == 2);
}

static void check_special_files(void)
{
	struct sockaddr_un address = { AF_UNIX, "socket" };
	struct stat st;
	int fd;

	CHECK(mkfifo("fifo", 0640) == 0);
	CHECK(stat("fifo", &st) == 0 && S_ISFIFO(st.st_mode) &&
	      (st.st_mode & 0777) == 0640);
	CHECK(mknod("char", S_IFCHR | 0600, makedev(1, 3)) == 0);
	CHECK(stat("char", &st) == 0 && S_ISCHR(st.st_mode) &&
	      st.st_rdev == makedev(1, 3));
	fd = open("char", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	CHECK(mknod("block", S_IFBLK | 0600, makedev(259, 300000)) == 0);
	CHECK(stat("block", &st) == 0 && S_ISBLK(st.st_mode) &&
	      st.st_rdev == makedev(259, 300000));
	CHECK(mknod("plain", S_IFREG | 0600, 0) == 0);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(stat("socket", &st) == 0 && S_ISSOCK(st.st_mode));
	CHECK(close(fd) == 0);
	CHECK(unlink("fifo") == 0 && unlink("char") == 0);
}

/* What may be renamed over what. */
static void check_rename_kinds(void)
{
	CHECK(mkdir("d1", 0755) == 0 && mkdir("d2", 0755) == 0);
	CHECK(mkdir("full", 0755) == 0);
	posix_make("full/x", "x");
	posix_make("f1", "1");
	posix_make("f2", "2");
	FAILS_WITH(EISDIR, rename("f1", "d1"));
	FAILS_WITH(ENOTDIR, rename("d1", "f1"));
	FAILS_WITH(ENOTEMPTY, rename("d1", "full"));
	FAILS_WITH(EINVAL, rename("d1", "d1/sub"));
	CHECK(rename("d1", "d2") == 0);
	CHECK(rename("full", "d2") == 0);
	CHECK(posix_stat("d2/x").st_size == 1);
	CHECK(rename("f1", "f2") == 0);
	FAILS_WITH(ENOENT, access("f1", F_OK));
	CHECK(rename("f2", "f2") == 0);
	CHECK(link("f2", "f3") == 0);
	CHECK(rename("f2", "f3") == 0);
	CHECK(access("f2", F_OK) == 0 && access("f3", F_OK) == 0);
	CHECK(symlink("f2", "s") == 0 && rename("s", "f3") == 0);
	CHECK(S_ISLNK(posix_stat("f3").st_mode));
	CHECK(posix_stat("f2").st_nlink == 1);
}

static void check_rename_flags(void)
{
	ino_t a, d;

	posix_make("a", "a");
	posix_make("b", "bb");
	CHECK(mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0);
	a = posix_stat("a").st_ino;
	d = posix_stat("d").st_ino;
	FAILS_WITH(EEXIST, renameat2(AT_FDCWD, "a", AT_FDCWD, "b",
				     RENAME_NOREPLACE));
	CHECK(renameat2(AT_FDCWD, "a", AT_FDCWD, "c", RENAME_NOREPLACE) == 0);
	CHECK(renameat2(AT_FDCWD, "c", AT_FDCWD, "b", RENAME_EXCHANGE) == 0);
	CHECK(posix_stat("b").st_ino == a && posix_stat("b").st_size == 1);
	CHECK(posix_stat("c").st_size == 2);
	FAILS_WITH(ENOENT, renameat2(AT_FDCWD, "b", AT_FDCWD, "none",
				     RENAME_EXCHANGE));
	/* A file and a directory of different parents change places. */
	CHECK(renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_EXCHANGE) == 0);
	CHECK(posix_stat("e").st_ino == d);
	posix_make("e/f", "f");
	CHECK(renameat2(AT_FDCWD, "d", AT_FDCWD, "e/f", RENAME_EXCHANGE) == 0);
	CHECK(S_ISDIR(posix_stat("e/f").st_mode));
	CHECK(S_ISREG(posix_stat("d").st_mode));
	CHECK(posix_stat("e").st_nlink == 3);
	FAILS_WITH(EINVAL, renameat2(AT_FDCWD, "b", AT_FDCWD, "c",
				     RENAME_NOREPLACE | RENAME_EXCHANGE));
}

/* ".." of a directory that moved is the new parent. */
static void check_moved_parent(void)
{
	CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
	CHECK(mkdir("a/x", 0755) == 0);
	CHECK(rename("a/x", "b/x") == 0);
	CHECK(chdir("b/x") == 0);
	CHECK(posix_stat("..").st_ino == posix_stat("../../b").st_ino);
	CHECK(chdir("../..") == 0);
	FAILS_WITH(EINVAL, rename("b", "b/x/b"));
}

static void check_many_entries(void)
{
	enum { N = 3000 };
	char name[32], *seen = calloc(N, 1);
	struct dirent *e;
	long place = -1;
	unsigned count = 0, i;
	DIR *d;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
	d = opendir(".");
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "entry-%u", &i) == 1 && i < N)
			seen[i]++;
		if (++count == N / 2)
			place = telldir(d);
	}
	for (i = 0; i < N; i++)
		CHECK(seen[i] == 1);
	seekdir(d, place);
	for (i = 0; readdir(d); i++)
		continue;
	CHECK(i == count - N / 2);
	rewinddir(d);
	for (i = 0; readdir(d); i++)
		continue;
	CHECK(i == N + 2);
	closedir(d);
	free(seen);
}

/* Reads one piece of a directory; returns its bytes, 0 at the end.  Says
 * whether `name` was in it, and which name was the last one. */
static long read_piece(int fd, const char *name, bool *found, char *last)
{
	char buffer[4096];
	long bytes = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));
	const struct dirent64 *e;
	long at;

	CHECK(bytes >= 0);
	for (at = 0; at < bytes; at += e->d_reclen) {
		e = (const struct dirent64 *)(buffer + at);
		*found |= name && strcmp(e->d_name, name) == 0;
		strcpy(last, e->d_name);
	}
	return bytes;
}

/* A listing that was begun before a name was removed, and ends while another
 * one is under way, does not give that name to the other one. */
static void check_listings_beside_each_other(void)
{
	char name[32], gone[256], last[256];
	bool found = false;
	int before, after;
	unsigned i;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
	before = open(".", O_RDONLY | O_DIRECTORY);
	for (i = 0; i < 3; i++)
		CHECK(read_piece(before, NULL, &found, gone) > 0);
	CHECK(unlink(gone) == 0);
	after = open(".", O_RDONLY | O_DIRECTORY);
	CHECK(read_piece(after, gone, &found, last) > 0);
	while (read_piece(before, NULL, &found, last) > 0)
		continue;
	while (read_piece(after, gone, &found, last) > 0)
		continue;
	CHECK(!found);
	close(before);
	close(after);
}

/* Removing what has been read loses and repeats nothing. */
static void check_remove_while_reading(void)
{
	unsigned i, removed = 0;
	struct dirent *e;
	char name[32];
	DIR *d;

	for (i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		CHECK(mknod(name, S_IFREG | 0644, 0) == 0);
	}
	d = opendir(".");
	while ((e = readdir(d)))
		if (e->d_name[0] == 'e' && unlink(e->d_name) == 0)
			removed++;
	closedir(d);
	CHECK(removed == 2000);
	CHECK(chdir("..") == 0);
	CHECK(rmdir("remove-while-reading") == 0);
	CHECK(mkdir("remove-while-reading", 0755) == 0);
	CHECK(chdir("remove-while-reading") == 0);
}

static void check_removed_directory(void)
{
	struct stat st;
	int fd;

	CHECK(mkdir("d", 0755) == 0);
	fd = open("d", O_RDONLY | O_DIRECTORY);
	CHECK(rmdir("d") == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0);
	FAILS_WITH(ENOENT, openat(fd, "x", O_CREAT | O_WRONLY, 0644));
	FAILS_WITH(ENOENT, mkdirat(fd, "x", 0755));
	CHECK(close(fd) == 0);
}

static void check_odd_names(void)
{
	static const char *const names[] = { " ", "a b", "\\", "\n", "\xff\xfe",
					     "...", "-", "*" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		posix_make(names[i], names[i]);
		CHECK(posix_stat(names[i]).st_size == (off_t)strlen(names[i]));
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(unlink(names[i]) == 0);
}

static void check_tmpfile(void)
{
	char path[64];
	struct stat st;
	int fd = open(".", O_TMPFILE | O_RDWR, 0640);

	CHECK(fd >= 0);
	CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0 &&
	      (st.st_mode & 07777) == 0640);
	CHECK(write(fd, "text", 4) == 4);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW) ==
	      0);
	CHECK(close(fd) == 0);
	CHECK(posix_stat("named").st_nlink == 1);
	CHECK(posix_stat("named").st_size == 4);
	fd = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0640);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FAILS_WITH(ENOENT, linkat(AT_FDCWD, path, AT_FDCWD, "no",
				  AT_SYMLINK_FOLLOW));
	CHECK(close(fd) == 0);
}

static void check_handles(void)
{
	struct file_handle *h = malloc(sizeof(*h) + MAX_HANDLE_SZ);
	int id, fd, here = open(".", O_RDONLY | O_DIRECTORY);
	char text[4] = "";

	posix_make("file", "abc");
	h->handle_bytes = MAX_HANDLE_SZ;
	CHECK(name_to_handle_at(AT_FDCWD, "file", h, &id, 0) == 0);
	fd = open_by_handle_at(here, h, O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, 3) == 3 && !strcmp(text, "abc"));
	CHECK(close(fd) == 0);
	CHECK(unlink("file") == 0);
	FAILS_WITH(ESTALE, open_by_handle_at(here, h, O_RDONLY));
	CHECK(close(here) == 0);
	free(h);
}

const struct posix_check posix_checks_names[] = {
	{ "long-names", check_long_names },
	{ "very-long-names", check_very_long_names },
	{ "not-a-directory", check_not_a_directory },
	{ "exists", check_exists },
	{ "symlinks", check_symlinks },
	{ "links", check_links },
	{ "directory-links", check_directory_links },
	{ "special-files", check_special_files },
	{ "rename-kinds", check_rename_kinds },
	{ "rename-flags", check_rename_flags },
	{ "moved-parent", check_moved_parent },
	{ "many-entries", check_many_entries },
	{ "listings-beside-each-other", check_listings_beside_each_other },
	{ "remove-while-reading", check_remove_while_reading },
	{ "removed-directory", check_removed_directory },
	{ "odd-names", check_odd_names },
	{ "tmpfile", check_tmpfile },
	{ "handles", check_handles },
	{ NULL, NULL },
};
