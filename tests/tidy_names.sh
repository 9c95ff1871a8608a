#!/bin/sh
# tidy_names.sh - no word of doc/banned-words in identifiers and comments of src/
# and tools/; src/extract is exempt.
cd "${top_srcdir:-.}" || exit 99
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
'
