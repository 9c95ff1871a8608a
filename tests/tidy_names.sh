#!/bin/sh
# tidy_names.sh - names: no base name of a file and no struct tag stands in two
# folders of src/, no word of doc/banned-words in identifiers and comments of
# src/ and tools/, no file of more than 800 lines.  src/extract is exempt from
# all but the first.  Run by tidy.sh.
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

find src tools -name '*.[ch]' ! -path 'src/extract/*' | sort | xargs awk '
BEGIN {
	while ((getline line < "doc/banned-words") > 0) {
		if (line ~ /^#/ || line == "")
			continue
		split(line, f, "\t")
		better[f[1]] = f[2]
		only_id[f[1]] = f[3] == "id"
	}
}
function bad(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why
	failed = 1
}
function look(text, id,   s, w) {
	s = tolower(text)
	while (match(s, /[a-z][a-z0-9]*/)) {
		w = substr(s, RSTART, RLENGTH)
		s = substr(s, RSTART + RLENGTH)
		if ((w in better) && (id || !only_id[w]))
			bad("\"" w "\": say " better[w])
	}
}
FNR == 1 { inside = 0 }
# A struct that is defined in two folders.
/^(struct|union|enum) [a-z_0-9]+ \{/ && FILENAME ~ /^src\// {
	folder = FILENAME
	sub(/\/[^\/]*$/, "", folder)
	if (($2 in where) && where[$2] != folder)
		bad("struct " $2 " is another one in " where[$2])
	where[$2] = folder
}
FNR == 801 { bad("more than 800 lines") }
{
	# Comments and code apart; strings and includes are neither.
	rest = $0
	code = ""
	note = ""
	gsub(/\\./, "", rest)
	gsub(/"[^"]*"/, "", rest)
	while (rest != "") {
		if (inside) {
			at = index(rest, "*/")
			note = note " " (at ? substr(rest, 1, at - 1) : rest)
			rest = at ? substr(rest, at + 2) : ""
			inside = !at
		} else {
			at = index(rest, "/*")
			code = code " " (at ? substr(rest, 1, at - 1) : rest)
			rest = at ? substr(rest, at + 2) : ""
			inside = at > 0
		}
	}
	look(code, 1)
	look(note, 0)
}
END { exit failed }
' || failed=1
exit $failed
