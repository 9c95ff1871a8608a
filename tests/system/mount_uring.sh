#!/bin/sh
# mount_uring.sh - the tests of real mounts again, with requests that come
# through io_uring, where the kernel can and root may say so.  The switch is the
# whole machine's; a mount that somebody makes meanwhile works either way.
switch=/sys/module/fuse/parameters/enable_uring
here=$(dirname "$0")
[ -w "$switch" ] || {
	echo "skipped: this kernel has no FUSE over io_uring, or this is not root"
	exit 77
}
before=$(cat "$switch")
trap 'echo "$before" >"$switch"' EXIT INT TERM
echo Y >"$switch"
for test in mount_basic mount_posix mount_confined; do
	sh "$here/$test.sh" || {
		echo "FAILED: $test through io_uring"
		exit 1
	}
done
