#!/bin/sh
# mount_options.sh - real mounts: options, remounting with and without mount(8),
# what is write-protected, the loop device of an image, what is said about it.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse

# mount(8) looks for helpers in /sbin only: here it finds ours, in the mount
# namespace of this script.
umount_sbin=
own_sbin() {
	[ -n "${TRAX_OWN_MOUNTS:-}" ] || return 1
	sbin=$(readlink -f /sbin)
	mkdir "$work/sbin" && mount -t tmpfs none "$work/sbin" &&
		mkdir "$work/sbin/upper" "$work/sbin/work" &&
		for name in mount.traxfs mount.fuse.traxfs mount.fuseblk.traxfs
		do
			ln -s "$tools/mount.traxfs" "$work/sbin/upper/$name"
		done &&
		mount -t overlay overlay -o \
		"lowerdir=$sbin,upperdir=$work/sbin/upper,workdir=$work/sbin/work" \
		"$sbin" 2>/dev/null || return 1
	umount_sbin=$sbin
}

has_option() {
	awk -v m="$mnt" '$2 == m { print $4 }' /proc/mounts | tr , '\n' |
		grep -qx "$1"
}

# OPTION WORDS: refused before anything is mounted.
refused() {
	"$tools/traxfs" -o "$1" "$image" "$mnt" 2>"$work/said" &&
		fail "$1 is taken"
	grep -q "^traxfs: error: .*$2" "$work/said" ||
		fail "$1: $(cat "$work/said")"
	mountpoint -q "$mnt" && fail "mounted with $1"
}

refusals() {
	refused discard fstrim
	refused commit=301 "1 to 300 seconds"
	refused norecovery 'only with "ro"'
	refused noload 'only with "ro"'
	refused nonsense "not known"
	touch "$work/file"
	"$tools/traxfs" "$image" "$work/file" 2>"$work/said" &&
		fail "mounted on a file"
	grep -q "not a directory" "$work/said" || fail "$(cat "$work/said")"
	truncate -s 12M "$work/small"
	"$tools/mkfs.traxfs" --measure 0 "$work/small" 2>"$work/said" &&
		fail "made on 12 MiB"
	grep -q "^mkfs.traxfs: error: .*too small" "$work/said" ||
		fail "12 MiB: $(cat "$work/said")"
	"$tools/mkfs.traxfs" "$work/small" 2>"$work/said" && fail "made"
	grep -q measur "$work/said" && fail "measured before it is refused"
	truncate -s 1000 "$work/tiny"
	refused_device 3 "no traxfs is on it" "$work/tiny"
}

# CODE WORDS: not mounted, said in these words with the name that was given.
refused_device() {
	wanted=$1
	words=$2
	shift 2
	"$tools/traxfs" "$@" "$mnt" 2>"$work/said"
	code=$?
	[ $code -eq "$wanted" ] || fail "$words: ended with $code"
	for device; do :; done
	grep -q "^traxfs: error: $device: .*$words" "$work/said" ||
		fail "$words: $(cat "$work/said")"
	mountpoint -q "$mnt" && fail "mounted: $words"
}

# Nothing of ours on it, though a loop device stands in between; labels where
# the kernel has no SELinux.
refused_devices() {
	refused_device 3 "no traxfs is on it" "$work/small"
	refused_device 32 "there is no such device or image file" "$work/none"
	refused_device 32 "neither a block device nor an image" "$work"
	"$tools/traxfs" "$image" "$work/none" 2>"$work/said" &&
		fail "mounted nowhere"
	grep -q "no such directory to mount on" "$work/said" ||
		fail "nowhere: $(cat "$work/said")"
	[ -e /sys/fs/selinux ] || refused_device 32 "no SELinux" \
		-o context=system_u:object_r:tmp_t:s0 "$image"
}

# Not by an attribute or an error number, but by what is there; fsck(8)'s codes.
foreign_is_named() {
	cp "$work/small" "$work/other"
	for words in "anything else that libblkid knows" "holds swap, no traxfs"
	do
		"$tools/chkfs.traxfs" -n "$work/other" >"$work/said" 2>&1
		code=$?
		[ $code -eq 8 ] && grep -q "$words" "$work/said" ||
			fail "chkfs, $code, no \"$words\": $(cat "$work/said")"
		mkswap "$work/other" >"$work/said" 2>&1 || return 0
	done
	rm "$work/other"
}

# However few files it may open, it says why it does not mount.
few_descriptors() {
	mounted=
	for files in $(seq 4 40); do
		if prlimit "--nofile=$files" "$tools/traxfs" "$image" "$mnt" \
			2>"$work/said"; then
			umount "$mnt" || fail umount
			wait_for_server
			mounted=yes
			break
		fi
		mountpoint -q "$mnt" && fail "$files descriptors: half mounted"
		grep -q "error" "$work/said" ||
			fail "$files descriptors: not a word"
	done
	[ -n "$mounted" ] || fail "40 descriptors are too few"
}

