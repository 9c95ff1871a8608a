#!/bin/sh
# demo.sh BUILD - a real tree on an emulated 7200-rpm disk, and back.
#
# Makes the disk, the file system and a mount, copies in at least 3,000 files
# and 200 MB of what this machine has, mounts anew, compares every byte, shows
# where files lie, checks the file system, and says what the head did.
# Everything is under one directory in /tmp, gone at the end, however it ends.
set -eu

build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
spec=${TRAX_DRIVE:-$top/drives/wd800.json}
PATH=$build:$PATH:/usr/sbin:/sbin
export LC_ALL=C

work=$(mktemp -d "${TMPDIR:-/tmp}/traxfs-demo-XXXXXX")
drive=$work/drive
mnt=$work/mnt
loop=
began=$(date +%s)
want_files=3000
want_bytes=200000000

say() {
	printf '\n== %s\n' "$*"
}

fail() {
	echo "demo: $*" >&2
	exit 1
}

# What is mounted here goes through /dev/fuse: say what is missing before
# anything is made.
need_fuse() {
	[ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
	[ -c /dev/fuse ] || fail "there is no /dev/fuse, which mounts need:" \
		"load the kernel's module (modprobe fuse), or give a container" \
		"the device (docker run --device /dev/fuse --cap-add SYS_ADMIN)"
	(exec 3<>/dev/fuse) 2>/dev/null || fail "/dev/fuse cannot be opened" \
		"by $(id -un): run this as root, or let that user open it" \
		"(chmod 666 /dev/fuse); a container must be given the device"
	[ "$(id -u)" -eq 0 ] || command -v fusermount3 >/dev/null ||
		fail "there is no fusermount3, which a user needs to mount:" \
			"install fuse3, or run this as root"
	for program in jq getfattr pgrep; do
		command -v $program >/dev/null ||
			fail "there is no $program; scripts/packages has what" \
				"is needed"
	done
}

# MOUNTPOINT [COMMAND]: with that command before, as in "timeout 60 umount".
unmount() {
	point=$1
	shift
	mountpoint -q "$point" || return 0
	if [ "$(id -u)" -eq 0 ]; then
		"$@" umount "$point"
	else
		"$@" fusermount3 -u "$point"
	fi
}

# Daemons of ours that have something on their command line.
running() {
	pgrep -f "^(traxfs|traxdisk|$build/[^ ]*) .*$1" >/dev/null
}

# TRIES WORD: umount(2) of an image does not wait for its daemon.
wait_for_end() {
	tries=$1
	while running "$2" && [ "$tries" -gt 0 ]; do
		tries=$((tries - 1))
		sleep 0.1
	done
	! running "$2"
}

# Give up what we hold, whatever happened: a daemon that does not end in a
# minute is killed.
give_up() {
	unmount "$1" timeout -k 5 60
	wait_for_end 300 "$1" || pkill -KILL -f "^$2 .*$1"
	mountpoint -q "$1" && { umount -l "$1" || fusermount3 -uz "$1"; }
}

clean_up() {
	trap '' INT TERM HUP
	set +e
	cd /
	exec 2>/dev/null
	give_up "$mnt" traxfs
	[ -z "$loop" ] || losetup -d "$loop"
	give_up "$drive" traxdisk
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- the tree ----

# Small files first, for their number; then larger ones, for their bytes.
choose_files() {
	find /usr -xdev -type f -readable -size -65536k \
		! -name '*[\\[:cntrl:]]*' -printf '%s %P\n' 2>/dev/null |
	sort -k 2 |
	awk -v most_files=$((want_files + 500)) -v bytes_wanted="$want_bytes" '
	function take() {
		print "usr/" substr($0, index($0, " ") + 1)
		files++
		bytes += $1
	}
	$1 < 65536 && files < most_files { take(); next }
	{ kept[++n] = $0 }
	END {
		for (i = 1; i <= n; i++) {
			$0 = kept[i]
			if ($1 >= 65536 && bytes < bytes_wanted)
				take()
		}
	}' >"$work/names"
	(cd / && xargs -d '\n' -a "$work/names" sha256sum) >"$work/sums"
	files=$(wc -l <"$work/names")
	bytes=$(cd / && xargs -d '\n' -a "$work/names" stat -c %s |
		awk '{ n += $1 } END { printf "%d", n }')
	[ "$files" -gt 100 ] && [ "$bytes" -gt 10000000 ] ||
		fail "/usr has only $files files with $bytes bytes to copy"
	copies=1
	while [ $((files * copies)) -lt $want_files ] ||
		[ $((bytes * copies)) -lt $want_bytes ]; do
		copies=$((copies + 1))
	done
}

each_copy() {
	for copy in $(seq "$copies"); do
		"$@" "$mnt/copy$copy"
	done
}

copy_in() {
	mkdir "$1"
	tar -C / -cf - --no-recursion --verbatim-files-from -T "$work/names" |
		tar -C "$1" -xf - --no-same-owner
}

compare() {
	(cd "$1" && sha256sum --check --quiet --strict "$work/sums") ||
		fail "what was read is not what was written"
}

# ---- the drive ----

# Behind a loop device when we may: then it is a real block device.
start_drive() {
	mkdir "$drive" "$mnt"
	traxdisk "$spec" "$work/image" "$drive" ||
		fail "the emulated drive did not start"
	disk=$drive/disk
	if [ "$(id -u)" -eq 0 ] &&
		loop=$(losetup --direct-io=on -f --show "$disk" 2>/dev/null)
	then
		disk=$loop
	else
		loop=
	fi
	ls -lh "$drive/disk"
	echo "used through $disk"
}

mount_it() {
	traxfs "$disk" "$mnt" || fail "could not mount"
}

# Until everything is on the medium.
unmount_it() {
	unmount "$mnt"
	wait_for_end 600 "$mnt" || fail "the daemon does not end"
}

# One line a stage: what the head did since the last one.
stage() {
	now=$(date +%s%N)
	jq -c --arg name "$1" --argjson ms $(((now - stage_began) / 1000000)) \
		'{name: $name, elapsed_ms: $ms, reads, writes} + .head_ms' \
		"$drive/stats" >>"$work/stages"
	stage_began=$now
}

table() {
	jq -r -s '
	def s: . / 10 | round / 100;
	range(1; length) as $i | .[$i] as $b | .[$i - 1] as $a |
	[$b.name, ($b.elapsed_ms | s),
	 (["seek", "switch", "rotation", "transfer", "prefetch", "idle"][] |
	  $b[.] - $a[.] | s), $b.reads - $a.reads, $b.writes - $a.writes] |
	@tsv' "$work/stages" |
	awk -F '\t' '
	BEGIN {
		head = "%-16s %8s %7s %7s %9s %9s %9s %7s %7s %7s\n"
		line = "%-16s %8.2f %7.2f %7.2f %9.2f %9.2f %9.2f %7.2f" \
			" %7d %7d\n"
		printf head, "seconds", "elapsed", "seek", "switch",
			"rotation", "transfer", "prefetch", "idle", "reads",
			"writes"
	}
	{ printf line, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 }'
}

# ---- where files lie ----

show_file() {
	echo "$1: $(stat -c %s "$1") bytes"
	traxctl tracks "$1" >"$work/tracks"
	head -n 6 "$work/tracks" | sed 's/^/    /'
	more=$(($(wc -l <"$work/tracks") - 6))
	[ $more -le 0 ] || echo "    ... $more more"
}

# A file of the size nearest to one, by name.
file_of_size() {
	find copy1 -type f -printf '%s %p\n' | awk -v want="$1" '
	{
		off = $1 > want ? $1 - want : want - $1
		if (best == "" || off < least) {
			least = off
			best = substr($0, index($0, " ") + 1)
		}
	}
	END { print best }'
}

show_places() {
	cd "$mnt"
	for size in 1000 4000 20000 300000 4000000; do
		show_file "$(file_of_size $size)"
	done
	find . -type f -print0 |
		xargs -0 getfattr --only-values -n trax.extents |
		jq -r -n --argjson track "$(traxctl --json model . |
			jq .outermost.sectors)" '
	def share(n; of): if of == 0 then 100
		else n / of * 1000 | floor / 10 end;
	reduce (inputs | select(length > 0) |
		{ bytes: (map(.length) | add),
		  inline: any(.inline),
		  tracks: (map(.track) | unique | length),
		  runs: (map(.tracks // 0) | add),
		  whole: (map(select(.whole).length) | add // 0),
		  tail: (last | if .whole then 0 else .length end) }) as $f
		({small: 0, one: 0, inline: 0, large: 0, bytes: 0, whole: 0};
		if $f.inline then .inline += 1
		elif $f.bytes <= $track * 512 then .small += 1 |
			if $f.tracks == 1 and $f.runs == 1
			then .one += 1 else . end
		else .large += 1 | .bytes += $f.bytes - $f.tail |
			.whole += $f.whole
		end) |
	"\(.inline) files lie in the metadata tree,",
	"\(.small) of up to a track (\($track * 512) bytes): " +
	"\(share(.one; .small)) % of them in one track,",
	"\(.large) larger ones: " +
	"\(share(.whole; .bytes)) % of their bytes, but for the tails, " +
	"in whole tracks"'
	cd /
}

# ---- the course of things ----

need_fuse
say "an emulated drive: $(jq -r .name "$spec")"
start_drive
stage_began=$(date +%s%N)
stage start

say "a file system on it, with the drive's profile"
traxdisk --profile "$spec" >"$work/profile.json"
mkfs.traxfs --profile "$work/profile.json" "$disk"
stage mkfs

say "copying a tree out of /usr"
choose_files
echo "$((files * copies)) files, $((bytes * copies / 1000000)) MB"
stage_began=$(date +%s%N)
mount_it
each_copy copy_in
stage "copy in"
unmount_it
stage "unmount"

say "mounting again, comparing every byte"
mount_it
each_copy compare
stage "mount, compare"
echo "all $((files * copies)) files are what they were"
df -h "$mnt"

say "where files lie"
show_places
unmount_it
stage "show, unmount"

say "checking the file system and every checksum"
chkfs.traxfs -n --data "$disk"
stage "chkfs --data"

say "what the head did"
table
echo
echo "done in $(($(date +%s) - began)) seconds"
