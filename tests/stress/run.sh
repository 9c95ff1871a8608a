#!/bin/bash
# run.sh - stress on real mounts: run.sh [KIND [TIMES [SEED]]].
#
# KIND is image (an image file, plain FUSE) or loop (a block device, fuseblk).
# Each part runs on the mount; then everything is listed, unmounted, checked
# with chkfs --data, mounted again and listed: both lists must be the same.
# TIMES makes the parts longer (1: about 30 seconds in all).  The seed is
# printed and replays.  STRESS_DIR: where the image lies (/dev/shm);
# STRESS_PARTS: only these parts; STRESS_OPTIONS: of the mount.
#
# The mounts are in a namespace of their own: one that another program made
# meanwhile would have a copy of the mount, and keep a loop device in use after
# the daemon was killed.
set -u
[ "$(id -u)" -eq 0 ] || ! sudo -n true 2>/dev/null ||
	exec sudo -n --preserve-env=top_builddir,STRESS_DIR,STRESS_PARTS,STRESS_OPTIONS \
		"$0" "$@"
if [ -z "${TRAX_OWN_MOUNTS-}" ] &&
	unshare -m --propagation private true 2>/dev/null; then
	TRAX_OWN_MOUNTS=yes exec unshare -m --propagation private "$0" "$@"
fi
kind=${1-image}
times=${2-1}
seed=${3-$(($(date +%s) % 100000))}
here=$(cd "$(dirname "$0")" && pwd)
tools=${top_builddir-$(pwd)}
programs=$tools/tests/stress
parts=${STRESS_PARTS-fsx fsx_small fsx_large names seek big apps full durable stopped}

skip() {
	echo "skipped: $*"
	exit 77
}
[ "$(id -u)" -eq 0 ] || skip "not root"
[ -c /dev/fuse ] || skip "no /dev/fuse"
for p in traxfs mkfs.traxfs chkfs.traxfs; do
	[ -x "$tools/$p" ] || skip "$p is not built"
done

base=${STRESS_DIR-/dev/shm}
[ -d "$base" ] && [ -w "$base" ] || base=${TMPDIR-/tmp}
work=$(mktemp -d "$base/traxfs-stress-XXXXXX")
mnt=$(mktemp -d "${TMPDIR-/tmp}/traxfs-stress-XXXXXX")
image=$work/image
device=$image
loop=
pid=
part=start

fail() {
	echo "FAILED ($kind, part $part, seed $seed): $*" >&2
	[ ! -s "$work/log" ] || tail -n 40 "$work/log" >&2
	exit 1
}

