#!/bin/sh
# headers.sh - every header compiles alone.  CC and the flags of the build come
# in CC and TRAX_CPPFLAGS.
cd "${top_srcdir:-.}" || exit 99
find src tools tests -name '*.h' | sort | xargs -P 2 -n 1 sh -c '
	${CC:-cc} $TRAX_CPPFLAGS -std=gnu11 -Isrc -I. -Wall -Wextra -Wno-unused \
		-fsyntax-only -x c -include "$0" /dev/null ||
		{ echo "$0 does not compile alone"; exit 1; }'
