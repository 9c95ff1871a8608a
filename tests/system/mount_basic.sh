#!/bin/sh
# mount_basic.sh - real mounts of an image file and of a block device: a tree
# goes in and comes out, over unmount, SIGTERM and kill -9; what must be refused
# is refused with its own exit code.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

expect_code() {
	want=$1
	shift
	"$@" >"$work/out" 2>&1
	code=$?
	[ $code -eq "$want" ] || {
		cat "$work/out"
		fail "$* ended with $code, not $want"
	}
}

mount_it() {
	"$tools/traxfs" -o noloop "$@" "$mnt" || fail "mount $*"
}

copy_tree() {
	mkdir "$mnt/tree" &&
		(cd "$top_srcdir" && tar -c src tests tools man) |
		tar -x -C "$mnt/tree" || fail "copying in"
}

compare_tree() {
	for d in src tests tools man; do
		diff -r "$top_srcdir/$d" "$mnt/tree/$d" || fail "compare"
	done
}

# Device shown in /proc/mounts, and its type.
shown() {
	awk -v m="$mnt" '$2 == m { print $1, $3 }' /proc/mounts
}

# PPM: of the head's time for background work.
budget_of() {
	"$tools/traxctl" --json status "$mnt" | grep -q "\"budget_ppm\": $1\\b" ||
		fail "a budget other than $1"
}

# One image, two loop devices of it: who uses it in one way keeps the others
# out, but for looking at it read-only together.
double_use() {
	make_image 256M
	attach_loop
	first=$loop
	attach_loop
	second=$loop
	"$tools/mkfs.traxfs" "$image" >/dev/null || fail "mkfs"
	mount_it "$image"
	expect_code 5 "$tools/traxfs" "$first" "$mnt"
	grep -q "mounted on $mnt" "$work/out" || fail "$(cat "$work/out")"
	"$tools/mkfs.traxfs" -f "$first" >/dev/null 2>&1 &&
		fail "mkfs of the loop device of a mounted image"
	"$tools/chkfs.traxfs" -y "$second" >/dev/null 2>&1 &&
		fail "repair of the loop device of a mounted image"
	umount "$mnt" || fail umount
	wait_for_server
	check "$image"
	mount_it "$first"
	for name in "$first" "$second" "$image" "-o noloop $image"; do
		# shellcheck disable=SC2086 # Options and a name.
		expect_code 5 "$tools/traxfs" $name "$mnt"
		grep -q "mounted on $mnt" "$work/out" ||
			fail "$name: $(cat "$work/out")"
	done
	"$tools/mkfs.traxfs" -f "$second" >/dev/null 2>&1 &&
		fail "mkfs of another loop device of a mounted one"
	umount "$mnt" || fail umount
	wait_for_server
	mount_it -o ro "$first"
	"$tools/chkfs.traxfs" -n "$second" >/dev/null ||
		fail "looking at what is mounted read-only"
	umount "$mnt" || fail umount
	wait_for_server
	losetup -d "$second"
	loop=$first
	check "$loop"
	losetup -d "$loop"
	loop=
}