clean_up() {
	set +e
	mountpoint -q "$mnt" && umount -l "$mnt"
	mountpoint -q "$work/mnt" && umount -l "$work/mnt"
	[ -z "$pid" ] || { kill -CONT "$pid"; kill -KILL "$pid"; } 2>/dev/null
	wait 2>/dev/null
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$work"
	rmdir "$mnt"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# ---- Mounting ----

make_fs() {
	truncate -s 768M "$image"
	if [ "$kind" = loop ]; then
		loop=$(losetup -f --show "$image") || skip "no loop device"
		device=$loop
	fi
	"$tools/mkfs.traxfs" "$device" >/dev/null || fail mkfs
}

mount_fs() {
	"$tools/traxfs" -f -o noloop ${STRESS_OPTIONS-} "$device" "$mnt" \
		>>"$work/log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 300); do
		mountpoint -q "$mnt" && stat "$mnt" >/dev/null 2>&1 && return
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	fail "cannot be mounted"
}

unmount_fs() {
	for _ in $(seq 50); do
		umount "$mnt" 2>/dev/null && break
		sleep 0.1
	done
	mountpoint -q "$mnt" && fail "cannot be unmounted"
	wait $pid || fail "the daemon ended with $?"
	pid=
}

check_fs() {
	"$tools/chkfs.traxfs" -n --data "$device" >"$work/chk" 2>&1 || {
		cat "$work/chk" >&2
		fail "chkfs found something"
	}
}

kill_fs() {
	kill -KILL $pid
	wait $pid 2>/dev/null
	pid=
	umount -l "$mnt"
}

# Everything that must survive, but not times of access.
list_fs() {
	(cd "$mnt" &&
	 find . -printf '%p %y %m %n %s %i %U %G %T@ %l\n' | sort &&
	 find . -type f -print0 | sort -z | xargs -0 -r sha1sum) >"$1" ||
		fail "listing"
}

# Limits a program; its hanging is a failure too.
run() {
	timeout -k 5 $((120 + 60 * times)) "$@" >>"$work/out" 2>&1 || {
		code=$?
		tail -n 30 "$work/out" >&2
		fail "$(basename "$1") $* ended with $code"
	}
}

# ---- Parts ----

part_fsx() {
	run "$programs/fsx" --seed $seed --ops $((3000 * times)) --files 3 \
		--processes 2 --shared --log "${TMPDIR-/tmp}" "$mnt/fsx"
}

part_fsx_small() {
	run "$programs/fsx" --seed $seed --ops $((5000 * times)) --files 4 \
		--size 66000 --log "${TMPDIR-/tmp}" "$mnt/fsx"
}

part_fsx_large() {
	run "$programs/fsx" --seed $seed --ops $((600 * times)) --files 2 \
		--size 24000000 --log "${TMPDIR-/tmp}" "$mnt/fsx"
}

part_names() {
	run "$programs/names" --seed $seed --ops $((3000 * times)) tree \
		"$mnt/tree"
}

part_seek() {
	run "$programs/names" --seed $seed --ops $((300 * times)) seek \
		"$mnt/seek"
}

part_big() {
	local entries=$((times > 1 ? 100000 : 8000))

	run "$programs/names" --seed $seed --entries $entries big "$mnt/big"
}

part_apps() {
	run bash "$here/apps.sh" "$mnt" $times
}

# A disk that is full loses nothing that was there, and has its room back.
part_full() {
	local before after i

	run cp -a "$programs" "$mnt/kept"
	sync "$mnt/kept"/* "$mnt/kept"
	before=$(stat -f -c %a "$mnt")
	mkdir "$mnt/full"
	for i in $(seq 40); do
		dd if=/dev/urandom of="$mnt/full/$i" bs=1M count=40 \
			conv=fsync 2>>"$work/out" || break
	done
	[ "$i" -lt 40 ] || fail "never full"
	for i in $(seq 2000); do
		echo $i 2>/dev/null >"$mnt/full/small.$i"
	done 2>/dev/null
	diff -r "$programs" "$mnt/kept" || fail "a full disk"
	rm -rf "$mnt/full" || fail "rm on a full disk"
	sync -f "$mnt"
	for _ in $(seq 60); do
		after=$(stat -f -c %a "$mnt")
		[ $after -ge $((before - 4096)) ] && break
		sleep 0.5
	done
	[ $after -ge $((before - 4096)) ] ||
		fail "of $before blocks $after are free again"
	run diff -r "$programs" "$mnt/kept"
}

durable_options() {
	# Nothing but fuseblk is told of syncfs.
	[ "$kind" = loop ] || echo --no-syncfs
}

# kill -9 at a random moment.
part_durable() {
	local round dir writers

	for round in $(seq $((4 * times))); do
		dir=$mnt/durable.$round
		mkdir "$dir"
		"$programs/durable" write --seed $((seed + round)) \
			$(durable_options) "$work/acks.$round" "$dir" \
			>>"$work/out" 2>&1 &
		writers=$!
		sleep 0.$((RANDOM % 8 + 1))$((RANDOM % 9))5
		kill_fs
		wait $writers
		mount_fs
		run "$programs/durable" verify "$work/acks.$round" "$dir"
		[ $round -eq 1 ] || rm -rf "$mnt/durable.$((round - 1))"
	done
}

# The image as it is at a moment when the daemon stands still.
part_stopped() {
	local round writers pid2 mnt2=$work/mnt
	local dir=$mnt/stopped

	mkdir "$mnt2" "$dir"
	"$programs/durable" write --seed $seed $(durable_options) \
		"$work/acks" "$dir" >>"$work/out" 2>&1 &
	writers=$!
	for round in $(seq $((3 * times))); do
		sleep 0.$((RANDOM % 8 + 1))$((RANDOM % 9))5
		kill -STOP $pid
		cp "$work/acks" "$work/acks.copy"
		cp --sparse=always "$image" "$work/copy"
		kill -CONT $pid
		"$tools/traxfs" -f "$work/copy" "$mnt2" >>"$work/log" 2>&1 &
		pid2=$!
		until mountpoint -q "$mnt2"; do
			kill -0 $pid2 2>/dev/null ||
				fail "the copy cannot be mounted"
			sleep 0.1
		done
		run "$programs/durable" verify "$work/acks.copy" \
			"$mnt2/stopped"
		umount "$mnt2"
		wait $pid2 || fail "the daemon of the copy ended with $?"
		"$tools/chkfs.traxfs" -n --data "$work/copy" \
			>"$work/chk" 2>&1 || {
			cat "$work/chk" >&2
			fail "chkfs of the copy"
		}
	done
	pkill -TERM -P $writers
	kill $writers 2>/dev/null
	wait $writers
	rm -f "$work/copy"
	rm -rf "$dir"
}

# ---- All ----

echo "stress: $kind, seed $seed"
RANDOM=$seed
make_fs
mount_fs
for part in $parts; do
	start=$SECONDS
	: >"$work/out"
	mkdir -p "$mnt/fsx"
	part_$part
	list_fs "$work/before"
	unmount_fs
	check_fs
	mount_fs
	list_fs "$work/after"
	cmp "$work/before" "$work/after" || {
		diff "$work/before" "$work/after" | head -n 20 >&2
		fail "not the same after a remount"
	}
	rm -rf "${mnt:?}"/* || fail "rm -rf"
	grep -E 'not supported: |acknowledgements|skipped' "$work/out" |
		tail -n 3
	echo "stress: $part: good, $((SECONDS - start)) s"
done
unmount_fs
check_fs
echo "stress: all good"
