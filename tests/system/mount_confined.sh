#!/bin/sh
# mount_confined.sh - what a daemon that serves a real mount cannot do any more:
# its rights as /proc shows them, descriptors that it does not hold, and that it
# works nevertheless, to the end.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
make_image 256M
"$tools/mkfs.traxfs" "$image" >/dev/null || fail mkfs

# A service manager is told that the mount stands: not sooner, and not by the
# name of what is mounted.
service_manager() {
	python3 - "$tools/traxfs" "$image" "$mnt" <<'END' || fail "not told"
import os, socket, subprocess, sys
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.bind("\0trax-test-%d" % os.getpid())
told.settimeout(60)
server = subprocess.Popen([sys.argv[1], "-f"] + sys.argv[2:], env=dict(
	os.environ, NOTIFY_SOCKET="@trax-test-%d" % os.getpid()))
if told.recv(100) != b"READY=1" or not os.path.ismount(sys.argv[3]):
	sys.exit("told, and nothing is mounted")
open(sys.argv[3] + "/x", "w").close()
server.terminate()
sys.exit(server.wait())
END
	wait_for_server
}

# NAME VALUE: a line of /proc/PID/task/TASK/status.
expect() {
	is=$(echo "$status" | sed -n "s/^$1:[[:space:]]*//p")
	[ "$is" = "$2" ] || fail "$1 is $is, not $2"
}

filtered() {
	grep -q '^#define HAVE_SECCOMP 1' "$top_builddir/config.h" 2>/dev/null ||
		grep -q 'DHAVE_SECCOMP=1' "$top_builddir/Makefile"
}

sanitized() {
	grep -q -- '-fsanitize=address' "$top_builddir/Makefile"
}

# All threads but those of the kernel: CAP_IPC_LOCK (2^14) at most.
check_rights() {
	pid=$(server)
	for task in "/proc/$pid/task"/*; do
		# Threads of measurements come and go.
		status=$(cat "$task/status" 2>/dev/null) || continue
		case $status in
		*iou-*) continue ;;
		esac
		expect CapInh 0000000000000000
		expect CapAmb 0000000000000000
		expect CapPrm 0000000000004000
		expect CapEff 0000000000004000
		expect CapBnd 0000000000004000
		expect NoNewPrivs 1
		sanitized || ! filtered || expect Seccomp 2
	done
	if ! sanitized; then
		poor sh -c 'sleep 1 & readlink /proc/$!/exe' >"$work/out" ||
			fail "an ordinary process cannot be looked at"
		poor readlink "/proc/$pid/exe" >/dev/null &&
			fail "the daemon can be looked at"
	fi
}

# Root without the right to trace others: no process with more rights, nor one
# that is not dumpable, can be looked at.
poor() {
	setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$@" \
		2>/dev/null
}

work_on_it() {
	(cd "$top_srcdir" && tar -c src/fuse tests) | tar -x -C "$mnt" ||
		fail "copying in"
	diff -r "$top_srcdir/src/fuse" "$mnt/src/fuse" || fail compare
	"$tools/traxctl" sync "$mnt" || fail sync
	"$tools/traxctl" scrub start "$mnt" || fail scrub
	rm -r "$mnt/tests" || fail rm
}

# DEVICE: a lock of whoever mounts is not held by the daemon.
mount_with_lock() {
	(
		exec 9>"$work/lock"
		flock 9
		"$tools/traxfs" -o noloop "$1" "$mnt"
	) || fail "mount $1"
	flock -n "$work/lock" true || fail "the daemon has inherited a lock"
}

service_manager
mount_with_lock "$image"
check_rights
work_on_it
check_rights
umount "$mnt" || fail umount
wait_for_server
check "$image"

# A signal ends it, also while the mount is in use.
mount_with_lock "$image"
check_rights
kill -TERM "$(server)"
wait_for_server
mountpoint -q "$mnt" && fail "SIGTERM left the mount"
mount_with_lock "$image"
exec 8>"$mnt/open"
echo x >&8
kill -TERM "$(server)"
wait_for_server
exec 8>&-
mountpoint -q "$mnt" && fail "SIGTERM left a mount in use"
check "$image"

# As in a container: only CAP_SYS_ADMIN, and memory cannot be locked.
prlimit --memlock=8388608:8388608 setpriv --bounding-set -all,+sys_admin \
	--inh-caps -all,+sys_admin "$tools/traxfs" -o noloop "$image" "$mnt" ||
	fail "mount with CAP_SYS_ADMIN only"
echo x >"$mnt/x" && sync "$mnt/x" || fail "writing there"
grep -q '^CapEff:[[:space:]]*0000000000000000' "/proc/$(server)/status" ||
	fail "more than no rights with CAP_SYS_ADMIN only"
umount "$mnt" || fail umount
wait_for_server
check "$image"

attach_loop
mount_with_lock "$loop"
check_rights
work_on_it
kill -TERM "$(server)"
wait_for_server
check "$loop"
exit 0
