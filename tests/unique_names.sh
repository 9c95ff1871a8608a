#!/bin/sh
# unique_names.sh - no base name of a file and no struct tag stands in two
# folders of src/.
cd "${top_srcdir:-.}" || exit 99
failed=0

dup=$(find src -name '*.[ch]' | sed 's,.*/,,' | sort | uniq -d)
for f in $dup; do
	echo "two files of one name: $(find src -name "$f" | tr '\n' ' ')"
	failed=1
done
# A .c and its .h are one; a .c and a .h of one name in two folders are not.
find src -name '*.[ch]' | sed 's/\.[ch]$//' | sort -u | sed 's,.*/,,' |
	sort | uniq -d | grep . && failed=1

find src -name '*.[ch]' | sort | xargs awk '
/^(struct|union|enum) [a-z_0-9]+ \{/ {
	folder = FILENAME
	sub(/\/[^\/]*$/, "", folder)
	if (($2 in where) && where[$2] != folder) {
		printf "%s:%d: %s %s is another one in %s\n", FILENAME, FNR,
			$1, $2, where[$2]
		failed = 1
	}
	where[$2] = folder
}
END { exit failed }
' || failed=1
exit $failed
