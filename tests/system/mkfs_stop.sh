#!/bin/sh
# mkfs_stop.sh - Ctrl-C while mkfs measures all tracks: the file system is made
# all the same.  That it keeps the tracks that were found by then is tested in
# virtual time (tests/unit/extract/test_fit.c); a busy host may find none.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
[ -x "$tools/traxdisk" ] || skip "no traxdisk"

# The drive is four times as slow as the real one, so that even the verdict on
# its period takes some seconds.
"$tools/traxdisk" --slow=4 hp-c2247a "$work/drive" "$mnt" || fail traxdisk
"$tools/mkfs.traxfs" --measure full "$mnt/disk" >"$work/out" 2>"$work/said" &
mkfs=$!
for _ in $(seq 600); do
	grep -q 'measuring all tracks' "$work/said" && break
	kill -0 $mkfs 2>/dev/null || break
	sleep 0.05
done
kill -INT $mkfs || fail "it was over before: $(cat "$work/said")"
wait $mkfs || fail "mkfs: $(cat "$work/said")"
grep -q 'measured: interrupted' "$work/said" ||
	fail "not interrupted: $(cat "$work/said")"
"$tools/chkfs.traxfs" -q -n "$mnt/disk" || fail chkfs
umount "$mnt" || fail umount
echo "all good"