# DEVICE TYPE: everything that may end a mount.
round_trips() {
	"$tools/mkfs.traxfs" "$1" >/dev/null || fail "mkfs $1"
	mount_it "$1"
	[ "$(shown)" = "$1 $2" ] || fail "/proc/mounts: $(shown)"
	"$tools/traxctl" status "$mnt" | grep -qx "device *$1" ||
		fail "traxctl status"
	budget_of 5000
	# Whatever the mount point is called, its samples are of one name.
	for name in "$mnt" "$work/../${work##*/}/mnt/."; do
		"$tools/traxctl" metrics "$name" >"$work/metrics" ||
			fail "metrics"
		grep -q "^traxfs_inodes{mountpoint=\"$mnt\"} " \
			"$work/metrics" || fail "metrics of $name"
		"$tools/traxctl" top "$name" | grep -q "^traxfs on $mnt," ||
			fail "top of $name"
	done
	grep -q '^traxfs_disk_bytes_total{mountpoint=".*",class="commit"} [1-9]' \
		"$work/metrics" || fail "metrics: no bytes of commits"
	grep -Evq '^# (HELP|TYPE) traxfs_[a-z0-9_]+ .+|^traxfs_[a-z0-9_]+\{.*\} [-+.e0-9]+$' \
		"$work/metrics" && fail "metrics: not Prometheus' format"
	"$tools/traxctl" budget 1.5 "$mnt" || fail "traxctl budget"
	budget_of 15000
	"$tools/traxctl" budget 51 "$mnt" 2>/dev/null && fail "budget of 51 %"
	budget_of 15000
	copy_tree
	compare_tree
	umount "$mnt" || fail "umount"
	wait_for_server
	check "$1"

	mount_it "$1"
	compare_tree
	echo after >"$mnt/after"
	kill -TERM "$(server)"
	wait_for_server
	mountpoint -q "$mnt" && fail "SIGTERM left the mount"
	check "$1"

	mount_it "$1"
	[ "$(cat "$mnt/after")" = after ] || fail "lost at SIGTERM"
	echo kept >"$mnt/kept"
	sync "$mnt/kept" "$mnt"
	rm "$mnt/after"
	kill -KILL "$(server)"
	wait_for_server
	umount "$mnt" 2>/dev/null || umount -l "$mnt"

	# What is in the log only can be read, and stays there.
	read_only "$1"
	mount_it "$1"
	[ "$(cat "$mnt/kept")" = kept ] || fail "lost at kill -9"
	compare_tree
	# Whoever comes next waits for the daemon, also of an image.
	rm -r "$mnt/tree/tests"
	umount "$mnt" || fail "umount"
	check "$1"
	mount_it "$1"
	(cd "$top_srcdir" && tar -c tests) | tar -x -C "$mnt/tree"
	umount "$mnt" || fail "umount"
	mount_it "$1"
	compare_tree
	umount "$mnt" || fail "umount"
	wait_for_server
}

# ro: nothing is written, everything is there.
read_only() {
	before=$(sha256sum <"$1")
	mount_it -r "$1"
	compare_tree
	touch "$mnt/x" 2>/dev/null && fail "wrote to a read-only mount"
	umount "$mnt"
	wait_for_server
	[ "$before" = "$(sha256sum <"$1")" ] || fail "ro has written"
}

busy() {
	mount_it "$1"
	expect_code 5 "$tools/traxfs" "$1" "$mnt"
	expect_code 3 "$tools/mkfs.traxfs" -f "$1"
	(cd "$mnt" && sleep 2) &
	sleep 0.2
	kill -TERM "$(server)"
	wait_for_server
	wait
	mountpoint -q "$mnt" && fail "SIGTERM left a busy mount"
	check "$1"
}

# What waits for a device mounts nothing once it has been given up.  A mount of
# another namespace is not seen, so it is waited for.
given_up() {
	[ -n "${TRAX_OWN_MOUNTS:-}" ] || return 0
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail mkfs
	unshare -m --propagation private "$tools/traxfs" -o noloop "$1" \
		"$mnt" || fail "mount elsewhere"
	holder=$(server)
	"$tools/traxfs" -o noloop "$1" "$mnt" &
	waiting=$!
	servers_are 3
	kill -KILL "$waiting"
	wait "$waiting" 2>/dev/null
	servers_are 1
	kill -TERM "$holder"
	wait_for_server
	mountpoint -q "$mnt" && fail "mounted although it was given up"
	check "$1"
}

servers_are() {
	for _ in $(seq 600); do
		[ "$(server | wc -l)" -eq "$1" ] && return
		sleep 0.1
	done
	fail "$(server | wc -l) processes, not $1"
}

refusals() {
	make_image 64M
	expect_code 3 "$tools/traxfs" "$image" "$mnt"
	make_image 64K
	expect_code 3 "$tools/traxfs" "$image" "$mnt"
	expect_code 1 "$tools/mkfs.traxfs" "$image"
	expect_code 32 "$tools/traxfs" "$work/nothing" "$mnt"
	expect_code 1 "$tools/traxfs" -o nonsense "$image" "$mnt"
	make_image 64M
	mkswap "$image" >/dev/null 2>&1
	expect_code 3 "$tools/mkfs.traxfs" "$image"
	expect_code 0 "$tools/mkfs.traxfs" -f "$image"
	expect_code 3 "$tools/mkfs.traxfs" "$image"
	expect_code 3 "$tools/mkfs.traxfs" -n "$image"
	truncate -s 32M "$image"
	expect_code 6 "$tools/traxfs" "$image" "$mnt"
	mountpoint -q "$mnt" && fail "something is mounted"
}

