#!/bin/sh
# samba.sh - a traxfs exported by Samba: a tree there and back, names, streams and
# attributes in xattrs, and all of it again behind a remount.  By hand,
# as root; needs Debian's samba, samba-vfs-modules and smbclient.
set -u
. "$(dirname "$0")/../cluster/common.sh"
command -v smbd >/dev/null || { echo "no samba"; exit 77; }

mount -t tmpfs none /run
for dir in private lock state cache pid rpc log tree back; do
	mkdir -p "$work/$dir"
done
cat >"$work/smb.conf" <<CONF
[global]
	server role = standalone server
	map to guest = Bad User
	interfaces = 10.77.7.1
	bind interfaces only = yes
	smb ports = 4450
	disable netbios = yes
	load printers = no
	private dir = $work/private
	lock directory = $work/lock
	state directory = $work/state
	cache directory = $work/cache
	pid directory = $work/pid
	ncalrpc dir = $work/rpc
	log file = $work/log/smbd
	store dos attributes = yes
	ea support = yes
[share]
	path = $work/b1
	read only = no
	guest ok = yes
	force user = root
	vfs objects = acl_xattr streams_xattr
CONF

start_server() {
	# It ends all of its process group with itself.
	setsid smbd --foreground --no-process-group -s "$work/smb.conf" \
		>"$work/log/out" 2>&1 &
	server=$!
	wait_for 60 smb "ls" || {
		tail "$work/log/"*
		fail "the server does not answer"
	}
}

stop_server() {
	kill "$server"
	wait "$server" 2>/dev/null
}

smb() {
	smbclient -s "$work/smb.conf" -N -p 4450 //10.77.7.1/share -c "$1"
}

there_and_back() {
	rm -rf "$work/back"
	mkdir "$work/back"
	smb "lcd $work/back; prompt; recurse; cd tree; mget *" \
		>"$work/log/get" 2>&1 || fail "mget: $(tail -n 3 "$work/log/get")"
	diff -r "$work/tree" "$work/back" || fail "what came back differs"
}

new_brick 1 1G
mount_brick 1
for i in $(seq 200); do
	mkdir -p "$work/tree/d$((i % 10))"
	head -c $((i * 300)) /dev/urandom >"$work/tree/d$((i % 10))/f$i"
done
head -c 64M /dev/urandom >"$work/tree/big"
start_server
begin=$(date +%s.%N)
smb "mkdir tree; cd tree; lcd $work/tree; prompt; recurse; mput *" \
	>"$work/log/put" 2>&1 || fail "mput: $(tail -n 3 "$work/log/put")"
echo "201 files, $(du -sm "$work/tree" | cut -f1) MB put in" \
	"$(seconds_since "$begin")"
diff -r "$work/tree" "$work/b1/tree" || fail "what was put differs"
there_and_back

smb "cd tree; rename d1 e1; rename e1 d1; mkdir x; rmdir x" >/dev/null ||
	fail names
echo stream >"$work/stream"
smb "put $work/stream tree/big:note; setmode tree/big +h" >/dev/null ||
	fail "a stream"
getfattr -d -m - "$work/b1/tree/big" 2>/dev/null | grep -q 'user.DosStream' ||
	fail "the stream is no xattr"
stop_server
umount_brick 1
mount_brick 1
start_server
there_and_back
smb "get tree/big:note $work/note" >/dev/null || fail "the stream is gone"
cmp "$work/stream" "$work/note" || fail "the stream differs"
smb "allinfo tree/big" | grep -q "attributes:.*H" ||
	fail "allinfo: $(smb "allinfo tree/big")"
echo "after a remount: files, stream and attributes are what they were"
stop_server
umount_brick 1
check_brick 1
echo "all good"
