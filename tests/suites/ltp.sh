#!/bin/sh
# ltp.sh [GROUP ...] - groups of the Linux Test Project that work in a directory
# they are given; default: fs, syscalls.  LTP: where it has been installed
# (usually /opt/ltp).
. "$(dirname "$0")/common.sh"
need LTP "${LTP-}" runltp
begin 4G
[ $# -gt 0 ] || set -- fs syscalls
"$LTP/runltp" -d "$mnt" -f "$(echo "$*" | tr ' ' ,)" -q -p \
	-l "$work/ltp.log" -o "$work/ltp.out"
grep -E 'FAIL|Total' "$work/ltp.log"
end
