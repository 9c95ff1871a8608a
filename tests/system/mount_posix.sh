#!/bin/sh
# mount_posix.sh - POSIX on real mounts, of an image file and of a block device;
# afterwards the file system is whole.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

try() {
	"$tools/mkfs.traxfs" "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	timeout 300 "$top_builddir/tests/system/posix_check" "$mnt" || fail "on $1"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

# write(2) goes to the kernel's cache: whoever writes without end must hear that
# the disk is full, close must fail, and what was there stays.
fill_up() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	cp "$tools/traxfs" "$mnt/kept" && sync "$mnt/kept" || fail "copy"
	timeout -s KILL 60 dd if=/dev/zero of="$mnt/fill" bs=1M 2>"$work/out"
	grep -q "No space left" "$work/out" || {
		cat "$work/out"
		fail "a full disk is not told"
	}
	# A few MiB may be in the kernel's cache by then (where it can be bound).
	if ls /sys/class/bdi/*/max_bytes >/dev/null 2>&1; then
		[ "$(stat -c %s "$mnt/fill")" -lt $((96 << 20)) ] ||
			fail "a full disk is told late"
	fi
	cmp "$tools/traxfs" "$mnt/kept" || fail "lost on a full disk"
	rm "$mnt/fill" || fail "removing on a full disk"
	sleep 1
	dd if=/dev/zero of="$mnt/fill" bs=1M count=20 conv=fsync 2>/dev/null ||
		fail "room is not given back"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

make_image 64M
fill_up "$image"
make_image 256M
try "$image"
make_image 256M
attach_loop
try "$loop"
