#!/bin/sh
# moosefs.sh - MooseFS with three chunk servers on three traxfs file systems: a
# chunk server and its file system are killed while files are written; then a
# flipped byte under a chunk.  CLUSTER_PART=small: only how long 2,000 files of
# 4 kB take.  By hand, as root; needs Debian's moosefs-master,
# moosefs-chunkserver and moosefs-client.  MooseFS refuses 127/8: the addresses are
# those of common.sh.
set -u
. "$(dirname "$0")/common.sh"
command -v mfsmaster >/dev/null || { echo "no moosefs-master"; exit 77; }

master=10.77.7.4
client=$work/client
mkdir -p "$client" "$work/master" "$work/sums"

start_master() {
	printf 'MFSM NEW' >"$work/master/metadata.mfs"
	printf '* / rw,alldirs,admin,maproot=0:0\n' >"$work/mfsexports.cfg"
	cat >"$work/mfsmaster.cfg" <<-END
		WORKING_USER = root
		WORKING_GROUP = root
		DATA_PATH = $work/master
		EXPORTS_FILENAME = $work/mfsexports.cfg
		MATOML_LISTEN_HOST = $master
		MATOCS_LISTEN_HOST = $master
		MATOCL_LISTEN_HOST = $master
		REPLICATIONS_DELAY_INIT = 10
		FILE_UMASK = 022
	END
	mfsmaster -c "$work/mfsmaster.cfg" start >"$work/master.log" 2>&1 ||
		{ cat "$work/master.log"; fail mfsmaster; }
}

# NUMBER
start_chunks() {
	mkdir -p "$work/cs$1" "$work/b$1/chunks"
	echo "$work/b$1/chunks" >"$work/mfshdd$1.cfg"
	cat >"$work/mfschunkserver$1.cfg" <<-END
		WORKING_USER = root
		WORKING_GROUP = root
		DATA_PATH = $work/cs$1
		HDD_CONF_FILENAME = $work/mfshdd$1.cfg
		HDD_LEAVE_SPACE_DEFAULT = 32MiB
		BIND_HOST = 10.77.7.$1
		MASTER_HOST = $master
		CSSERV_LISTEN_HOST = 10.77.7.$1
	END
	mfschunkserver -c "$work/mfschunkserver$1.cfg" start \
		>"$work/cs$1.log" 2>&1 || { cat "$work/cs$1.log"
		fail "chunk server $1"; }
}

# NUMBER: that of a chunk server's process.
chunk_server() {
	pgrep -f "mfschunkserver -c $work/mfschunkserver$1.cfg" | head -1
}

mount_client() {
	wait_for 60 mfsmount "$client" -H $master || fail mfsmount
}

# Copies of the file's chunks that the master knows.
copies_are() {
	! mfscheckfile "$1" | grep -Eq "chunks with [01] cop"
}

right() {
	n=0
	for i in $(seq "$1"); do
		[ "$(sha256sum <"$client/f$i" 2>/dev/null)" = \
			"$(cat "$work/sums/$i")" ] && n=$((n + 1))
	done
	echo $n
}

for i in 1 2 3; do
	new_brick $i 1G
	mount_brick $i -o brick
done
start_master
for i in 1 2 3; do
	start_chunks $i
done
mount_client
mfssetgoal -r 2 "$client" >/dev/null || fail "goal"

if [ "${CLUSTER_PART:-}" = small ]; then
	begun=$(date +%s.%N)
	head -c 8192000 /dev/urandom | split -b 4096 -a 4 - "$client/f"
	echo "$(ls "$client" | wc -l) files of 4 kB: $(seconds_since "$begun")"
	umount "$client" && mount_client
	begun=$(date +%s.%N)
	cat "$client"/f* >/dev/null || fail "reading"
	echo "read: $(seconds_since "$begun")"
	exit 0
fi

echo "== chunk server 3 and its file system are killed while files are written"
files=300
begun=$(date +%s.%N)
for i in $(seq $files); do
	[ "$i" != 150 ] || {
		kill -KILL "$(chunk_server 3)"
		kill -KILL "$(pgrep -f "traxfs .*$work/b3\$" | head -1)"
		umount -l "$work/b3"
	}
	head -c 20000 /dev/urandom >"$client/f$i" || fail "writing"
	sha256sum <"$client/f$i" >"$work/sums/$i"
done
echo "$files files of 20 kB: $(seconds_since "$begun")"
echo "with two servers left $(right $files) of $files are right"
begun=$(date +%s.%N)
mount_brick 3 -o brick
echo "mounted again, log replayed: $(seconds_since "$begun")"
start_chunks 3
for i in $(seq $files); do
	wait_for 120 copies_are "$client/f$i" ||
		fail "f$i: $(mfscheckfile "$client/f$i")"
done
umount "$client" || fail "umount of the client"
mount_client
n=$(right $files)
echo "with three again $n of $files are right, each in two copies"
[ "$n" = $files ] || fail "lost in a crash"

echo "== a flipped byte in every chunk of server 1"
umount "$client" || fail "umount of the client"
mfschunkserver -c "$work/mfschunkserver1.cfg" stop >/dev/null 2>&1
chunks=$(find "$work/b1/chunks" -name 'chunk_*.mfs' | wc -l)
find "$work/b1/chunks" -name 'chunk_*.mfs' | while read -r chunk; do
	sync "$chunk"
	first_sector "$chunk"
done >"$work/sums/lbn"
umount_brick 1
# Behind the header of a chunk: in its first block of data.
while read -r lbn; do
	flip_byte "$work/image1" "$lbn" 10000
done <"$work/sums/lbn"
mount_brick 1 -o brick
start_chunks 1
mount_client
n=$(right $files)
echo "$chunks chunks damaged: $n of $files are right"
[ "$n" = $files ] || fail "a flipped byte reached a reader"
"$tools/traxctl" errors "$work/b1" | head -4

umount "$client" || fail "umount of the client"
for i in 1 2 3; do
	mfschunkserver -c "$work/mfschunkserver$i.cfg" stop >/dev/null 2>&1
done
mfsmaster -c "$work/mfsmaster.cfg" stop >/dev/null 2>&1
for i in 1 2 3; do
	umount_brick $i
done
for i in 2 3; do
	check_brick $i
done
echo "all good"
