#!/bin/sh
# mount_scan.sh - traxctl scan on a real mount: what it gives is what the files
# hold, also while they change; who may scan what; nothing of it hinders an
# unmount.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
command -v python3 >/dev/null || skip "no python3"

# The digest of fs-verity, by its documentation, in the order of the file.
cat >"$work/verity.py" <<'END'
import hashlib, struct, sys
for path in sys.stdin.read().splitlines():
    data = open(path, "rb").read()
    size = len(data)
    level = [hashlib.sha256(data[i:i + 4096].ljust(4096, b"\0")).digest()
             for i in range(0, size, 4096)]
    while len(level) > 1:
        level = [hashlib.sha256(b"".join(level[i:i + 128])
                 .ljust(4096, b"\0")).digest()
                 for i in range(0, len(level), 128)]
    root = level[0] if level else b""
    d = struct.pack("<BBBBIQ64s32s144s", 1, 1, 12, 0, 0, size, root, b"", b"")
    print("sha256:%s %s" % (hashlib.sha256(d).hexdigest(), path))
END

# What a stream holds, written out as files; each byte once.
cat >"$work/unpack.py" <<'END'
import os, sys
i, seen, whole = sys.stdin.buffer, {}, {}
for head in iter(i.readline, b""):
    kind, ino, off, n, path = head.split()
    off, n = int(off), int(n)
    path = i.read(int(path))
    if kind == b"DATA":
        part = seen.setdefault(path, {})
        assert off not in part
        part[off] = i.read(n)
    elif kind == b"WHOLE":
        whole[path] = off
    else:
        seen.pop(path, None)
for path, size in whole.items():
    to = sys.argv[1] + "/" + os.path.basename(path.decode())
    with open(to, "wb") as f:
        for off, part in seen.get(path, {}).items():
            f.seek(off)
            f.write(part)
        f.truncate(size)
END

scan() {
	timeout 120 "$tools/traxctl" scan --path "$mnt/tree" "$@"
}

sums_agree() {
	scan --sum >"$work/sums" || fail "scan --sum"
	find "$mnt/tree" -type f | python3 "$work/verity.py" |
		sort >"$work/want"
	grep -v '^#' "$work/sums" | sort | cmp - "$work/want" || fail "digests"
}

make_image 256M
"$tools/mkfs.traxfs" "$image" >/dev/null || fail "mkfs"
"$tools/traxfs" -o moves=0 "$image" "$mnt" || fail "mount without moves"
"$tools/traxctl" order status "$mnt" | grep -q '^nothing is moved' ||
	fail "order where nothing moves"
for action in now pause resume; do
	"$tools/traxctl" order $action "$mnt" 2>&1 >/dev/null |
		grep -q 'nothing is moved: no disk that rotates' ||
		fail "order $action where nothing moves"
