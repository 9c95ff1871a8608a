#!/bin/sh
# gluster.sh [BRICK-OPTION...] - GlusterFS, three replicas on three traxfs file
# systems, with the engine's own settings: a brick that is killed while files are
# written, healing, and then a flipped byte under a brick.  Says how many reads
# were right, refused and silently wrong, and whether healing has spoilt a good
# copy.  Without options the bricks are mounted with -o brick; "plain" mounts them
# without, which shows what that option is for.  By hand, as root; needs Debian's
# glusterfs-server and glusterfs-client.
set -u
. "$(dirname "$0")/common.sh"
command -v glusterd >/dev/null || { echo "no glusterfs-server"; exit 77; }

options=${*:--o brick}
[ "$options" != plain ] || options=
host=10.77.7.1
sock=$work/gd.sock
files=9
client=$work/client
mkdir -p "$client" "$work/gd" "$work/run" "$work/log" "$work/sums"

gluster_do() {
	timeout 120 gluster --mode=script --glusterd-sock="$sock" \
		--log-file="$work/log/cli" "$@"
}

start_glusterd() {
	mount -t tmpfs none /var/lib/glusterd
	mount -t tmpfs none /var/log/glusterfs
	mkdir -p /var/log/glusterfs/bricks
	mount -t tmpfs none /run
	mkdir -p /run/gluster
	glusterd --xlator-option management.working-directory="$work/gd" \
		--xlator-option management.transport.socket.bind-address=$host \
		--xlator-option management.glusterd-sockfile="$sock" \
		--xlator-option management.run-directory="$work/run" \
		--log-file="$work/log/glusterd" --pid-file="$work/gd.pid" ||
		fail glusterd
	wait_for 30 gluster_do volume list || fail "glusterd does not answer"
}

mount_client() {
	glusterfs --volfile-server=$host --volfile-id=v \
		--log-file="$work/log/client" "$client" || fail "the client"
	wait_for 30 stat "$client/." || fail "the volume is not there"
}

umount_client() {
	wait_for 30 umount "$client" || fail "umount of the client"
}

