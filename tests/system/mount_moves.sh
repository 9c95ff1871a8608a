#!/bin/sh
# mount_moves.sh - the daemon is killed while data moves, a scan reads and files
# are written: every byte that was there is there, and no room has leaked.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
command -v python3 >/dev/null || skip "no python3"

# Files of which every other one is deleted again: the others lie apart.
cat >"$work/fill.py" <<'END'
import os, random, subprocess, sys
random.seed(17)
paths = ["%s/%d" % (sys.argv[1], i) for i in range(1600)]
for path in paths:
    with open(path, "wb") as f:
        f.write(random.randbytes(random.randrange(20000, 120000)))
subprocess.run(["sync", "-f", sys.argv[1]], check=True)
for path in paths[::2]:
    os.unlink(path)
for path in paths[1::2]:
    os.utime(path, (1e9, 1e9))
subprocess.run(["sync", "-f", sys.argv[1]], check=True)
END

# What is written meanwhile; what an fsync was answered for must be there.
cat >"$work/write.py" <<'END'
import os, sys
n = 0
with open(sys.argv[1], "ab", 0) as f, open(sys.argv[2], "w") as said:
    while True:
        f.write(b"%07d\n" % n)
        if n % 16 == 0:
            f.write(b"x" * 50000 + b"\n")
        os.fsync(f.fileno())
        said.seek(0)
        said.write("%d\n" % n)
        said.flush()
        n += 1
END

moved() {
	"$tools/traxctl" order status --json "$mnt" |
		python3 -c 'import json, sys
print(json.load(sys.stdin)["moved_bytes"])'
}

# ROUND: kills the daemon while all is under way, and mounts again.  Moves begin
# in earnest when nobody has asked for anything for a second.
kill_in_the_middle() {
	"$tools/traxctl" order now "$mnt/tree" || fail "order now"
	sleep "1.$(($1 * 3 % 10))"
	timeout 60 "$tools/traxctl" scan --path "$mnt/tree" --sum \
		>/dev/null 2>&1 &
	scanning=$!
	rm -f "$work/said"
	timeout 60 python3 "$work/write.py" "$mnt/log$1" "$work/said" 2>/dev/null &
	writing=$!
	until [ -s "$work/said" ]; do
		kill -0 $writing 2>/dev/null || fail "nothing was written"
		sleep 0.1
	done
	sleep "0.$(($1 * 3 % 10))"
	sum=$((sum + $(moved)))
	kill -9 $(server)
	wait $scanning $writing
	umount -l "$mnt"
	wait_for_server
	"$tools/traxfs" "$image" "$mnt" || fail "mount after a kill"
	grep -q "^$(printf %07d "$(cat "$work/said")")" "$mnt/log$1" ||
		fail "what was synced is gone"
	(cd "$mnt/tree" && sha256sum --quiet -c "$work/sums") ||
		fail "a file has changed"
}

make_image 256M
"$tools/mkfs.traxfs" "$image" >/dev/null || fail "mkfs"
"$tools/traxfs" "$image" "$mnt" || fail "mount"
"$tools/traxctl" tasks "$mnt" | grep -q '^order ' ||
	skip "nothing moves where nothing turns"
mkdir "$mnt/tree"
python3 "$work/fill.py" "$mnt/tree" || fail "filling"
(cd "$mnt/tree" && sha256sum -- *) >"$work/sums"
sum=0
for round in 1 2 3 4 5 6 7 8; do
	kill_in_the_middle $round
done
[ "$sum" -gt 0 ] || fail "nothing has moved"
"$tools/traxctl" order now --wait "$mnt/tree" >/dev/null || fail "order"
(cd "$mnt/tree" && sha256sum --quiet -c "$work/sums") || fail "after order"
umount "$mnt" && wait_for_server
[ ! -x "$tools/chkfs.traxfs" ] || "$tools/chkfs.traxfs" -n --data "$image" ||
	fail "chkfs"
echo "$sum bytes moved beside kills, all is there"
