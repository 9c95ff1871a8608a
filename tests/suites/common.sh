# common.sh - what the scripts for public suites share.  Not part of `make
# check`: the suites are programs of their own, installed elsewhere, and take
# from minutes to hours.  All need root.
#
#   TRAX_TOOLS   where traxfs, mkfs.traxfs and chkfs.traxfs are: a build
#                directory; default: build
#   SUITE_DIR    for images and mount points; default: /tmp/traxfs-suites
set -u
tools=$(cd "${TRAX_TOOLS-build}" && pwd) || exit 2
work=${SUITE_DIR-/tmp/traxfs-suites}
mnt=$work/mnt
image=$work/image
loop=

fail() {
	echo "FAILED: $*"
	exit 1
}

need() { # DIRECTORY-VARIABLE, its value, a file in it
	[ -e "$2/$3" ] || {
		echo "set $1 to where $3 has been built"
		exit 77
	}
}

clean() {
	cd /
	umount "$mnt" 2>/dev/null
	[ -z "$loop" ] || losetup -d "$loop" 2>/dev/null
	rm -f "$image"
}

# In a namespace of mounts of its own: one that another program made meanwhile
# would have a copy of the mount, and keep the loop device in use.
if [ "$(id -u)" = 0 ] && [ -z "${TRAX_OWN_MOUNTS-}" ]; then
	TRAX_OWN_MOUNTS=yes exec unshare -m --propagation private "$0" "$@"
fi

# A fresh file system of this size on a loop device, mounted.
begin() {
	[ "$(id -u)" = 0 ] || fail "root only"
	mkdir -p "$mnt" && truncate -s "$1" "$image" || fail "image"
	trap clean EXIT
	trap 'exit 1' INT TERM
	loop=$(losetup -f --show "$image") || fail "losetup"
	"$tools/mkfs.traxfs" -f "$loop" >/dev/null 2>&1 || fail "mkfs"
	"$tools/traxfs" "$loop" "$mnt" || fail "mount"
	chmod 1777 "$mnt"
}

# Unmounts and checks everything, data included.
end() {
	cd /
	umount "$mnt" || fail "umount"
	"$tools/chkfs.traxfs" -n "$loop" || fail "chkfs"
}
