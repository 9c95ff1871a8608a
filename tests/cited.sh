#!/bin/sh
# cited.sh - what documents and comments refer to is there: the tests that
# doc/*.md names behind their program ("test_log: commits_survive"), and the
# files of this tree that comments of src/ and tools/ name.  Files of others have
# a folder before them (linux/fuse.h).
cd "${top_srcdir:-.}" || exit 99
failed=0

find doc -name '*.md' | sort | xargs awk '
function cited(   s, p, n, i, name) {
	s = text
	while (match(s, /test_[a-z_]+: [a-z_0-9, ]+/)) {
		p = substr(s, RSTART, RLENGTH)
		s = substr(s, RSTART + RLENGTH)
		n = split(p, name, /[:, ]+/)
		for (i = 2; i <= n; i++)
			if (name[i] ~ /_/)
				print file, name[1], name[i]
	}
}
FNR == 1 { cited(); text = ""; file = FILENAME }
{ gsub(/^[ \t]+/, ""); text = text " " $0 }
END { cited() }
' | while read -r file program name; do
	grep -qw "$name" tests/unit/*/"$program".c ||
		echo "$file: $program has no $name"
done | grep . && failed=1

{
	find src tools tests lib -name '*.[ch]' | sed 's,.*/,there ,'
	find src tools -name '*.[ch]' ! -path 'src/extract/*' | sort |
		sed 's/^/look /'
} | awk '
function note(line,   at) {
	while (match(line, /[a-z_0-9\/]*[a-z_0-9]+\.[ch]/)) {
		at = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (line !~ /^[a-z_0-9]/ && at !~ /\// && !(at in there)) {
			print file ": there is no " at
			failed = 1
		}
	}
}
$1 == "there" { there[$2] = 1; next }
{
	file = $2
	inside = 0
	while ((getline line < file) > 0) {
		if (line ~ /^[ \t]*#/)
			continue
		if (!inside && match(line, /\/\*/)) {
			inside = 1
			line = substr(line, RSTART)
		}
		if (!inside)
			continue
		if (match(line, /\*\//)) {
			inside = 0
			line = substr(line, 1, RSTART)
		}
		note(line)
	}
	close(file)
}
END { exit failed }
' || failed=1
exit $failed
