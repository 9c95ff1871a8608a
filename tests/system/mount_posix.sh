#!/bin/sh
# mount_posix.sh - POSIX on real mounts, of an image file and of a block device;
# afterwards the file system is whole.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

try() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
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

# Whoever writes piece by piece hears it from write(2): close(2) has nothing left
# to say, less than two pieces are unused, and what has a place can be overwritten.
told_by_write() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	cp "$tools/traxfs" "$mnt/kept" && sync "$mnt/kept" || fail "copy"
	for kb in 4 100 1024 8192; do
		timeout -s KILL 60 dd if=/dev/zero of="$mnt/fill" bs=${kb}k \
			2>"$work/out"
		[ "$(grep -c "No space left" "$work/out")" -eq 1 ] || {
			cat "$work/out"
			fail "pieces of $kb KiB are told by close"
		}
		left=$(($(stat -f -c '%a * %S' "$mnt") / 1024))
		[ "$left" -le $((2 * kb)) ] || fail "$left KiB of $1 are left"
		dd if="$tools/traxfs" of="$mnt/kept" bs=20k conv=notrunc,fsync \
			2>/dev/null || fail "no room for what has a place"
		cmp "$tools/traxfs" "$mnt/kept" || fail "lost on a full disk"
		rm "$mnt/fill" || fail "removing on a full disk"
	done
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

# What write(2) has accepted on a full disk is there, for those who read it at
# once and after the next mount, however often others were refused.
accepted_is_there() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	good=$("$top_builddir/tests/system/go_back" write "$mnt" "$2") ||
		fail "what was accepted is lost (seed $2)"
	umount "$mnt" || fail "umount"
	wait_for_server
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	"$top_builddir/tests/system/go_back" check "$mnt" "$good" ||
		fail "what was accepted is lost after a mount (seed $2)"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

# Who opens a file again for each piece uses the reserve up as well, and then
# what has a place can still be overwritten.
overwritten_when_full() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$1" "$mnt" || fail "mount"
	cp "$tools/mkfs.traxfs" "$mnt/kept" && echo >"$mnt/log" &&
		sync -f "$mnt" || fail "copy"
	timeout 60 dd if=/dev/zero of="$mnt/fill" bs=64k 2>/dev/null &&
		fail "a full disk is not told"
	appended=0
	for _ in $(seq 300); do
		dd if=/dev/zero of="$mnt/log" bs=4k count=1 oflag=append \
			conv=notrunc 2>/dev/null && appended=$((appended + 1))
	done
	[ $appended -lt 300 ] || fail "appending on a full disk"
	timeout 60 dd if="$tools/mkfs.traxfs" of="$mnt/kept" bs=20k \
		conv=notrunc,fsync 2>/dev/null ||
		fail "nothing can be overwritten after $appended appends"
	cmp "$tools/mkfs.traxfs" "$mnt/kept" || fail "lost on a full disk"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

# OPTIONS FLAG: direct writes, by the option brick or by dd's flag, that fill the
# disk have written what they say, and say that it is full.
counted_by_direct_write() {
	"$tools/mkfs.traxfs" -f "$image" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o "noloop$1" "$image" "$mnt" || fail "mount"
	LC_ALL=C timeout 120 dd if=/dev/zero of="$mnt/fill" bs=1000k $2 \
		2>"$work/said" && fail "a full disk is not told"
	grep -q "No space left" "$work/said" || fail "$(cat "$work/said")"
	said=$(awk '/ copied/ { print $1 }' "$work/said")
	umount "$mnt" || fail "umount"
	wait_for_server
	"$tools/traxfs" -o noloop "$image" "$mnt" || fail "mount"
	has=$(stat -c %s "$mnt/fill")
	[ "$said" = "$has" ] || fail "direct writes say $said bytes of $has"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$image"
}

# WAY ROOM: what many open files have at their ends in the kernel's cache has
# room, whatever another program takes of the disk meanwhile.
crowd_is_there() {
	"$tools/mkfs.traxfs" -f "$image" >/dev/null || fail "mkfs"
	"$tools/traxfs" -o noloop "$image" "$mnt" || fail "mount"
	timeout 120 "$top_builddir/tests/system/crowd" write "$mnt" \
		"$work/sizes" 300 "$1" "$2" || fail "a crowd lost data ($*)"
	umount "$mnt" || fail "umount"
	wait_for_server
	"$tools/traxfs" -o noloop "$image" "$mnt" || fail "mount"
	timeout 120 "$top_builddir/tests/system/crowd" check "$mnt" \
		"$work/sizes" || fail "a crowd lost data after a mount ($*)"
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$image"
}

make_image 96M
crowd_is_there fallocate 0
crowd_is_there fallocate 8000
crowd_is_there copy 4000
crowd_is_there direct 4000
make_image 64M
overwritten_when_full "$image"
counted_by_direct_write "" oflag=direct
counted_by_direct_write ,brick ""
accepted_is_there "$image" 1
accepted_is_there "$image" 2
fill_up "$image"
make_image 256M
told_by_write "$image"
try "$image"
make_image 256M
attach_loop
told_by_write "$loop"
try "$loop"
