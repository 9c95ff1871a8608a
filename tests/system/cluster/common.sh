# common.sh - for the scripts beside it, which run an engine on bricks of traxfs;
# read by them.  CLUSTER_FS=ext4: on bricks of ext4, to compare.  Everything runs in namespaces of its own: processes end with the
# script whatever happens, addresses are on its own loopback, and mounts of others
# are left in their place.  Bounded in time.

[ "$(id -u)" -eq 0 ] || { echo "needs root"; exit 77; }
limit=${CLUSTER_SECONDS:-900}
tools=${TRAX_TOOLS:-$(cd "$(dirname "$0")/../../../build" && pwd)}
[ -x "$tools/traxfs" ] || { echo "TRAX_TOOLS: where traxfs was built"; exit 77; }

if [ -z "${CLUSTER_INSIDE:-}" ]; then
	CLUSTER_WORK=$(mktemp -d "${TMPDIR:-/tmp}/traxfs-cluster-XXXXXX")
	export CLUSTER_WORK
	CLUSTER_INSIDE=yes timeout -k 20 "$limit" unshare --net --mount --pid \
		--fork --kill-child --mount-proc --propagation private "$0" "$@"
	code=$?
	[ -n "${CLUSTER_KEEP:-}" ] || rm -rf "$CLUSTER_WORK"
	exit $code
fi

work=$CLUSTER_WORK
# A mount namespace begins with a copy of all mounts: those of others would stay
# busy as long as this runs.
awk '$3 ~ /^fuse/ { print $2 }' /proc/self/mounts | tac |
	while read -r mount; do umount -l "$mount" 2>/dev/null; done
ip link set lo up
for i in 1 2 3 4; do
	ip addr add 10.77.7.$i/24 dev lo
done

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# SECONDS COMMAND...: until it succeeds.
wait_for() {
	n=$1
	shift
	for _ in $(seq $((n * 2))); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	return 1
}

# NUMBER SIZE: an image with a file system, and where it is mounted.
new_brick() {
	mkdir -p "$work/b$1"
	truncate -s "$2" "$work/image$1"
	[ "${CLUSTER_FS:-}" != ext4 ] || { mkfs.ext4 -q "$work/image$1"; return; }
	"$tools/mkfs.traxfs" --measure 0 "$work/image$1" >/dev/null ||
		fail "mkfs of brick $1"
}

# NUMBER [OPTION...]
mount_brick() {
	n=$1
	shift
	[ "${CLUSTER_FS:-}" != ext4 ] || {
		mount -o loop "$work/image$n" "$work/b$n"
		return
	}
	# shellcheck disable=SC2086
	"$tools/traxfs" $* "$work/image$n" "$work/b$n" || fail "mount brick $n"
}

umount_brick() {
	wait_for 60 umount "$work/b$1" || fail "umount brick $1"
	wait_for 60 sh -c "! pgrep -f 'traxfs .*$work/b$1\$'" ||
		fail "the daemon of brick $1 does not end"
}

check_brick() {
	"$tools/chkfs.traxfs" -n "$work/image$1" >"$work/chkfs$1" 2>&1 || {
		cat "$work/chkfs$1"
		fail "chkfs of brick $1"
	}
}

# IMAGE SECTOR BYTE: another byte there.
flip_byte() {
	at=$(($2 * 512 + $3))
	old=$(dd if="$1" bs=1 skip=$at count=1 2>/dev/null | od -An -tu1)
	# shellcheck disable=SC2059
	printf "\\$(printf %o $((old ^ 255)))" |
		dd of="$1" bs=1 seek=$at conv=notrunc 2>/dev/null
}

# FILE: the sector of its first extent.
first_sector() {
	"$tools/traxctl" --json extents "$1" |
		sed -n 's/.*"lbn": \([0-9]*\).*/\1/p' | head -1
}

seconds_since() {
	echo "$(date +%s.%N) $1" | awk '{ printf "%.1f s", $1 - $2 }'
}
