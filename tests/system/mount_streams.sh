#!/bin/sh
# mount_streams.sh - readers with a pace are shown; nothing is promised for a
# disk of which nothing is known, nor to readers of a directory.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
make_image 128M
"$tools/mkfs.traxfs" "$image" >/dev/null || fail mkfs
"$tools/traxfs" "$image" "$mnt" || fail mount
head -c 2000000 /dev/urandom >"$mnt/a" && sync -f "$mnt" || fail write
admit() {
	"$tools/traxctl" streams admit "$mnt/$1" "$2" >"$work/said" 2>&1
}
admit a 1M && fail "a promise for a disk of which nothing is known"
admit . 0 && fail "a directory was taken"
admit a many && fail "no number was taken"
admit a 0 || fail "not given back: $(cat "$work/said")"
grep -q 'to 0 files' "$work/said" || fail "$(cat "$work/said")"
for n in 0 1 2 3 4 5; do
	dd if="$mnt/a" of=/dev/null bs=50k count=1 skip=$n iflag=direct \
		status=none || fail read
	sleep 0.2
done
"$tools/traxctl" streams "$mnt" >"$work/said" || fail streams
grep -q "^ *$(stat -c %i "$mnt/a") .* no " "$work/said" ||
	fail "not shown: $(cat "$work/said")"
"$tools/traxctl" --json streams "$mnt" | grep -q promised_rate || fail JSON
umount "$mnt" || fail umount
check "$image"
echo "all good"
