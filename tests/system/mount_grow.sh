#!/bin/sh
# mount_grow.sh - a file system grows with its device: mounted, with files open,
# and unmounted.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

old=64
new=160

total_mib() {
	echo $(($(stat -f -c '%b * %S' "$mnt") >> 20))
}

# Is what was written by fill still there?
filled() {
	[ "$(sha256sum <"$mnt/data")" = "$sum" ] || fail "data is another"
	[ "$(cat "$mnt/dir/small")" = small ] || fail "a small file is another"
}

fill() {
	mkdir "$mnt/dir"
	echo small >"$mnt/dir/small"
	dd if=/dev/urandom of="$mnt/data" bs=1M count=20 2>/dev/null
	sum=$(sha256sum <"$mnt/data")
}

# Since it was opened last.
commits() {
	"$tools/traxctl" metrics "$mnt" |
		sed -n 's/^traxfs_log_records_total{.*} //p'
}

new_image() {
	make_image ${old}M
	"$tools/mkfs.traxfs" --measure 0 "$image" >/dev/null || fail mkfs
}

# More than the old one had room for.
use_what_is_new() {
	dd if=/dev/zero of="$mnt/large" bs=1M count=$old 2>/dev/null ||
		fail "no room for a larger file"
	filled
}

# OPTION: mounted in this way.
grow_mounted() {
	new_image
	"$tools/traxfs" -o "$1" "$image" "$mnt" || fail mount
	fill
	"$tools/traxctl" sync "$mnt" || fail sync
	before=$(commits)
	"$tools/traxctl" grow "$mnt" >"$work/said" || fail "nothing to grow"
	[ "$(commits)" -ge "$before" ] && [ "$before" -gt 0 ] ||
		fail "opened anew for nothing: $before commits, $(commits) now"
	grep -q "as large as its device already" "$work/said" ||
		fail "$(cat "$work/said")"
	exec 5<"$mnt/dir/small" 6>>"$mnt/log"
	echo before >&6
	rm "$mnt/dir/small"
	truncate -s ${new}M "$image"
	"$tools/traxctl" grow "$mnt" 2>"$work/said" &&
		fail "grown under a deleted file that is open"
	grep -q "not grown: deleted files are still open" "$work/said" ||
		fail "$(cat "$work/said")"
	[ "$(cat <&5)" = small ] || fail "a deleted file after a refusal"
	exec 5<&-
	echo small >"$mnt/dir/small"
	exec 5<"$mnt/dir/small"
	"$tools/traxctl" --json grow "$mnt" >"$work/said" || fail grow
	grep -q "\"bytes_before\": $((old << 20)), \"bytes\": $((new << 20))" \
		"$work/said" || fail "$(cat "$work/said")"
	[ "$(total_mib)" -gt $((new - 10)) ] || fail "$(total_mib) MiB in all"
	[ "$(cat <&5)" = small ] || fail "a file that stayed open"
	echo after >&6 || fail "no writing to a file that stayed open"
	exec 5<&- 6>&-
	[ "$(cat "$mnt/log")" = "before
after" ] || fail "what was written to a file that stayed open"
	use_what_is_new
	umount "$mnt" || fail umount
	wait_for_server
	check "$image"
	"$tools/traxfs" -o "$1" "$image" "$mnt" || fail "mount again"
	filled
	umount "$mnt" || fail umount
	wait_for_server
}

# A mount says that there is more; growing needs no mount.
grow_unmounted() {
	new_image
	"$tools/traxfs" "$image" "$mnt" || fail mount
	fill
	umount "$mnt" || fail umount
	wait_for_server
	truncate -s ${new}M "$image"
	"$tools/traxfs" "$image" "$mnt" 2>"$work/said" || fail mount
	"$tools/traxctl" grow "$image" 2>"$work/why" &&
		fail "grown beside a mount"
	umount "$mnt" || fail umount
	wait_for_server
	grep -q '96.0 MiB more than the file system; "traxctl grow"' \
		"$work/said" || fail "$(cat "$work/said")"
	"$tools/traxctl" grow "$image" >"$work/said" || fail grow
	grep -q "grown from 64.0 MiB to 160.0 MiB" "$work/said" ||
		fail "$(cat "$work/said")"
	check "$image"
	"$tools/traxfs" "$image" "$mnt" || fail "mount of what has grown"
	use_what_is_new
	umount "$mnt" || fail umount
	wait_for_server
	check "$image"
}

grow_read_only() {
	new_image
	truncate -s ${new}M "$image"
	"$tools/traxfs" -r "$image" "$mnt" || fail mount
	"$tools/traxctl" grow "$mnt" 2>"$work/said" && fail "grown read-only"
	grep -q "mounted read-only" "$work/said" || fail "$(cat "$work/said")"
	umount "$mnt" || fail umount
	wait_for_server
}

grow_mounted noloop
grow_mounted rw
grow_unmounted
grow_read_only
echo "all good"
