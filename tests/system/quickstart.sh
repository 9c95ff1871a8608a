#!/bin/sh
# quickstart.sh - where the demonstration cannot run it says what is missing and
# what to do, and leaves nothing behind.
set -u
. "$top_srcdir/tests/system/mount.sh"
[ -n "${TRAX_OWN_MOUNTS:-}" ] && [ "$(id -u)" -eq 0 ] || skip "no own mounts"
[ -e /dev/fuse ] || skip "no /dev/fuse to hide"

# WORDS: the demonstration ends with them, at once.
refused() {
	mkdir -p "$work/tmp"
	TMPDIR=$work/tmp timeout 60 "$top_srcdir/scripts/demo.sh" \
		"$top_builddir" >"$work/said" 2>&1
	code=$?
	umount /dev/fuse
	[ $code -eq 1 ] && grep -q "$1" "$work/said" ||
		fail "$code, no \"$1\": $(cat "$work/said")"
	[ -z "$(ls "$work/tmp")" ] || fail "left behind: $(ls "$work/tmp")"
}

touch "$work/none"
mount --bind "$work/none" /dev/fuse || skip "no bind mounts"
refused "no /dev/fuse.*modprobe fuse.*--device /dev/fuse"
# A container that was not given the device: a number nobody answers to.
mknod "$work/refused" c 10 254 && mount --bind "$work/refused" /dev/fuse ||
	skip "no device nodes"
refused "/dev/fuse cannot be opened by root"
echo "all good"
