#!/bin/sh
# cycles.sh - no cycle of calls between .c files of different sub-folders of
# src/, and none of more than five files within one.  Read from the libraries'
# symbol tables, so a cycle through function pointers counts where the pointer
# is taken.  With an argument only the libraries named are looked at (fs, check)
# and the calls that close each cycle are listed.
cd "${top_builddir:-.}" || exit 99
src=$(cd "${top_srcdir:-.}" && pwd)
libs=$*
for lib in ${libs:-$(cd src && ls -d */ | tr -d /)}; do
	[ -f "src/$lib/lib$lib.a" ] || continue
	{
		(cd "$src" && find "src/$lib" -name '*.c') | sed 's/^/file /'
		nm -A "src/$lib/lib$lib.a" 2>/dev/null | tr ':' ' '
	} | awk -v lib="$lib" -v list="${libs:+1}" -v most=5 '
	# Base names are unique, so a member of the library names its source.
	$1 == "file" {
		n = split($2, part, "/")
		name = part[n]
		sub(/\.c$/, "", name)
		folder[name] = substr($2, 5, length($2) - 4 - length(part[n]) - 1)
		next
	}
	{
		name = $2
		sub(/\.o$/, "", name)
		if (!(name in folder))
			next
		if (NF == 5 && $4 ~ /^[TDBRCVW]$/)
			home[$5] = name
		else if ($(NF - 1) == "U")
			use[name, $NF] = 1
	}
	END {
		for (pair in use) {
			split(pair, p, SUBSEP)
			to = home[p[2]]
			if (to != "" && to != p[1]) {
				edge[p[1], to] = edge[p[1], to] " " p[2]
				next_of[p[1]] = next_of[p[1]] " " to
			}
		}
		for (f in folder)
			reach_from(f)
		for (f in folder)
			if (!(f in done))
				component(f)
		exit failed
	}
	function reach_from(f,   n, queue, i, j, m, t) {
		queue[n = 1] = f
		for (i = 1; i <= n; i++) {
			m = split(next_of[queue[i]], t, " ")
			for (j = 1; j <= m; j++)
				if (!((f, t[j]) in reach)) {
					reach[f, t[j]] = 1
					queue[++n] = t[j]
				}
		}
	}
	function component(f,   g, n, names, folders, mixed) {
		done[f] = 1
		if (!((f, f) in reach))
			return
		n = 1
		names = f
		mixed = 0
		for (g in folder)
			if (g != f && ((f, g) in reach) && ((g, f) in reach)) {
				done[g] = 1
				n++
				names = names " " g
				if (folder[g] != folder[f])
					mixed = 1
			}
		if (!mixed && n <= most)
			return
		failed = 1
		printf "src/%s: cycle of %d files%s: %s\n", lib, n,
			mixed ? " in several folders" : "", names
		if (list)
			calls(f)
	}
	function calls(f,   pair, p) {
		for (pair in edge) {
			split(pair, p, SUBSEP)
			if (((f, p[1]) in reach) && ((p[1], f) in reach) &&
			    ((f, p[2]) in reach) && ((p[2], f) in reach) &&
			    (folder[p[1]] != folder[p[2]]))
				printf "    %s/%s -> %s/%s:%s\n", folder[p[1]],
					p[1], folder[p[2]], p[2], edge[pair]
		}
	}' || failed=1
done
exit ${failed:-0}