# Nobody else's mount is touched.
remount_of_others() {
	mkdir -p "$work/tmpfs"
	mount -t tmpfs none "$work/tmpfs" || return 0
	"$tools/traxfs" -o remount,ro "$image" "$work/tmpfs" 2>"$work/said" &&
		fail "remounted a tmpfs"
	grep -q "not the mount point of a traxfs" "$work/said" ||
		fail "remount of a tmpfs: $(cat "$work/said")"
	touch "$work/tmpfs/x" || fail "a tmpfs is read-only now"
	umount "$work/tmpfs"
}

# A mount whose daemon was killed is neither shown a second time nor waited for.
ended_is_said() {
	mkdir -p "$work/again"
	for place in "$mnt" "$work/again"; do
		"$tools/mount.traxfs" "$image" "$place" 2>"$work/said" &&
			fail "mounted over a daemon that has ended"
		grep -q "ended without unmounting: umount" "$work/said" ||
			fail "ended: $(cat "$work/said")"
	done
	"$tools/traxfs" "$image" "$mnt" 2>"$work/said" &&
		fail "mounted by traxfs over a daemon that has ended"
	grep -q "ended without unmounting: umount" "$work/said" ||
		fail "ended, by traxfs: $(cat "$work/said")"
}

# The loop device is made, waits, and goes.
automatic_loop() {
	"$tools/traxfs" "$image" "$mnt" 2>"$work/said" || fail mount
	[ ! -s "$work/said" ] || fail "said: $(cat "$work/said")"
	device=$(awk -v m="$mnt" '$2 == m { print $1 }' /proc/mounts)
	case $device in
	/dev/loop*) ;;
	*) fail "no loop device but $device" ;;
	esac
	[ "$(cat "/sys/block/${device#/dev/}/loop/autoclear")" = 1 ] ||
		fail "the loop device stays"
	echo durable >"$mnt/durable"
	sync -f "$mnt"
	kill -KILL "$(server)"
	wait_for_server
	ended_is_said
	umount "$mnt"
	# The same with a root of which the kernel has no attributes.
	"$tools/traxfs" "$image" "$mnt" || fail mount
	kill -KILL "$(server)"
	wait_for_server
	ended_is_said
	umount "$mnt"
	"$tools/traxfs" "$image" "$mnt" || fail mount
	[ "$(cat "$mnt/durable")" = durable ] || fail "sync did not wait"
	"$tools/mount.traxfs" "$image" "$work/again" || fail "a second view"
	[ -e "$work/again/durable" ] || fail "the second view is empty"
	umount "$work/again"
	# Once more at the same place: refused, as by the kernel for others.
	"$tools/mount.traxfs" "$image" "$mnt" 2>"$work/said" &&
		fail "mounted twice at one place"
	grep -q "mounted on $mnt already" "$work/said" ||
		fail "twice: $(cat "$work/said")"
	umount "$mnt" || fail umount
	mountpoint -q "$mnt" && fail "two mounts at one place"
	check "$image"
	losetup -j "$image" | grep . && fail "the loop device is still there"
}

# After a crash: without the log the state of the last checkpoint; nothing is
# written, and the log is still there for a mount that reads it.
without_log() {
	"$tools/traxfs" "$image" "$mnt" || fail mount
	echo late >"$mnt/late"
	sync -f "$mnt"
	kill -KILL "$(server)"
	wait_for_server
	umount "$mnt"
	before=$(sha256sum <"$image")
	"$tools/traxfs" -o ro,norecovery "$image" "$mnt" 2>"$work/said" ||
		fail "mount without the log"
	grep -q "the log is not replayed" "$work/said" ||
		fail "said: $(cat "$work/said")"
	[ -e "$mnt/durable" ] || fail "what the checkpoint has"
	[ ! -e "$mnt/late" ] || fail "the log was replayed"
	"$tools/traxfs" -o remount,rw "$image" "$mnt" 2>"$work/said" &&
		fail "writing without what is in the log"
	grep -q "unmount it" "$work/said" || fail "$(cat "$work/said")"
	umount "$mnt" || fail umount
	wait_for_server
	[ "$(sha256sum <"$image")" = "$before" ] || fail "it wrote"
	loop=$(losetup -r -f --show "$image") || skip "no loop device"
	"$tools/traxfs" -o norecovery "$loop" "$mnt" 2>"$work/said" ||
		fail "norecovery, write-protected: $(cat "$work/said")"
	[ ! -e "$mnt/late" ] || fail "the log was replayed, write-protected"
	umount "$mnt" || fail umount
	wait_for_server
	losetup -d "$loop"
	"$tools/traxfs" "$image" "$mnt" || fail mount
	[ "$(cat "$mnt/late")" = late ] || fail "the log is lost"
	umount "$mnt" || fail umount
	wait_for_server
	check "$image"
}

# A device that has become smaller: what to do is said.
smaller() {
	cp "$image" "$work/smaller"
	truncate -s 40M "$work/smaller"
	"$tools/traxfs" "$work/smaller" "$mnt" 2>"$work/said"
	[ $? -eq 6 ] || fail "smaller: $(cat "$work/said")"
	grep -q "smaller: the device has 40.0 MiB, the file system 64.0: make" \
		"$work/said" || fail "$(cat "$work/said")"
	"$tools/chkfs.traxfs" -n "$work/smaller" >"$work/said" 2>&1 &&
		fail "what is smaller is good"
	grep -q "smaller than its file system: make it" "$work/said" ||
		fail "chkfs of what is smaller: $(cat "$work/said")"
	rm "$work/smaller"
}

# Nothing is written to a device that is read-only, and it says so.
protected() {
	loop=$(losetup -r -f --show "$image") || skip "no loop device"
	"$tools/traxfs" "$loop" "$mnt" 2>"$work/said" || fail "write-protected"
	grep -q "write-protected, mounting read-only" "$work/said" ||
		fail "said: $(cat "$work/said")"
	has_option ro || fail "not read-only"
	"$tools/traxfs" -o remount,rw "$loop" "$mnt" 2>"$work/said" &&
		fail "writing to a write-protected device"
	grep -q "write-protected" "$work/said" || fail "$(cat "$work/said")"
	[ -e "$mnt/durable" ] || fail "it cannot be read any more"
	umount "$mnt" || fail umount
	losetup -d "$loop"
	loop=
}

# COMMAND...: with "ro" and "rw" behind it.
remounts() {
	echo 1 >"$mnt/one"
	exec 5<"$mnt/one"
	exec 6>"$mnt/two"
	"$@",ro 2>"$work/said" && fail "read-only under an open file"
	grep -q "open for writing" "$work/said" || fail "$(cat "$work/said")"
	echo still >&6 || fail "no more writing after a refusal"
	exec 6>&-
	"$@",ro || fail "remount ro"
	has_option ro || fail "the kernel does not know"
	echo x 2>/dev/null >"$mnt/x" && fail "written to what is read-only"
	before=$(sha256sum <"$image")
	"$tools/traxctl" scrub start --wait "$mnt" >/dev/null || fail scrub
	"$tools/traxctl" sync "$mnt" || fail sync
	[ "$(sha256sum <"$image")" = "$before" ] || fail "it writes"
	"$tools/traxctl" --json status "$mnt" | grep -q '"read_only": true' ||
		fail "the daemon does not know"
	"$@",rw || fail "remount rw"
	[ "$(cat <&5)" = 1 ] || fail "a file that stayed open"
	exec 5<&-
	echo 3 >"$mnt/three" && [ "$(cat "$mnt/two")" = still ] ||
		fail "after a remount for writing"
	# What is open when its name goes lives on.
	exec 5<"$mnt/three"
	rm "$mnt/three" "$mnt/one" "$mnt/two"
	[ "$(cat <&5)" = 3 ] || fail "an open file without a name"
	"$@",ro 2>/dev/null && fail "read-only, and a file is to be deleted"
	exec 5<&-
}

remount_as_told() {
	"$tools/traxfs" "$@" "$image" "$mnt" || fail mount
	remounts "$tools/traxfs" "$image" "$mnt" -o remount
	"$tools/traxfs" "$image" "$mnt" -o remount,memory=64M 2>"$work/said" &&
		fail "memory= is changed"
	grep -q 'memory=.* cannot be changed' "$work/said" ||
		fail "$(cat "$work/said")"
	"$tools/traxfs" "$image" "$mnt" -o remount,noatime,budget=2 ||
		fail "remount noatime"
	has_option noatime || fail "the kernel's side of noatime"
	"$tools/traxctl" --json status "$mnt" |
		grep -q '"budget_ppm": 20000\b' || fail "budget"
	umount "$mnt" || fail umount
	wait_for_server
	check "$image"
}

# As an administrator does it, with and without a line in fstab.
remount_by_mount() {
	mount -t traxfs "$image" "$mnt" || fail "mount(8)"
	remounts mount "$mnt" -o remount
	umount "$mnt" || fail umount
	printf '%s %s traxfs nodiratime,commit=7 0 0\n' "$image" "$mnt" \
		>"$work/fstab"
	mount -T "$work/fstab" "$mnt" || fail "mount by fstab"
	remounts mount -T "$work/fstab" "$mnt" -o remount
	umount "$mnt" || fail umount
	check "$image"
}

make_image 64M
refusals
"$tools/mkfs.traxfs" "$image" >/dev/null || fail mkfs
refused_devices
foreign_is_named
few_descriptors
remount_of_others
automatic_loop
without_log
smaller
protected
remount_as_told -o rw
remount_as_told -o noloop
if own_sbin; then
	remount_by_mount
	umount "$umount_sbin"
	umount "$work/sbin"
fi
echo "all good"