# Lines of a long path are cut in two.
bricks_up() {
	[ "$(gluster_do volume status v | awk '/^Brick/ { brick = 1 }
		/^Self/ { brick = 0 } brick && $(NF - 1) == "Y" { n++ }
		END { print n }')" = 3 ]
}

start_volume() {
	gluster_do volume start v "$@" >/dev/null || fail "volume start"
	wait_for 60 bricks_up || fail "bricks: $(gluster_do volume status v)"
}

nothing_to_heal() {
	gluster_do volume heal v info | awk '/^Number of entries/ && $NF != 0 \
		{ bad = 1 } END { exit bad }'
}

for i in 1 2 3; do
	new_brick $i 512M
	# shellcheck disable=SC2086
	mount_brick $i $options
	mkdir "$work/b$i/data"
done
start_glusterd
gluster_do volume create v replica 3 $host:"$work/b1/data" \
	$host:"$work/b2/data" $host:"$work/b3/data" force >/dev/null ||
	fail "volume create"
start_volume
mount_client

crash() {
echo "== a brick is killed while files are written"
begun=$(date +%s.%N)
for i in $(seq 200); do
	[ "$i" != 100 ] || {
		kill -KILL "$(pgrep -f 'glusterfsd.*b3-data' | head -1)"
		kill -KILL "$(pgrep -f "traxfs .*$work/b3\$" | head -1)"
		umount -l "$work/b3"
	}
	head -c 20000 /dev/urandom >"$client/small$i" || fail "writing"
	sha256sum <"$client/small$i" >"$work/sums/small$i"
done
echo "200 files of 20 kB: $(seconds_since "$begun")"
# shellcheck disable=SC2086
mount_brick 3 $options
start_volume force
begun=$(date +%s.%N)
gluster_do volume heal v full >/dev/null || fail "heal full"
wait_for 120 nothing_to_heal || fail "not healed: $(gluster_do volume heal v info)"
umount_client
mount_client
right=0
for i in $(seq 200); do
	[ "$(sha256sum <"$client/small$i")" = "$(cat "$work/sums/small$i")" ] &&
		right=$((right + 1))
done
echo "$right of 200 files are right after the crash"
[ $right = 200 ] || fail "lost in a crash"
whole() {
	for i in $(seq 200); do
		[ "$(sha256sum 2>/dev/null <"$work/b3/data/small$i")" = \
			"$(cat "$work/sums/small$i")" ] || return 1
	done
}
# It counts nothing to heal before a full healing has come to all files.
wait_for 120 whole || fail "not all is healed on the brick that was killed"
echo "all 200 are right on the brick that was killed: $(seconds_since "$begun")"
}
[ "${CLUSTER_PART:-}" = damage ] || crash

echo "== a flipped byte under brick 1, in each of $files files"
for i in $(seq $files); do
	head -c 2M /dev/urandom >"$client/file$i"
	sha256sum <"$client/file$i" >"$work/sums/file$i"
done
umount_client
gluster_do volume stop v >/dev/null || fail "volume stop"
for i in $(seq $files); do
	sync "$work/b1/data/file$i"
	first_sector "$work/b1/data/file$i" >"$work/sums/lbn$i"
done
umount_brick 1
for i in $(seq $files); do
	flip_byte "$work/image1" "$(cat "$work/sums/lbn$i")" 1000000
done
echo "sectors: $(cat "$work"/sums/lbn* | tr '\n' ' ')"
# shellcheck disable=SC2086
mount_brick 1 $options
# Which replica is read is the engine's choice; here it is the damaged one.
gluster_do volume set v cluster.choose-local off >/dev/null
gluster_do volume set v cluster.read-hash-mode 0 >/dev/null
gluster_do volume set v cluster.read-subvolume-index 0 >/dev/null
start_volume
mount_client
# A replica is chosen when a file is first seen, of those that are connected.
sleep 10
right=0 refused=0 wrong=0
for i in $(seq $files); do
	if sum=$(sha256sum <"$client/file$i" 2>/dev/null) && [ -n "$sum" ]; then
		if [ "$sum" = "$(cat "$work/sums/file$i")" ]; then
			right=$((right + 1))
		else
			wrong=$((wrong + 1))
		fi
	else
		refused=$((refused + 1))
	fi
done
echo "reads: $right right, $refused refused, $wrong silently wrong"
gluster_do volume heal v full >/dev/null
sleep 15
wait_for 60 nothing_to_heal
echo "damage that brick 1 has met:"
"$tools/traxctl" errors "$work/b1" | sed 3q
spoilt=0
for i in $(seq $files); do
	for b in 2 3; do
		[ "$(sha256sum <"$work/b$b/data/file$i")" = \
			"$(cat "$work/sums/file$i")" ] || spoilt=$((spoilt + 1))
	done
done
echo "good copies that healing has spoilt: $spoilt of $((2 * files))"

echo "== the damaged copies are taken away and healed"
# To the letter as doc/cluster.md has it.
take_away=$(sed -n '/^    id=/,/^    rm /s/^    //p' \
	"$(dirname "$0")/../../../doc/cluster.md" |
	sed "s#/srv/brick1#$work/b1#g")
for i in $(seq $files); do
	f=$work/b1/data/file$i bash -euc "$take_away" 2>"$work/log/away" ||
		fail "$take_away: $(cat "$work/log/away")"
	[ ! -e "$work/b1/data/file$i" ] || fail "file$i is still there"
done
[ "$(find "$work/b1/data/.glusterfs" -links 1 -size +1M | wc -l)" = 0 ] ||
	fail "the engine's links of damaged copies are still there"
umount_client
mount_client
for i in $(seq $files); do
	stat "$client/file$i" >/dev/null 2>&1
done
gluster_do volume heal v full >/dev/null
healed() {
	for i in $(seq $files); do
		[ "$(sha256sum <"$work/b1/data/file$i" 2>/dev/null)" = \
			"$(cat "$work/sums/file$i")" ] || return 1
	done
}
wait_for 60 healed && echo "all $files are right on brick 1 again" ||
	echo "not all are healed on brick 1"
umount_client
gluster_do volume stop v >/dev/null
for i in 1 2 3; do
	umount_brick $i
	check_brick $i
done
[ -z "$options" ] || [ $wrong$spoilt = 00 ] ||
	fail "a flipped byte reached a reader or a good copy"
echo "all good"
