#!/bin/sh
# mount_posix.sh - POSIX on real mounts, of an image file and of a block device;
# afterwards the file system is whole.
set -u
. "$top_srcdir/tests/mount.sh"
need_fuse

try() {
	"$tools/mkfs.traxfs" "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" "$1" "$mnt" || fail "mount"
	timeout 300 "$top_builddir/tests/posix_check" "$mnt" || fail "on $1"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

make_image 256M
try "$image"
make_image 256M
attach_loop
try "$loop"
