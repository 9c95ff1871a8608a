#!/bin/sh
# libtrax.sh - the library as a program finds it: installed, its examples
# compiled by nothing but pkg-config, and run, one of them against a daemon that
# speaks clamd's protocol; then a scan that is promoted, paused and resumed.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
command -v python3 >/dev/null || skip "no python3"
command -v pkg-config >/dev/null || skip "no pkg-config"

root=$work/root
make -s -C "$top_builddir" install-exec-local install-pkgconfigDATA \
	install-includeHEADERS DESTDIR="$root" >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail "install"; }
pc=$(dirname "$(find "$root" -name libtrax.pc)")
export PKG_CONFIG_PATH="$pc" PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
for source in lib/example/scan_clamd.c lib/example/scan_free.c \
	tests/system/scan_control.c; do
	${CC:-cc} ${TRAX_INSTRUMENT-} -D_GNU_SOURCE -Wall -Wextra -Werror \
		"$top_srcdir/$source" $(pkg-config --cflags --libs libtrax) \
		-o "$work/$(basename "$source" .c)" || fail "compiling $source"
done
LD_LIBRARY_PATH=$(dirname "$(find "$root" -name libtrax.so.0)")
export LD_LIBRARY_PATH

cat >"$work/clamd.py" <<'END'
import os, socket, struct, sys, threading
def get(c, n):
    data = b""
    while len(data) < n:
        part = c.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data
def serve(c):
    try:
        assert get(c, 10) == b"zINSTREAM\0"
        data = b""
        while n := struct.unpack(">I", get(c, 4))[0]:
            data += get(c, n)
        c.sendall(b"stream: Test FOUND\0" if b"EVIL" in data
                  else b"stream: OK\0")
    except EOFError:
        pass
    c.close()
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(100)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
END

make_image 128M
"$tools/mkfs.traxfs" "$image" >/dev/null || fail "mkfs"
"$tools/traxfs" "$image" "$mnt" || fail "mount"
mkdir "$mnt/tree"
cp "$top_srcdir"/doc/*.md "$mnt/tree"
head -c 3000000 /dev/urandom >"$mnt/tree/random"
truncate -s 1000000 "$mnt/tree/hole"
python3 "$work/clamd.py" "$work/clamd" &
clamd=$!
trap 'kill $clamd; clean_up' EXIT
for _ in $(seq 100); do
	[ -S "$work/clamd" ] || sleep 0.1
done
timeout 60 "$work/scan_clamd" "$work/clamd" "$mnt/tree" >"$work/found" ||
	fail "a clean tree is found bad"
printf 'EVIL' >>"$mnt/tree/hole"
timeout 60 "$work/scan_clamd" "$work/clamd" "$mnt/tree" >"$work/found"
[ $? -eq 1 ] || fail "nothing was found"
grep -q '/tree/hole: stream: Test FOUND' "$work/found" || fail "what was found"
"$work/scan_clamd" "$work/clamd" "$work" 2>/dev/null
[ $? -eq 2 ] || fail "a scan of what is no traxfs"

timeout 60 "$work/scan_free" "$mnt" "$work/cursor" >"$work/found" ||
	fail "free space: $(cat "$work/found")"
grep -q '^[0-9]\{7,\} bytes were read, 0 cannot be$' "$work/found" ||
	fail "what was read of the free space: $(cat "$work/found")"
[ ! -e "$work/cursor" ] || fail "the cursor is still there"
"$work/scan_free" "$work" 2>/dev/null
[ $? -eq 2 ] || fail "free space of what is no traxfs"
head -c 60000000 /dev/urandom >"$mnt/tree/random"
umount "$mnt" && wait_for_server
# Idle time begins after a minute: of itself the scan reads nothing.
"$tools/traxfs" -o quiet=60000 "$image" "$mnt" || fail "mount"
timeout 150 "$work/scan_control" "$mnt/tree" ||
	fail "pause, resume and promote"
umount "$mnt" && wait_for_server
check "$image"
echo "the library's examples find what they should"