done
umount "$mnt" && wait_for_server
"$tools/traxfs" "$image" "$mnt" || fail "mount"
mkdir "$mnt/tree"
cp "$top_srcdir"/src/fs/*/*.c "$top_srcdir"/doc/*.md "$mnt/tree" ||
	fail "copy"
dd if=/dev/urandom of="$mnt/tree/large" bs=1M count=20 status=none
truncate -s 3000000 "$mnt/tree/hole"
printf x >>"$mnt/tree/hole"
: >"$mnt/tree/empty"
printf 'one byte less' >"$mnt/tree/inline"

# Dirty in the kernel, then on disk only.
sums_agree
umount "$mnt" && wait_for_server
"$tools/traxfs" "$image" "$mnt" || fail "mount again"
sums_agree

# What has changed since, and what has without having been written to.
scan --compare "$work/sums" >"$work/out.txt" || fail "compare"
[ ! -s "$work/out.txt" ] || fail "nothing has changed"
scan --compare "$0" >"$work/out.txt" 2>&1 && fail "compared with a script"
grep -q 'not what "traxctl scan --sum" prints' "$work/out.txt" ||
	fail "compared with a script: $(cat "$work/out.txt")"
printf x >>"$mnt/tree/format.md"
printf y | dd of="$mnt/tree/glossary.md" conv=notrunc status=none
touch -d '2001-01-01' "$mnt/tree/glossary.md"
rm "$mnt/tree/bench.md"
printf new >"$mnt/tree/new"
scan --compare "$work/sums" >"$work/out.txt"
[ $? -eq 1 ] || fail "rot is no error"
printf '%s\n' "changed $mnt/tree/format.md" "missing $mnt/tree/bench.md" \
	"new $mnt/tree/new" "rotted $mnt/tree/glossary.md" >"$work/want"
sort "$work/out.txt" | cmp - "$work/want" || fail "what has changed"

# A scan that was killed goes on behind its cursor, over a remount.
scan --cursor "$work/cursor" -- sh -c 'head -c 9000000 >/dev/null' 2>/dev/null
[ -s "$work/cursor" ] || fail "no cursor is kept"
umount "$mnt" && wait_for_server
"$tools/traxfs" "$image" "$mnt" || fail "mount again"
scan --cursor "$work/cursor" --sum >"$work/rest" || fail "going on"
[ ! -e "$work/cursor" ] || fail "the cursor is still there"
rest=$(wc -l <"$work/rest")
all=$(find "$mnt/tree" -type f | wc -l)
[ "$rest" -gt 1 ] && [ "$rest" -le "$all" ] ||
	fail "$rest of $all files after the cursor"

# The daemon is killed in the middle of one: it ends with an error, and the next
# goes on.
scan --cursor "$work/cursor" -- sh -c 'head -c 9000000; sleep 2; cat' \
	>/dev/null 2>&1 &
scanning=$!
sleep 1
kill -9 $(server)
wait $scanning && fail "a scan whose daemon was killed ended well"
umount -l "$mnt"
wait_for_server
"$tools/traxfs" "$image" "$mnt" || fail "mount after a crash"
[ -s "$work/cursor" ] || fail "no cursor after a crash"
scan --cursor "$work/cursor" --sum >"$work/rest" || fail "going on after it"
sums_agree

# The stream, to a command; in both orders.
for order in any file; do
	rm -rf "$work/out"
	mkdir "$work/out"
	scan --order $order -- python3 "$work/unpack.py" "$work/out" ||
		fail "a stream in order $order"
	diff -r "$mnt/tree" "$work/out" || fail "what came in order $order"
done
scan --copy "$work/copy" || fail "a copy"
diff -r "$mnt/tree" "$work/copy" || fail "what was copied"
[ "$(cd "$mnt/tree" && stat -c "%n %a %u %Y %s" *)" = \
  "$(cd "$work/copy" && stat -c "%n %a %u %Y %s" *)" ] || fail "times and modes"
# Nothing is written or deleted through links that somebody put there.
mkdir "$mnt/tree/below" "$mnt/tree/below/deep" "$work/away" "$work/away/deep"
echo new >"$mnt/tree/below/one"
echo new >"$mnt/tree/below/deep/two"
echo old >"$work/away/one"
echo old >"$work/away/deep/two"
for link in below below/deep; do
	rm -rf "$work/copy"
	mkdir -p "$work/copy/$(dirname "$link")"
	[ "$link" = below ] && away=$work/away || away=$work/away/deep
	ln -s "$away" "$work/copy/$link"
	scan --copy "$work/copy" 2>/dev/null && fail "a copy through a link"
	[ "$(cat "$work/away/one" "$work/away/deep/two" | sort -u)" = old ] ||
		fail "written through a link, $link"
done
ln -s "$work/copy" "$work/named"
rm -rf "$work/copy" && mkdir "$work/copy"
scan --copy "$work/named" || fail "a copy to a link that was named"
diff -r "$mnt/tree" "$work/copy" || fail "what was copied to it"
rm -r "$mnt/tree/below"
[ "$(scan --grep 'one byte less')" = "$mnt/tree/inline" ] || fail "grep"
scan --sample 30 >"$work/sample" || fail "sample"
[ "$(stat -c %s "$work/sample")" -gt 5000000 ] || fail "a small sample"

# While files are written: each digest is that of a content that there was.
cat >"$work/change.py" <<'END'
import os, sys, time, hashlib
n = 0
while not os.path.exists(sys.argv[2]):
    for k in range(4):
        with open("%s/moving%d" % (sys.argv[1], k), "r+b", 0) as f:
            f.write(bytes([65 + n % 26]) * 300000)
    n += 1
    time.sleep(0.3)
END
for k in 0 1 2 3; do
	head -c 300000 /dev/zero >"$mnt/tree/moving$k"
done
python3 "$work/change.py" "$mnt/tree" "$work/stop" &
changer=$!
for _ in 1 2 3; do
	rm -rf "$work/out"
	mkdir "$work/out"
	# The disk is not idle, and has no gaps that are known.
	scan --promote-last 100 -- python3 "$work/unpack.py" "$work/out" ||
		fail "a stream while files change"
	for k in 0 1 2 3; do
		[ "$(stat -c %s "$work/out/moving$k")" -eq 300000 ] &&
			[ "$(fold -w 1 "$work/out/moving$k" | head -c 600000 |
			     sort -u | wc -l)" -le 1 ] ||
			fail "a torn file"
	done
done
# The same of digests; what does not change has its own.
cat >"$work/contents.py" <<'END'
import sys
for c in b"\0" + bytes(range(65, 91)):
    with open("%s/%d" % (sys.argv[1], c), "wb") as f:
        f.write(bytes([c]) * 300000)
END
mkdir "$work/contents"
python3 "$work/contents.py" "$work/contents"
find "$work/contents" -type f | python3 "$work/verity.py" |
	sed 's/ .*//' >"$work/may"
