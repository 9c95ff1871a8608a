#!/bin/sh
# layers.sh - includes between folders are those that LAYERS allows, and only
# one folder knows each of the outside interfaces.
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
FNR == 1 {
	n = split(FILENAME, part, "/")
	folder = part[1] == "src" ? part[2] : part[1]
	place = part[1] == "src" ? "src/" part[2] : part[1]
	if (!(folder in known))
		bad("folder is not in LAYERS")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	slash = index(q[2], "/")
	if (slash == 0)
		bad("include carries no folder")
	else if (substr(q[2], 1, slash - 1) != folder &&
		 !((folder, substr(q[2], 1, slash - 1)) in may))
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
