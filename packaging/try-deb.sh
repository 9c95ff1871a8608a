#!/bin/sh
# try-deb.sh SUITE DIR FILE.deb... - tries Debian packages in a fresh minimal
# system: debootstrap of SUITE (bookworm, trixie ...) into DIR, installed with
# what they depend on, a file system made, mounted, written, checked and
# mounted again by what is installed, then purged; whatever is left behind of
# the packages is a failure.  Run by hand, as root; needs debootstrap and
# /dev/fuse.  DIR is made anew and removed at the end.
set -eu
[ $# -ge 3 ] || {
	echo "usage: try-deb.sh SUITE DIR FILE.deb..." >&2
	exit 2
}
suite=$1
dir=$2
shift 2
[ ! -e "$dir" ] || {
	echo "try-deb: $dir is there" >&2
	exit 2
}
packages=
for deb; do
	packages="$packages $(dpkg-deb -f "$deb" Package)"
done

finish() {
	umount -q "$dir/mnt" "$dir/dev/fuse" "$dir/sys" "$dir/proc" || true
	rm -rf --one-file-system "$dir"
}
trap finish EXIT
debootstrap --variant=minbase "$suite" "$dir" >"$dir.log" 2>&1 || {
	tail "$dir.log"
	exit 1
}
rm -f "$dir.log"
mkdir -p "$dir/debs"
cp "$@" "$dir/debs/"
mount -t proc proc "$dir/proc"
mount -t sysfs -o ro sysfs "$dir/sys"
touch "$dir/dev/fuse"
mount --bind /dev/fuse "$dir/dev/fuse"

in_there() {
	chroot "$dir" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}

in_there apt-get -qq -o Dpkg::Use-Pty=0 update
in_there sh -c 'apt-get -qq -y --no-install-recommends install /debs/*.deb' \
	>/dev/null
in_there sh -eu -c '
	truncate -s 1G /disk.img
	mkfs.traxfs -L tried /disk.img
	traxfs /disk.img /mnt
	cp -a /usr/share /mnt/
	traxctl status /mnt >/dev/null
	fusermount3 -u /mnt
	chkfs.traxfs -n --data /disk.img
	traxfs -o ro /disk.img /mnt
	diff -r --no-dereference /usr/share /mnt/share
	fusermount3 -u /mnt
	rm /disk.img'
# What they depended on stays; of them nothing may.
# shellcheck disable=SC2086
in_there apt-get -qq -y purge $packages >/dev/null
left=$(in_there sh -c 'find / -xdev -name "*trax*" -not -path "/debs/*" \
	-not -path "/proc/*" -not -path "/var/log/*"')
[ -z "$left" ] || {
	echo "left behind:"
	echo "$left"
	exit 1
}
echo "try-deb: $suite: installed, used and purged"
