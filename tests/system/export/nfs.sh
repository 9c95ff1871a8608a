#!/bin/sh
# nfs.sh - a traxfs exported by NFS-Ganesha (userspace NFS), NFS 3: files both
# ways, names, and handles that a client holds while the server ends, the file
# system is unmounted and mounted again, and the server starts again.  With
# NFS_OTHER_DEVICE=1 that is another loop device: Ganesha's handles have the number
# of the device in them unless libblkid knows the file system (contrib/util-linux),
# so this fails then.  By hand, as root; needs Debian's nfs-ganesha-vfs, rpcbind,
# libnfs13 and python3.
set -u
. "$(dirname "$0")/../cluster/common.sh"
command -v ganesha.nfsd >/dev/null || { echo "no nfs-ganesha"; exit 77; }

mount -t tmpfs none /run && mkdir -p /run/ganesha /run/rpcbind
mount -t tmpfs none /var/lib/nfs
mkdir -p /var/lib/nfs/ganesha
cat >"$work/ganesha.conf" <<CONF
NFS_CORE_PARAM { Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false;
	Bind_addr = 10.77.7.1; }
EXPORT { Export_Id = 77; Filesystem_id = 77.7; Path = $work/b1; Pseudo = /b1;
	Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
	FSAL { Name = VFS; } }
LOG { Default_Log_Level = WARN; }
CONF

start_server() {
	ganesha.nfsd -F -f "$work/ganesha.conf" -p "$work/ganesha.pid" \
		-L "$work/ganesha.log" >/dev/null 2>&1 &
	server=$!
	wait_for 60 sh -c "rpcinfo -t 10.77.7.1 nfs 3" || {
		tail "$work/ganesha.log"
		fail "the server does not answer"
	}
}

stop_server() {
	kill "$server"
	wait "$server"
}

new_brick 1 1G
truncate -s 1M "$work/blocker"
mount_brick 1
rpcbind || fail rpcbind
start_server
mkfifo "$work/ask" "$work/answer"
python3 "$(dirname "$0")/nfs_client.py" "nfs://10.77.7.1$work/b1?version=3" \
	"$work/b1" >"$work/ask" <"$work/answer" &
client=$!
exec 5<"$work/ask" 6>"$work/answer"
read -r word <&5 && [ "$word" = remount ] || fail "the client: $word"
stop_server
umount_brick 1
if [ -n "${NFS_OTHER_DEVICE:-}" ]; then
	blocker=$(losetup -f --show "$work/blocker") || fail losetup
	trap 'losetup -d "$blocker"' EXIT
fi
mount_brick 1
start_server
echo over >&6
wait "$client" || { tail -n 12 "$work/ganesha.log"; fail "the client"; }
stop_server
umount_brick 1
check_brick 1
echo "all good"
