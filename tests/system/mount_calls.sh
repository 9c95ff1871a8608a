#!/bin/sh
# mount_calls.sh - real mounts: holes, with dirty pages counted; fstrim(8); the
# label and UUID; the shutdown that drops what is not durable.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
calls=$tools/tests/system/calls
mb=1048576

expect() {
	want=$1
	shift
	got=$("$calls" "$@") || fail "$*"
	[ "$got" = "$want" ] || fail "$*: $got instead of $want"
}

holes() {
	f=$mnt/sparse
	truncate -s 64M "$f"
	expect "hole 0 $((64 * mb))" holes "$f"
	expect "hole 0 $((8 * mb))
data $((8 * mb)) $((8 * mb + 4096))
hole $((8 * mb + 4096)) $((64 * mb))" dirty "$f" $((8 * mb))
	expect "hole 0 $((8 * mb))
data $((8 * mb)) $((8 * mb + 4096))
hole $((8 * mb + 4096)) $((32 * mb))
data $((32 * mb)) $((32 * mb + 4096))
hole $((32 * mb + 4096)) $((64 * mb))" mapped "$f" $((32 * mb))
	sync "$f"
	before=$("$calls" holes "$f")
	# Promised room is a hole until it is written.
	fallocate -n -o $((16 * mb)) -l $mb "$f" || fail fallocate
	expect "$before" holes "$f"
	cp --sparse=always "$f" "$mnt/copy" || fail cp
	cmp "$f" "$mnt/copy" || fail "a sparse copy differs"
	[ "$(stat -c %b "$mnt/copy")" -le 64 ] || fail "the copy is not sparse"
	printf tiny >"$mnt/tiny"
	sync "$mnt/tiny"
	expect "data 0 4" holes "$mnt/tiny"
	# A whole file in memory, then on the disk.
	head -c $((3 * mb + 5)) /dev/urandom >"$mnt/full"
	expect "data 0 $((3 * mb + 5))" holes "$mnt/full"
	sync -f "$mnt"
	expect "data 0 $((3 * mb + 5))" holes "$mnt/full"
	rm "$f" "$mnt/copy" "$mnt/full"
}

trim() {
	command -v fstrim >/dev/null || return 0
	head -c $((48 * mb)) /dev/urandom >"$mnt/big"
	head -c $((8 * mb)) /dev/urandom >"$mnt/kept"
	sum=$(sha256sum <"$mnt/kept")
	"$tools/traxctl" sync "$mnt"
	rm "$mnt/big"
	sync -f "$mnt"
	used=$(stat -c %b "$image")
	fstrim -v "$mnt" >"$work/said" || fail fstrim
	freed=$((used - $(stat -c %b "$image")))
	[ $freed -gt $((40 * mb / 512)) ] ||
		fail "fstrim gave back $freed sectors: $(cat "$work/said")"
	[ "$(sha256sum <"$mnt/kept")" = "$sum" ] || fail "fstrim lost data"
	setpriv --reuid=nobody --clear-groups fstrim "$mnt" 2>/dev/null &&
		fail "anybody may trim"
	rm "$mnt/kept"
}

# What a file takes is told while it is open, too.
sectors_of_open() {
	exec 5>"$mnt/open"
	stat -c %b "$mnt/open" >/dev/null
	head -c 1000000 /dev/zero >&5
	sync "$mnt/open"
	for _ in $(seq 100); do
		[ "$(stat -c %b "$mnt/open")" -lt 1900 ] || break
		sleep 0.1
	done
	[ "$(stat -c %b "$mnt/open")" -ge 1900 ] ||
		fail "sectors of an open file: $(stat -c %b "$mnt/open")"
	exec 5>&-
	rm "$mnt/open"
}

# Groups of a fresh file system that nobody has used yet are loaded on the way.
trim_fresh() {
	command -v fstrim >/dev/null || return 0
	make_image 7G
	"$tools/mkfs.traxfs" "$image" >/dev/null || fail mkfs
	"$tools/traxfs" "$image" "$mnt" || fail mount
	timeout 300 fstrim "$mnt" || fail "fstrim of what nobody has used"
	sectors_of_open
	umount "$mnt" || fail umount
	wait_for_server
}

label() {
	expect first label "$mnt"
	expect "größer" label "$mnt" "größer"
	"$calls" label "$mnt" "$(head -c 64 /dev/zero | tr '\0' x)" \
		2>/dev/null && fail "64 bytes of label"
	[ "$("$tools/traxctl" label "$mnt")" = "größer" ] || fail "traxctl label"
	"$tools/traxctl" label "$mnt" other 2>&1 | grep -q "comes first" ||
		fail "the order of label is not said"
	"$tools/traxctl" label online "$mnt" || fail "traxctl label online"
	expect online label "$mnt"
	umount "$mnt" || fail umount
	wait_for_server
	check "$1"
	[ "$("$tools/traxctl" label "$1")" = online ] || fail "the label is lost"
	"$tools/traxctl" label offline "$1" || fail "traxctl label offline"
	check "$1"
	"$tools/traxfs" -o "$2" "$1" "$mnt" || fail mount
	expect offline label "$mnt"
}

