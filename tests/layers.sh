#!/bin/sh
# layers.sh - includes between folders are those that LAYERS allows, and only
# one folder knows each of the outside interfaces.
#
# LAYERS may name a sub-folder (sched/head): then what it includes of its own
# folder must be listed, too; what its folder may include it may as well.  A
# folder may include its sub-folders.  Who may include a folder may include the
# sub-folders of it.
cd "${top_srcdir:-.}" || exit 99

find src tools tests -name '*.[ch]' | sort | xargs awk '
BEGIN {
	while ((getline line < "LAYERS") > 0) {
		if (line ~ /^#/ || line !~ /:/)
			continue
		sub(/:/, " ", line)
		n = split(line, f, " ")
		known[f[1]] = 1
		for (i = 1; i <= n; i++)
			may[f[1], f[i]] = 1
	}
	only["fuse"] = "src/fuse tools"
	only["liburing"] = "src/disk src/fuse"
	only["scsi/"] = "src/extract"
	only["linux/fuse"] = "src/fuse tools"
}
function bad(why) {
	printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0
	failed = 1
}
# The folder of a path below src/: with its sub-folder where LAYERS names that.
function folder_of(path,   part, n) {
	n = split(path, part, "/")
	if (n > 2 && ((part[1] "/" part[2]) in known))
		return part[1] "/" part[2]
	return part[1]
}
function top(f) {
	sub(/\/.*/, "", f)
	return f
}
function allowed(from, to) {
	if (from == to || top(to) == from || ((from, to) in may))
		return 1
	if (top(from) == top(to))
		return 0
	return ((from, top(to)) in may) || ((top(from), to) in may) ||
	       ((top(from), top(to)) in may)
}
FNR == 1 {
	n = split(FILENAME, part, "/")
	folder = part[1] == "src" ? folder_of(substr(FILENAME, 5)) : part[1]
	place = part[1] == "src" ? "src/" part[2] : part[1]
	if (!(top(folder) in known))
		bad("folder is not in LAYERS")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	if (index(q[2], "/") == 0)
		bad("include carries no folder")
	else if (!allowed(folder, folder_of(q[2])))
		bad("include against LAYERS")
}
/^[ \t]*#[ \t]*include[ \t]*</ {
	name = $0
	sub(/^[^<]*</, "", name)
	for (k in only)
		if (index(name, k) == 1 &&
		    index(" " only[k] " ", " " place " ") == 0)
			bad("only " only[k] " may know this")
}
END { exit failed }
'