find "$mnt/tree" -type f ! -name 'moving*' | python3 "$work/verity.py" |
	sort >"$work/want"
for _ in 1 2 3; do
	scan --promote-last 100 --sum >"$work/sums" ||
		fail "digests while files change"
	grep -v '^#\|/moving' "$work/sums" | sort | cmp - "$work/want" ||
		fail "digests beside files that change"
	[ "$(sed -n 's/ .*\/moving.$//p' "$work/sums" |
	     grep -cxFf "$work/may")" -eq 4 ] || fail "a digest of a torn file"
done
: >"$work/stop"
wait $changer

# Everybody may scan what he may read, and nothing else.
printf secret >"$mnt/tree/secret"
chmod 600 "$mnt/tree/secret"
printf public >"$mnt/tree/public"
chmod 711 "$work"	# others get as far as the mount
if command -v setpriv >/dev/null; then
	nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
	$nobody "$tools/traxctl" scan --path "$mnt/tree/public" -- cat \
		>"$work/out.txt" || fail "nobody may scan what he may read"
	grep -q public "$work/out.txt" || fail "nothing public came out"
	$nobody "$tools/traxctl" scan --path "$mnt/tree/secret" \
		>"$work/out.txt" 2>"$work/err.txt" &&
		fail "nobody may scan a secret"
	! grep -q '^DATA' "$work/out.txt" || fail "a secret came out"
	grep -q "secret: Permission denied" "$work/err.txt" ||
		fail "a secret: $(cat "$work/err.txt")"
fi
# The table of tasks, while a scan waits for its program.
"$tools/traxctl" tasks "$mnt" >"$work/out.txt" || fail "tasks"
grep -q '^scrub  *waiting' "$work/out.txt" || fail "no scrub in the table"
mkfifo "$work/pipe"
{ sleep 3; cat; } <"$work/pipe" >/dev/null &
scan -- sh -c "cat >\"$work/pipe\"" &
scanning=$!
sleep 1
"$tools/traxctl" tasks "$mnt" >"$work/out.txt"
task=$(sed -n 's/^\(scan-[0-9]*\) .*/\1/p' "$work/out.txt")
[ -n "$task" ] || fail "no scan in the table"
"$tools/traxctl" tasks pause "$task" "$mnt" || fail "pause"
"$tools/traxctl" tasks "$mnt" | grep -q "^$task  *paused" ||
	fail "it is not paused"
"$tools/traxctl" tasks pause nothing "$mnt" 2>/dev/null &&
	fail "nothing was paused"