# IMAGE WAY: the UUID is changed, mounted and not.
uuid() {
	first=$("$tools/traxctl" uuid "$mnt")
	second=12345678-1234-4234-8234-123456789abc
	"$tools/traxctl" uuid $second "$mnt" || fail "traxctl uuid online"
	[ "$("$tools/traxctl" uuid "$mnt")" = $second ] || fail "the UUID"
	"$tools/traxctl" status "$mnt" | grep -q "^UUID *$second" ||
		fail "status has another UUID"
	"$tools/traxctl" uuid x "$mnt" 2>/dev/null && fail "x is a UUID"
	echo kept >"$mnt/kept"
	setpriv --reuid=nobody --clear-groups "$tools/traxctl" uuid random \
		"$mnt" 2>/dev/null && fail "anybody may change the UUID"
	# The kernel answers this one without asking the daemon: with nothing,
	# or with what is right.
	said=$("$calls" uuid "$mnt" 2>/dev/null) && [ "$said" != \
		"$(echo $second | tr -d -)" ] && fail "the UUID by ioctl: $said"
	umount "$mnt" || fail umount
	wait_for_server
	check "$1"
	[ "$("$tools/traxctl" uuid "$1")" = $second ] || fail "the UUID is lost"
	"$tools/traxfs_id" "$1" 2>/dev/null | grep -q "ID_FS_UUID=$second" ||
		[ ! -x "$tools/traxfs_id" ] || fail "traxfs_id"
	"$tools/traxctl" uuid random "$1" || fail "traxctl uuid offline"
	third=$("$tools/traxctl" uuid "$1")
	[ ${#third} = 36 ] && [ "$third" != $second ] &&
		[ "$third" != "$first" ] || fail "random: $third"
	check "$1"
	"$tools/traxfs" -o "$2" "$1" "$mnt" || fail mount
	[ "$(cat "$mnt/kept")" = kept ] || fail "a file under another UUID"
	rm "$mnt/kept"
}

shut_down() {
	echo durable >"$mnt/durable"
	sync -f "$mnt"
	"$tools/traxctl" sync "$mnt"
	echo late >"$mnt/late"
	"$calls" shutdown "$mnt" || fail shutdown
	touch "$mnt/later" 2>/dev/null && fail "written after a shutdown"
	cat "$mnt/late" 2>/dev/null && fail "read from memory after a shutdown"
	umount "$mnt" || fail umount
	wait_for_server
	"$tools/traxfs" -o "$2" "$1" "$mnt" || fail mount
	[ "$(cat "$mnt/durable")" = durable ] || fail "lost in a shutdown"
	umount "$mnt" || fail umount
	wait_for_server
	check "$1"
}

# IMAGE: a flipped byte in the middle of a file.  Through the kernel's cache a read
# comes back shorter; as a brick it is an error.
brick() {
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail mkfs
	"$tools/traxfs" "$1" "$mnt" || fail mount
	# Without an x, so that one is a flipped byte.
	head -c 512K /dev/urandom | tr x y >"$mnt/file"
	sync "$mnt/file"
	lbn=$("$tools/traxctl" --json extents "$mnt/file" |
		sed -n 's/.*"lbn": \([0-9]*\).*/\1/p' | head -1)
	umount "$mnt" || fail umount
	printf x | dd of="$1" bs=1 seek=$((lbn * 512 + 300000)) conv=notrunc \
		2>/dev/null
	"$tools/traxfs" "$1" "$mnt" || fail mount
	n=$("$calls" read "$mnt/file")
	[ "$n" != 524288 ] || fail "a flipped byte was not noticed"
	umount "$mnt" || fail umount
	"$tools/traxfs" -o brick "$1" "$mnt" || fail "mount as a brick"
	expect EIO read "$mnt/file"
	head -c 290816 "$mnt/file" >"$work/begin" || fail "what is good"
	cp "$work/begin" "$mnt/copy" && cmp "$work/begin" "$mnt/copy" ||
		fail "writing on a brick"
	umount "$mnt" || fail umount
	echo "through the cache the same read gave $n"
}

for way in loop noloop; do
	make_image 256M
	"$tools/mkfs.traxfs" -L first "$image" >/dev/null || fail mkfs
	"$tools/traxfs" -o $way "$image" "$mnt" || fail mount
	holes
	trim "$image"
	label "$image" $way
	uuid "$image" $way
	shut_down "$image" $way
done
trim_fresh
make_image 256M
brick "$image"
echo "all good"
