#!/bin/sh
# mkfs_stop.sh - Ctrl-C while mkfs measures all tracks: the file system is made
# with those that were found by then.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
[ -x "$tools/traxdisk" ] || skip "no traxdisk"

"$tools/traxdisk" hp-c2247a "$work/drive" "$mnt" || fail traxdisk
"$tools/mkfs.traxfs" --measure full "$mnt/disk" >"$work/out" 2>"$work/said" &
mkfs=$!
for _ in $(seq 240); do
	grep -q '^tracks: [1-9]' "$work/said" && break
	kill -0 $mkfs 2>/dev/null || break
	sleep 0.5
done
# It needs a drive that tells when its sectors pass.
! grep -q 'completions come too irregularly' "$work/said" ||
	skip "the host is too busy to measure a drive"
kill -INT $mkfs || fail "it was over before: $(cat "$work/said")"
wait $mkfs || fail "mkfs: $(cat "$work/said")"
grep -q 'not all is measured: interrupted' "$work/said" ||
	fail "not interrupted: $(cat "$work/said")"
grep -q '^tracks  *known for [0-9.]*[1-9][0-9.]* % of it' "$work/out" ||
	fail "nothing was kept: $(cat "$work/out")"
"$tools/chkfs.traxfs" -q -n "$mnt/disk" || fail chkfs
umount "$mnt" || fail umount
echo "all good"
