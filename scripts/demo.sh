#!/bin/sh
# demo.sh BUILD - a real tree on an emulated 7200-rpm disk, and back.
#
# Makes the disk, the file system and a mount, copies in at least 3,000 files
# and 200 MB of what this machine has, mounts anew, compares every byte, shows
# where files lie, checks the file system, and says what the head did.
# Everything is under one directory in /tmp, gone at the end.
set -eu

build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
spec=${TRAX_DRIVE:-$top/drives/wd800.json}
PATH=$build:$PATH
export LC_ALL=C

work=$(mktemp -d /tmp/traxfs-demo-XXXXXX)
drive=$work/drive
mnt=$work/mnt
began=$(date +%s)

say() {
	printf '\n== %s\n' "$*"
}

fail() {
	echo "demo: $*" >&2
	exit 1
}

unmount() {
	mountpoint -q "$1" || return 0
	if [ "$(id -u)" -eq 0 ]; then
		umount "$1"
	else
		fusermount3 -u "$1"
	fi
}

# Give up what we hold, whatever happened.
clean_up() {
	set +e
	cd /
	for m in "$mnt" "$drive"; do
		unmount "$m" 2>/dev/null || umount -l "$m" 2>/dev/null ||
			fusermount3 -uz "$m" 2>/dev/null
	done
	[ -z "${drive_pid-}" ] || wait "$drive_pid" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- the tree ----

# Small files first, for their number; then larger ones, for their bytes.
choose_files() {
	find /usr/include /usr/share /usr/lib -xdev -type f -readable \
		-size -65536k -printf '%s %p\n' 2>/dev/null | sort -k 2 |
	awk '
	function take() {
		print substr($0, index($0, " ") + 1)
		files++
		bytes += $1
	}
	$1 < 65536 && files < 3500 { take(); next }
	{ kept[++n] = $0 }
	END {
		for (i = 1; i <= n && (files < 3500 || bytes < 210e6); i++) {
			$0 = kept[i]
			if ($1 >= 65536 || files < 3500)
				take()
		}
	}' >"$work/files"
	(cd / && xargs -d '\n' -a "$work/files" sha256sum) >"$work/sums"
	files=$(wc -l <"$work/files")
	bytes=$(xargs -d '\n' -a "$work/files" stat -c %s |
		awk '{ n += $1 } END { printf "%d", n }')
	[ "$files" -ge 3000 ] && [ "$bytes" -ge 200000000 ] ||
		fail "/usr has only $files files with $bytes bytes to copy"
}

copy_in() {
	tar -C / -cf - --no-recursion -T "$work/names" |
		tar -C "$mnt" -xf - --no-same-owner
}

compare() {
	(cd "$mnt" && sed 's|  /|  |' "$work/sums" |
		sha256sum --check --quiet --strict) ||
		fail "what was read is not what was written"
}

# ---- the drive ----

start_drive() {
	mkdir "$drive" "$mnt"
	traxdisk "$spec" "$work/image" "$drive" &
	drive_pid=$!
	tries=0
	until [ -e "$drive/disk" ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || fail "the emulated drive did not start"
		sleep 0.1
	done
}

# One line a stage: what the head did since the last one.
stage() {
	now=$(date +%s%N)
	jq -c --arg name "$1" --argjson s $(((now - stage_began) / 1000000)) \
		'{name: $name, elapsed_ms: $s} + .head_ms' \
		"$drive/stats" >>"$work/stages"
	stage_began=$now
}

table() {
	jq -r -s '
	def ms: . / 1000 * 100 | round / 100;
	. as $all | range(1; length) |
	$all[.] as $b | $all[. - 1] as $a |
	[$b.name, ($b.elapsed_ms | ms),
	 (["seek", "switch", "rotation", "transfer", "idle"][] |
	  . as $k | ($b[$k] - $a[$k] | ms))] | @tsv' "$work/stages" |
	awk -F '\t' '
	BEGIN {
		f = "%-22s %9s %9s %9s %9s %9s %9s\n"
		printf f, "seconds", "elapsed", "seek", "switch", "rotation",
			"transfer", "idle"
	}
	{ printf f, $1, $2, $3, $4, $5, $6, $7 }'
}

# ---- the course of things ----

say "an emulated drive: $(jq -r .name "$spec")"
start_drive
ls -lh "$drive/disk"
stage_began=$(date +%s%N)
stage start

say "a file system on it, with the drive's profile"
traxdisk --profile "$spec" >"$work/profile.json"
mkfs.traxfs --profile "$work/profile.json" "$drive/disk"
stage mkfs

say "copying a tree out of /usr"
choose_files
sed 's|^/||' "$work/files" >"$work/names"
echo "$files files, $((bytes / 1000000)) MB"
stage_began=$(date +%s%N)
traxfs "$drive/disk" "$mnt"
copy_in
stage "copy in"
unmount "$mnt"
stage "unmount"

say "mounting again, comparing every byte"
traxfs "$drive/disk" "$mnt"
compare
stage "mount, read all"
echo "all $files files are what they were"
df -h "$mnt"

say "where files lie: track, surface, sectors"
for name in $(head -n 2 "$work/names") \
	$(xargs -d '\n' -a "$work/files" stat -c '%s %n' | sort -n |
		tail -n 1 | sed 's|^[0-9]* /||'); do
	echo "$name ($(stat -c %s "$mnt/$name") bytes)"
	traxctl tracks "$mnt/$name" >"$work/tracks"
	head -n 8 "$work/tracks" | sed 's/^/    /'
	more=$(($(wc -l <"$work/tracks") - 8))
	[ $more -le 0 ] || echo "    ... and $more more"
done
unmount "$mnt"

say "checking the file system"
stage_began=$(date +%s%N)
chkfs.traxfs -n --data "$drive/disk"
stage "chkfs --data"

say "what the head did"
table
echo
echo "done in $(($(date +%s) - began)) seconds"
