#!/bin/sh
# ltp.sh [GROUP ...] - groups of the Linux Test Project that work in a directory
# they are given; default: fs, syscalls.  LTP: where it has been installed
# (usually /opt/ltp).  LTP_ONLY: a pattern (grep -E) of the names to be run;
# LTP_SECONDS: limit of one test (300).
#
# The tests are started here one by one: LTP has no runner of its own any more.
# One that fails is run again in SUITE_DIR itself, to tell what the machine or
# the kernel fails anywhere.
. "$(dirname "$0")/common.sh"
need LTP "${LTP-}" runtest/fs
begin 4G
[ $# -gt 0 ] || set -- fs syscalls
export LTPROOT="$LTP" PATH="$LTP/testcases/bin:$PATH"
log=$work/ltp.log
TCONF=32	# a test's way to say that something it needs is missing
mkdir -p "$work/elsewhere"
: >"$log"

# One test, in a directory: its exit status.
run() { # DIRECTORY COMMAND
	(
		export TMPDIR="$1"
		cd "$1" && exec timeout -k 10 "${LTP_SECONDS-300}" \
			sh -c "$2" </dev/null >"$work/ltp.out" 2>&1
	)
}

one() { # NAME COMMAND
	run "$mnt" "$2"
	code=$?
	case $code in
	0) echo "pass $1" >>"$log"; return ;;
	$TCONF) echo "skip $1" >>"$log"; return ;;
	esac
	cp "$work/ltp.out" "$work/ltp.$1.out"
	run "$work/elsewhere" "$2" &&
		echo "FAIL $1: $code" >>"$log" ||
		echo "fails-elsewhere $1: $code" >>"$log"
}

for group; do
	while read -r name command; do
		case $name in
		'' | '#'*) continue ;;
		esac
		echo "$name" | grep -qE "${LTP_ONLY-.}" && one "$name" "$command"
	done <"$LTP/runtest/$group"
done
grep FAIL "$log"
cut -d ' ' -f 1 "$log" | sort | uniq -c
end
! grep -q FAIL "$log"
