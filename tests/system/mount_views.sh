#!/bin/sh
# mount_views.sh - what people look at: tables, the live view, the report; and
# that nothing in them is taken for markup or for a terminal's command.
set -u
. "$top_srcdir/tests/system/mount.sh"
need_fuse
make_image 128M

# U+0085 in a label: escaped in JSON.
"$tools/mkfs.traxfs" -L "$(printf 'a\302\205<b>')" --json "$image" \
	>"$work/json" 2>/dev/null || fail mkfs
grep -q '"a\\u0085<b>"' "$work/json" || fail "mkfs: $(cat "$work/json")"
"$tools/traxfs" "$image" "$mnt" || fail mount
cp -r "$top_srcdir/tools" "$mnt/" && sync -f "$mnt" || fail copy

words() {
	"$tools/traxctl" "$@" "$mnt" >"$work/out" || fail "traxctl $*"
	for word in $expected; do
		grep -q "$word" "$work/out" || {
			cat "$work/out"
			fail "traxctl $*: no $word"
		}
	done
}
expected="^tracks ^head not.followed boundaries"
words model
expected="wanted reads.by.them"
words replicas
grep -q '{' "$work/out" && fail "JSON without --json"
expected="of.the.disk last.accesses"
words heat
grep -q '{' "$work/out" && fail "JSON without --json"
expected="^heat ^head commits read-ahead ^scrub ^damage"
words top
# The map of the platter: what lies where, by colour.
expected="DOCTYPE </svg> Health What.would.be.better write-back
	files.and.tree copies log.[0-9] free.[0-9] no.zones.known less.than.an.hour"
words report
"$tools/traxctl" report -o "$work/r.html" "$mnt" || fail report
grep -q '<script\|http://[^w]\|https://' "$work/r.html" &&
	fail "the page is not for itself"
if command -v chromium >/dev/null; then
	HOME=$work timeout 60 chromium --headless --no-sandbox --disable-gpu \
		--dump-dom "file://$work/r.html" >"$work/dom" \
		2>"$work/said" || fail "chromium: $(tail -n 3 "$work/said")"
	grep -q 'first sectors outside' "$work/dom" ||
		fail "the page as a browser has it"
else
	echo "SKIPPED: the report in a browser (there is no chromium)"
fi
# -q: nothing is said of what goes well.
quiet() {
	said=$("$@" 2>&1) || fail "$*: $said"
	[ -z "$said" ] || fail "$* says: $said"
}
quiet "$tools/traxctl" replicate -q "$mnt/tools"
"$tools/traxctl" replicate --at=99999999999 "$mnt/tools" 2>"$work/said" &&
	fail "replicas beyond the disk's end"
grep -q 'the disk has no sector 99999999999' "$work/said" ||
	fail "beyond the end: $(cat "$work/said")"
quiet "$tools/traxctl" scrub -q --wait start "$mnt"
# What is not quiet ends with all of it, or says why not.
"$tools/traxctl" scrub start --wait "$mnt" >"$work/out" 2>"$work/said" ||
	fail "scrub: $(cat "$work/said")"
grep -q '^scrub: 100 % of .* MiB in .* s, no damage$' "$work/out" ||
	fail "scrub: $(cat "$work/out" "$work/said")"
# A pass that does not come to its end soon: idle time begins after a minute.
"$tools/traxfs" -o remount,quiet=60000 "$image" "$mnt" || fail "quiet="
"$tools/traxctl" scrub start "$mnt" || fail "scrub start"
"$tools/traxctl" scrub pause "$mnt" || fail "scrub pause"
("$tools/traxctl" scrub start --wait "$mnt" >"$work/out" 2>"$work/said"
	echo $? >"$work/code") &
for _ in $(seq 100); do
	"$tools/traxctl" --json scrub status "$mnt" | grep -q '"running"' &&
		break
	sleep 0.1
done
"$tools/traxctl" scrub pause "$mnt" || fail "scrub pause"
wait
[ "$(cat "$work/code")" = 1 ] && grep -q 'paused at .* goes on' "$work/said" ||
	fail "a pass that was paused: $(cat "$work/code" "$work/said")"
umount "$mnt" || fail umount
check "$image"
quiet "$tools/chkfs.traxfs" -q --data "$image"
# Damage is listed until it is mended from outside.
"$tools/traxfs" "$image" "$mnt" || fail mount
head -c 100000 /dev/urandom >"$mnt/rot" && sync -f "$mnt"
lbn=$("$tools/traxctl" extents "$mnt/rot" | awk 'NR == 2 { print $3 }')
umount "$mnt" || fail umount
printf x | dd of="$image" bs=1 seek=$((lbn * 512 + 5000)) conv=notrunc \
	status=none
"$tools/traxfs" "$image" "$mnt" || fail mount
cat "$mnt/rot" >"$work/out" 2>&1 && fail "rot is read"
errors() {
	"$tools/traxctl" errors "$@" "$mnt" >"$work/out" 2>&1 ||
		fail "errors $*: $(cat "$work/out")"
}
errors --recheck
grep -q ' no /rot .*4096 ' "$work/out" || fail "errors: $(cat "$work/out")"
"$tools/traxctl" status "$mnt" | grep -q '1 place:' || fail "status of damage"
head -c 100000 /dev/urandom >"$mnt/rot" && sync -f "$mnt"
errors
grep -q /rot "$work/out" || fail "errors without being asked to look"
errors --recheck
[ ! -s "$work/out" ] || fail "mended: $(cat "$work/out")"
"$tools/traxctl" status "$mnt" | grep -q 'none met' || fail "status when mended"
errors --clear
grep -q '^removed: 0 entries$' "$work/out" || fail "clear: $(cat "$work/out")"
umount "$mnt" || fail umount
quiet "$tools/mkfs.traxfs" -q -f "$image"
"$tools/mkfs.traxfs" -q "$image" 2>"$work/said" && fail "mkfs over mkfs"
grep -q traxfs "$work/said" || fail "-q hides a refusal"
echo "all good"