"$tools/traxctl" tasks resume "$task" "$mnt" || fail "resume"
wait $scanning || fail "a scan that was paused"
# Nothing moves where nothing turns.
if "$tools/traxctl" tasks "$mnt" | grep -q '^cleaning '; then
	"$tools/traxctl" tasks pause cleaning "$mnt" || fail "pause cleaning"
	"$tools/traxctl" tasks "$mnt" | grep -q '^cleaning  *paused' ||
		fail "cleaning is not paused"
	"$tools/traxctl" status "$mnt" | grep -q '^cleaning  *paused' ||
		fail "the status does not say so"
	"$tools/traxctl" order now "$mnt" || fail "order now"
	"$tools/traxctl" order pause "$mnt" || fail "order pause"
	"$tools/traxctl" order status "$mnt" | grep -q '^state  *paused' ||
		fail "order is not paused"
	"$tools/traxctl" order resume "$mnt" || fail "order resume"
	"$tools/traxctl" order now --wait "$mnt" | grep -q '^moved ' ||
		fail "order does not end"
	sums_agree
fi
"$tools/traxctl" tasks limit 3 "$mnt" && "$tools/traxctl" tasks "$mnt" |
	grep -q 'limit 3 %' || fail "limit"
"$tools/traxctl" tasks pause nothing "$mnt" 2>&1 |
	grep -q 'no task has the name nothing' || fail "a task of no name"
"$tools/traxctl" tasks limit 200 "$mnt" 2>&1 |
	grep -q 'percent from 0 to 50' || fail "limit 200"

# Free space is all that is not in use.
"$tools/traxctl" scan --path "$mnt" --free >"$work/free" ||
	fail "scan --free"
read -r bytes rest <"$work/free"
[ "$rest" = "bytes of free space were read, 0 cannot be read" ] ||
	fail "scan --free: $(cat "$work/free")"
free=$(($(stat -f -c '%f * %S' "$mnt")))
[ "$bytes" -gt $((free - free / 4)) ] && [ "$bytes" -le $((free + free / 4)) ] ||
	fail "scan --free read $bytes of $free"
"$tools/traxctl" scan --path "$mnt" --free -- \
	sh -c 'head -c 7; cat >/dev/null' | grep -q '^DATA 0 ' ||
	fail "scan --free to a program"
"$tools/traxctl" scan --path "$mnt" --free --sum 2>/dev/null &&
	fail "scan --free --sum"
# It is what deleted files held, so not everybody may read it.
if command -v setpriv >/dev/null; then
	$nobody "$tools/traxctl" scan --path "$mnt" --free -- cat \
		>"$work/out.txt" 2>"$work/err.txt" &&
		fail "nobody may read free space"
	[ ! -s "$work/out.txt" ] || fail "free space came out"
	grep -q "not permitted" "$work/err.txt" ||
		fail "free space: $(cat "$work/err.txt")"
fi
# One that was broken off goes on in the next GiB.
free_of() {
	"$tools/traxctl" scan --path "$1" --free --cursor "$work/cursor" |
		sed 's/ .*//'
}
truncate -s 3G "$work/large"
"$tools/mkfs.traxfs" "$work/large" >/dev/null || fail "mkfs of 3 GiB"
mkdir "$work/large.mnt"
"$tools/traxfs" "$work/large" "$work/large.mnt" || fail "mount 3 GiB"
echo "free 2147483648" >"$work/cursor"
last=$(free_of "$work/large.mnt")
[ ! -e "$work/cursor" ] || fail "the cursor of free space is still there"
all=$(free_of "$work/large.mnt")
umount "$work/large.mnt"
[ "$last" -gt 500000000 ] && [ "$last" -lt 1100000000 ] &&
	[ "$all" -gt 2500000000 ] ||
	fail "free space of 3 GiB: $all bytes, $last behind the cursor"

# A scan that is killed in the middle leaves nothing behind.
scan -- sh -c 'head -c 1000 >/dev/null; kill -9 $PPID' 2>/dev/null
for _ in 1 2 3 4 5; do
	(exec 3<"$mnt/.traxfs-scan") || fail "no scan is left"
done
sums_agree
umount "$mnt" && wait_for_server
check "$image"
echo "scans give what files hold"
