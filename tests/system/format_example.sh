#!/bin/sh
# The hex dump in section 11 of doc/format.md is what mkfs writes.  After a
# change of the format: tests/system/format_example prints the new one.
set -e
top_srcdir=${top_srcdir:-.}
dir=$(mktemp -d "${TMPDIR:-/tmp}/traxfs-example-XXXXXX")
trap 'rm -rf "$dir"' EXIT

"${top_builddir:-.}/tests/system/format_example" >"$dir/made"
sed -n '/^## 11\./,$p' "$top_srcdir/doc/format.md" |
	sed -n '/^```text$/,/^```$/p' | sed '/^```/d' >"$dir/told"
diff -u "$dir/told" "$dir/made"
