#!/bin/sh
# mount_memory.sh - the daemon and who writes share a control group with little
# memory: the daemon must always be able to write out what they make dirty.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

limit=$((192 << 20))
group=
for dir in /sys/fs/cgroup /sys/fs/cgroup/memory; do
	[ -e "$dir/cgroup.procs" ] || continue
	mkdir "$dir/traxfs-test-$$" 2>/dev/null || continue
	for file in memory.max memory.limit_in_bytes; do
		[ -e "$dir/traxfs-test-$$/$file" ] &&
			echo $limit >"$dir/traxfs-test-$$/$file" 2>/dev/null &&
			group=$dir/traxfs-test-$$
	done
	[ -n "$group" ] && break
	rmdir "$dir/traxfs-test-$$"
done
[ -n "$group" ] || skip "no control group for memory"

# Runs what it is given in the group.
inside() {
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

leave() {
	clean_up
	rmdir "$group"
}
trap leave EXIT

# A disk of 40 GB: a share of it would be more dirty pages than the group has.
make_image 40G
"$tools/mkfs.traxfs" "$image" >/dev/null || fail "mkfs"
inside "$tools/traxfs" -o noloop "$image" "$mnt" || fail "mount"
inside timeout -s KILL 120 dd if=/dev/zero of="$mnt/file" bs=1M count=400 \
	conv=fsync 2>"$work/out" || {
	cat "$work/out"
	fail "writing"
}
server >/dev/null || fail "the daemon is gone"
umount "$mnt" || fail "umount"
wait_for_server
check "$image"
