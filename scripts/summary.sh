#!/bin/sh
# summary.sh BUILD - what `make check` found, one line a program and the sum.
#
# A program counts each of the checks that it says it has made, one that says
# nothing counts as one check.  A program that ended badly has failed at least
# one.  Ends with 'N passed, N failed'; exit status 1 if any failed.
cd "$1" || exit 1

# shellcheck disable=SC2046
set -- $(find tests -name '*.trs' | sort)
if [ $# -eq 0 ]; then
	echo "no test has run"
	echo "0 passed, 1 failed"
	exit 1
fi
for trs; do
	log=${trs%.trs}.log
	result=$(sed -n 's/^:test-result: *//p' "$trs" | head -n 1)
	sum=$(sed -n 's/.*Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2 \3/p' "$log" | tail -n 1)
	echo "${trs%.trs} ${result:-ERROR} $sum"
	case $result in
	PASS | SKIP | XFAIL) ;;
	*) tail -n 40 "$log" >&2 ;;
	esac
done | awk '
{
	name = $1
	result = $2
	checks = NF == 5 ? $3 : 1
	bad = NF == 5 ? $4 + $5 : 0
	if (result == "SKIP") {
		printf "  skip  %s\n", name
		next
	}
	if (result != "PASS" && result != "XFAIL" && !bad)
		bad = 1
	if (checks < bad)
		checks = bad
	printf "  %s  %s (%d)\n", bad ? "FAIL" : "ok  ", name, checks
	passed += checks - bad
	failed += bad
}
END {
	printf "%d passed, %d failed\n", passed, failed
	exit failed > 0
}'
