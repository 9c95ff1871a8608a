#!/bin/sh
# fsx.sh [SECONDS] - fsx (one file, all ways of reading and writing it, compared
# with what it must hold) and fsstress (many processes, all operations) beside
# each other, for an hour unless said otherwise, then a check.  XFSTESTS: where
# xfstests has been built; both are in its ltp folder.
. "$(dirname "$0")/common.sh"
need XFSTESTS "${XFSTESTS-}" ltp/fsx
seconds=${1-3600}
begin 4G
mkdir "$mnt/stress"
(
	end=$(($(date +%s) + seconds))
	while [ "$(date +%s)" -lt $end ]; do
		timeout "$seconds" "$XFSTESTS/ltp/fsstress" -d "$mnt/stress" \
			-p 4 -n 2000 -S t || break
		rm -rf "${mnt:?}"/stress/*
	done
) >"$work/fsstress.log" 2>&1 &
stress=$!
timeout "$seconds" "$XFSTESTS/ltp/fsx" -q -N 1000000000 "$mnt/fsx"
code=$?
wait $stress
[ $code = 124 ] || fail "fsx: see $mnt/fsx.fsxlog"
end