# Any user, with an image of their own, through fusermount3.
as_user() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
}

user_mount() {
	as_user test -r /dev/fuse || return 0
	chmod 755 "$work"
	mkdir "$work/user" && cp "$image" "$work/user/image" &&
		chown -R nobody:nogroup "$work/user"
	truncate -s 64M "$work/user/image"
	as_user mkdir "$work/user/mnt"
	as_user "$tools/mkfs.traxfs" -f "$work/user/image" >/dev/null ||
		fail "mkfs by a user"
	as_user "$tools/traxfs" "$work/user/image" "$work/user/mnt" ||
		fail "mount by a user"
	as_user touch "$work/user/mnt/x" || fail "a user's own mount"
	as_user "$tools/traxctl" sync "$work/user/mnt" || fail "sync by a user"
	as_user fusermount3 -u "$work/user/mnt" || fail "unmount by a user"
	check "$work/user/image"
}

# The upper layer of an overlay: whiteouts, opaque directories, renames.
overlay() {
	grep -qw overlay /proc/filesystems || return
	"$tools/mkfs.traxfs" -f "$1" >/dev/null || fail "mkfs"
	mount_it "$1"
	mkdir "$work/lower" "$work/merged" "$mnt/upper" "$mnt/work" &&
		echo a >"$work/lower/a" && echo b >"$work/lower/b" &&
		mkdir "$work/lower/d" && echo c >"$work/lower/d/c" ||
		fail "layers"
	mount -t overlay overlay -o \
		"lowerdir=$work/lower,upperdir=$mnt/upper,workdir=$mnt/work" \
		"$work/merged" || fail "overlay"
	rm "$work/merged/a" && mv "$work/merged/b" "$work/merged/e" &&
		rm -r "$work/merged/d" && mkdir "$work/merged/d" ||
		fail "changes in an overlay"
	[ "$(ls "$work/merged" "$work/merged/d" | xargs)" = \
		"$work/merged: d e $work/merged/d:" ] || fail "an overlay's names"
	[ "$(cat "$work/merged/e")" = b ] || fail "an overlay's content"
	umount "$work/merged" "$mnt" || fail "umount"
	wait_for_server
	check "$1"
}

refusals
user_mount
double_use
make_image 256M
round_trips "$image" fuse.traxfs
read_only "$image"
busy "$image"
given_up "$image"
overlay "$image"
make_image 256M
attach_loop
round_trips "$loop" fuseblk.traxfs
read_only "$loop"
busy "$loop"
# As mount(8) calls it.
"$tools/mount.traxfs" "$loop" "$mnt" -n -o noatime,nofail,x-systemd.device-timeout=5 ||
	fail "mount.traxfs"
compare_tree
# A second mount is a second view, with flags of its own; who asks traxfs for it
# is refused.
mkdir "$work/view"
"$tools/mount.traxfs" "$loop" "$work/view" -o ro,nosymfollow || fail "a second view"
cmp "$mnt/tree/src/fuse/mount.c" "$work/view/tree/src/fuse/mount.c" ||
	fail "what the second view shows"
touch "$work/view/x" 2>/dev/null && fail "a read-only view is written to"
touch "$mnt/x" && [ -e "$work/view/x" ] || fail "views differ"
ln -s x "$mnt/link" && cat "$mnt/link" && ! cat "$work/view/link" 2>/dev/null ||
	fail "nosymfollow"
umount "$mnt" && [ -e "$work/view/x" ] || fail "the second view is left"
umount "$work/view"
# What is just being unmounted is waited for.
"$tools/traxfs" "$loop" "$mnt" || fail "mount"
cp -r "$mnt/tree" "$mnt/tree2" || fail "copy"
umount "$mnt" & sleep 0.02
"$tools/mount.traxfs" "$loop" "$mnt" -o strictatime,nodiratime ||
	fail "mount beside an unmount"
wait
umount "$mnt" 2>/dev/null
echo "all good"
