/*
 * shell.h - what the benchmarks do to the machine around them: commands, small
 * files of the kernel, mounts.  All return 0 or a negative errno, reported.
 */
#ifndef TRAX_BENCH_SHELL_H
#define TRAX_BENCH_SHELL_H

/* Runs a shell command; -EIO when it fails. */
int shell_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Writes text to a file that exists. */
int shell_write(const char *path, const char *text);

/* Empties the kernel's caches of what is clean. */
int shell_drop_caches(void);

/* Reads the first word of a file. */
int shell_word(const char *path, char *word, unsigned bytes);

/* Unmounts, lazily when nothing else works. */
int shell_unmount(const char *mountpoint);

#endif
