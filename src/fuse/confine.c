/*
 * confine.c - capabilities, seccomp filter, descriptors.
 *
 * A system call that is not allowed fails with EPERM and does not end the
 * process: one that was forgotten in the list must not take a mount away.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "base/msg.h"
#include "fuse/confine.h"

/*
 * CAP_IPC_LOCK is kept because all memory is locked: without it allocations
 * beyond the limit of locked memory would fail.  Nothing else is needed: the
 * disk and the connection are open, and the process that unmounts was started
 * before.
 */
#define KEPT_CAPABILITIES (1ull << CAP_IPC_LOCK)

#define LAST_CAPABILITY 63	/* a set of capabilities has 64 bits */

/* LeakSanitizer traces the process from a second one, which takes a process
 * that may be dumped, and system calls that the filter does not allow. */
#ifdef __SANITIZE_ADDRESS__
#define IS_TRACED true
#else
#define IS_TRACED false
#endif

int confine_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd < 3);
	if (fd < 0 || close_range(3, ~0u, 0))
		return -errno;
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	uint64_t kept = KEPT_CAPABILITIES;
	int i;

	if (syscall(SYS_capget, &header, data))
		return -errno;
	/* Dropping from the bounding set takes CAP_SETPCAP, which may not be
	 * there: errors are ignored. */
	for (i = 0; i <= LAST_CAPABILITY; i++)
		if (!(kept >> i & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(kept >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

#ifdef HAVE_SECCOMP

static const int allowed[] = {
	/* The connection, the disk, signals, and what watches them. */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv),
	SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
	SCMP_SYS(io_uring_enter), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(poll),
	SCMP_SYS(ppoll), SCMP_SYS(close), SCMP_SYS(dup2), SCMP_SYS(dup3),
	SCMP_SYS(lseek), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
	SCMP_SYS(eventfd2),
	/* Memory; see below for mmap and mprotect. */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
	/* Time, random numbers. */
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(getrandom),
	/* Threads of coroutines; clone is below. */
	SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(sched_yield), SCMP_SYS(gettid), SCMP_SYS(getpid),
	SCMP_SYS(exit),
	/* The process that unmounts, the end, abort(3). */
	SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(restart_syscall), SCMP_SYS(tgkill), SCMP_SYS(exit_group),
	/* syslog(3); socket is below. */
	SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
};

/* Adds the system calls that are allowed with some arguments only. */
static int allow_some(scmp_filter_ctx filter)
{
	int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
				      SCMP_SYS(mprotect), 1,
				      SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC,
					      0));
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
				      SCMP_SYS(socket), 1,
				      SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	/* A remount shares the lock on the disk, or takes it. */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl),
				      1, SCMP_A1(SCMP_CMP_EQ, F_OFD_SETLK, 0));
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone),
				      1, SCMP_A0(SCMP_CMP_MASKED_EQ,
						 CLONE_THREAD, CLONE_THREAD));
	/* The flags of clone3 are in memory, where the filter can't see them;
	 * the C library uses clone when clone3 is missing. */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
				      SCMP_SYS(clone3), 0);
	return rc;
}

static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	size_t i;
	int rc;

	if (!filter)
		return -ENOMEM;
	rc = allow_some(filter);
	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!rc)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}

#else

static int filter_calls(void)
{
	return 0;
}

#endif

static int failed(const char *what, int rc)
{
	msg_error("%s: %s", what, strerror(-rc));
	return rc;
}

int confine(void)
{
	int rc;

	/* Both open a file when they are first used, so they are used now: the
	 * local time in lines of syslog(3), and the seed of hash tables. */
	tzset();
	json_object_seed(0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed("no_new_privs", -errno);
	rc = drop_capabilities();
	if (rc)
		return failed("dropping capabilities", rc);
	if (IS_TRACED)
		return 0;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return failed("not to be dumped", -errno);
	rc = filter_calls();
	return rc ? failed("seccomp filter", rc) : 0;
}
