#!/bin/bash
# papers.sh - `traxbench papers` measures every figure that it has from a paper,
# and says the same on paper and in JSON, for one seed always the same.
set -eu
export PATH=$top_builddir:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

traxbench papers -q -j "$dir/figures" > "$dir/table"
for paper in traxtents freeblock "range writes" validation FS2; do
	grep -q "^| $paper" "$dir/table" || fail "no figure of $paper"
	grep -q "^\* $paper" "$dir/table" || fail "nothing about $paper left out"
done

# Eight columns in every row, and nothing empty but the unit.
grep '^|' "$dir/table" | awk -F ' *[|] *' 'NF != 10 { exit 1 }
	{ for (i = 2; i < 10; i++) if (i != 7 && $i == "") exit 1 }' ||
	fail "a row lacks something"
rows=$(grep -c '^| ' "$dir/table")
[ "$(grep -c '"ours":' "$dir/figures")" = $((rows - 1)) ] ||
	fail "not every figure is in the file"
for key in paper place what unit drive said published differs; do
	[ "$(grep -c "\"$key\":" "$dir/figures")" = $((rows - 1)) ] ||
		fail "$key is missing in the file"
done

traxbench papers -q traxtents > "$dir/again"
[ "$(grep "^| traxtents" "$dir/again")" = "$(grep "^| traxtents" "$dir/table")" ] ||
	fail "another run has other figures"
! grep -q '^| FS2' "$dir/again" || fail "a paper that was not asked for"
! traxbench papers -q -j "$dir/no/where" traxtents > /dev/null 2>&1 ||
	fail "a file that cannot be written is no failure"
