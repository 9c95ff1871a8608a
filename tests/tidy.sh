#!/bin/sh
# tidy.sh - what can be checked of the style by counting: functions of at most
# 70 lines, files of src/ and tools/ of at most 800, lines of at most 80 columns
# (tabs of 8), no // comments, no blanks at the end of a line, header guards by
# folder and name, nothing left to do.
cd "${top_srcdir:-.}" || exit 99

find src tools tests -name '*.[ch]' | sort | xargs awk '
function bad(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why
	failed = 1
}
function width(s,   i, n, c) {
	n = 0
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		n = c == "\t" ? n + 8 - n % 8 : n + 1
	}
	return n
}
function begin_file(   n, part, name) {
	opened = 0
	guard = ""
	if (FILENAME !~ /\.h$/)
		return
	n = split(FILENAME, part, "/")
	name = toupper(part[n])
	gsub(/[^A-Z0-9]/, "_", name)
	guard = "TRAX_" toupper(part[n - 1]) "_" name
}
FNR == 1 { begin_file() }
FNR == 801 && FILENAME !~ /^tests\// { bad("more than 800 lines") }
guard != "" && /^#/ {
	if ($1 != "#ifndef" || $2 != guard)
		bad("header guard is not " guard)
	guard = ""
}
# Strings are taken out first: they may hold "//".
{
	code = $0
	gsub(/\\./, "", code)
	gsub(/"[^"]*"/, "", code)
}
code ~ /\/\// { bad("// comment") }
/[ \t]$/ { bad("blank at the end of the line") }
length($0) > 40 && width($0) > 80 { bad("wider than 80 columns") }
/TO[D]O|FIX[M]E/ { bad("something is left to do") }
/^\{/ { opened = FNR }
/^}/ {
	if (opened && FNR - opened + 1 > 70)
		bad("function of " FNR - opened + 1 " lines")
	opened = 0
}
END { exit failed }
'
