#!/bin/bash
# peers.sh - `traxbench peers` runs on an emulated drive and writes its report:
# the page has all of its parts, and every workload of every file system.
# shellcheck disable=SC1091,SC2154
. "$top_srcdir/tests/system/mount.sh"
need_fuse
[ -x "$tools/traxbench" ] && [ -x "$tools/traxdisk" ] ||
	skip "the tools are not built"
command -v mkfs.ext4 >/dev/null || skip "no mkfs.ext4"
[ -c /dev/loop-control ] || skip "no loop devices"

page=$work/page.html
"$tools/traxbench" peers -f traxfs,ext4 -w scan,append,random1,beside -p 2 \
	-r 1 --size 512 --image-dir "$work" -j "$work/report" --html "$page" \
	> "$work/table" || fail "peers"

for part in slower all bars latencies head map; do
	grep -q "<h2 id=\"$part\">" "$page" || fail "no part $part"
done
# What is slower comes first.
[ "$(grep -o '<h2 id="[a-z]*">' "$page" | head -1)" = '<h2 id="slower">' ] ||
	fail "something else comes first"
! grep -qE '(src|href)=|@import|<script|url\(' "$page" ||
	fail "the page needs other files"
[ "$(grep -c '<svg' "$page")" = "$(grep -c '</svg>' "$page")" ] ||
	fail "a picture has no end"
# Bars of values and of head time for four workloads, times of operations for
# three, and the map.
[ "$(grep -c '<svg' "$page")" = 12 ] || fail "not all pictures are there"

for row in scan append random1 beside; do
	[ "$(grep -c "^$row " "$work/table")" = 2 ] || fail "$row in the table"
	[ "$(grep -c "<tr title=\"[^\"]*\"><td>$row<" "$page")" = 2 ] ||
		fail "$row in the page"
	[ "$(grep -c "\"workload\": \"$row\"" "$work/report")" = 2 ] ||
		fail "$row in the report"
done
grep -q '"beside_mb_s"' "$work/report" || fail "nothing was read beside"
