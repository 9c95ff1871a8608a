#!/bin/sh
# mount_sync.sh - what was written through a mapping survives kill -9 after
# `traxctl sync`, on an image (where syncfs(2) waits for nothing) as on a block
# device.  ROUNDS=N does it N times on each.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

kill_server() {
	pid=$(server) || fail "no daemon"
	kill -9 $pid
	umount -l "$mnt"
	for _ in $(seq 100); do
		kill -0 $pid 2>/dev/null || return 0
		sleep 0.05
	done
	fail "the daemon does not die"
}

# DEVICE
rounds() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null 2>&1 || fail "mkfs"
	for seed in $(seq "${ROUNDS-3}"); do
		"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount $1"
		"$tools/tests/system/mapped" write "$mnt" "$seed" ||
			fail "mapped write"
		"$tools/traxctl" sync "$mnt" || fail "traxctl sync"
		kill_server
		"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount after kill -9"
		"$tools/tests/system/mapped" check "$mnt" "$seed" ||
			fail "not on the medium after a sync: $1, round $seed"
		umount "$mnt" || fail "umount"
		wait_for_server
	done
	check "$1"
}

make_image 512M
rounds "$image"
attach_loop
rounds "$loop"
