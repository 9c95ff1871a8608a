# mount.sh - for tests of real mounts; read by them.  Skips (77) where there is
# no /dev/fuse, or no root and no sudo that asks nothing.  Everything is under
# one directory, gone at the end.  Where that is allowed a test has mounts of its
# own: another one's namespace would otherwise start with copies of them, and
# keep their daemons alive.

[ "$(id -u)" -eq 0 ] || ! sudo -n true 2>/dev/null ||
	exec sudo -n env top_srcdir="$top_srcdir" \
		top_builddir="$top_builddir" "$0" "$@"

if [ -z "${TRAX_OWN_MOUNTS:-}" ] &&
	unshare -m --propagation private true 2>/dev/null; then
	TRAX_OWN_MOUNTS=yes exec unshare -m --propagation private "$0" "$@"
fi

tools=$top_builddir
work=$(mktemp -d "${TMPDIR:-/tmp}/traxfs-test-XXXXXX")
mnt=$work/mnt
image=$work/image
loop=
mkdir "$mnt"

skip() {
	echo "skipped: $*"
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

need_fuse() {
	[ -c /dev/fuse ] && [ -r /dev/fuse ] || skip "no /dev/fuse"
	[ "$(id -u)" -eq 0 ] || skip "not root"
	[ -x "$tools/traxfs" ] && [ -x "$tools/mkfs.traxfs" ] ||
		skip "the tools are not built"
}

# SIZE: a new image; attach_loop makes $loop of it.
make_image() {
	rm -f "$image"
	truncate -s "$1" "$image"
}

attach_loop() {
	loop=$(losetup -f --show "$image") || skip "no loop device"
}

# The daemon that serves $mnt.
server() {
	pgrep -f "^$tools/traxfs .*$mnt\$"
}

# umount does not wait for the daemon of an image.
wait_for_server() {
	for _ in $(seq 600); do
		server >/dev/null || return 0
		sleep 0.1
	done
	fail "the daemon does not end"
}

check() {
	[ ! -x "$tools/chkfs.traxfs" ] || "$tools/chkfs.traxfs" -n "$1" ||
		fail "chkfs of $1"
}

clean_up() {
	set +e
	cd /
	mountpoint -q "$mnt" && umount -l "$mnt"
	# Of a mount in another namespace.
	pids=$(server) && kill -TERM $pids 2>/dev/null
	# One that hangs is killed, and is a failure when all is cleaned up.
	hangs=
	(wait_for_server) || { hangs=1; kill -KILL $(server); }
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$work"
	[ -z "$hangs" ] || exit 1
}
trap clean_up EXIT
trap 'exit 130' INT TERM
