#!/bin/sh
# traxctl_use.sh - each command of traxctl says what it takes, and refuses what it
# does not take; nothing here needs a mount.
set -u
traxctl=$top_builddir/traxctl

said=$(mktemp)
trap 'rm -f "$said"' EXIT

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# CODE WORDS...: the command line behind it is refused, and says the words.
refused() {
	code=$1 words=$2
	shift 2
	"$traxctl" "$@" >"$said" 2>&1 </dev/null
	[ $? -eq "$code" ] || fail "$*: not $code: $(cat "$said")"
	grep -qF "$words" "$said" || fail "$*: $(cat "$said")"
}

commands=$("$traxctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -gt 15 ] || fail "commands: $commands"
for command in $commands; do
	[ "$command" != scan ] || continue
	help=$("$traxctl" "$command" --help) || fail "$command --help"
	[ "$help" = "$("$traxctl" help "$command")" ] || fail "help $command"
	case $help in
	"Usage: traxctl $command "*) ;;
	*) fail "$command --help: $help" ;;
	esac
	refused 2 "Usage: traxctl $command " "$command"
	for option in --all --near=x --at=1 --drop --set=1 --wait --svg=x \
		--recheck --clear --output=x --quiet --json; do
		case $help in
		*"${option%=*}"*) continue ;;
		esac
		refused 2 "$command takes no ${option%=*}" "$command" \
			"$option" /nowhere
	done
done
"$traxctl" scan --help >/dev/null || fail "scan --help"
for command in $commands; do
	sed -n '/^# SYNOPSIS/,/^# DESCRIPTION/p' \
		"$top_srcdir/man/traxctl.8.scd" | grep -qF "*$command*" ||
		fail "traxctl(8) does not begin with $command"
done
refused 2 "no command" nonsense
# Columns, and what stands in brackets, don't run into what comes behind.
for program in traxctl traxfs mkfs.traxfs chkfs.traxfs traxtract traxdisk \
	traxbench; do
	"$top_builddir/$program" --help >"$said" 2>&1
	grep '[])][A-Za-z]\|\.\.\.[a-z]' "$said" && fail "$program: no blank"
done
refused 2 "Usage: traxctl status" status / /
refused 2 "Usage: traxctl scrub" --json scrub /
refused 2 'not a number' replicas --set=many /
refused 2 'not a number' replicate --at=-1 /
refused 1 "/nowhere" status /nowhere
# Of a path that is no traxfs it is said that there is none, and nothing is done.
refused 1 "/: no traxfs is mounted there" --json status /
for command in metrics model top report heat errors sync tasks uuid grow \
	'scrub start' 'budget 1' 'label' 'label new' 'uuid random' replicas \
	'replicate' 'order status' 'tasks pause order' 'streams'; do
	# shellcheck disable=SC2086 # A command and what comes before the path.
	refused 1 "/proc: no traxfs is mounted there" $command /proc
	# shellcheck disable=SC2086
	refused 1 "/nowhere: No such file" $command /nowhere
done
refused 2 "of a block at most" replicas --set 99 /
refused 2 "traxctl scan: " scan --nonsense
refused 1 "/proc: no traxfs is mounted there" scan --path /proc --sum
refused 1 "/nowhere/x: No such file" scan --path / --cursor /nowhere/x --sum
refused 2 "no share" scan --path / --sample 0 --sum
refused 2 "no share" scan --path / --promote-last some --sum
"$traxctl" --version | grep -q '^traxctl [0-9]' || fail --version
"$top_builddir/traxbench" sched --seed many head >"$said" 2>&1 &&
	fail "traxbench: a seed that is no number"
grep -q '^traxbench sched: not a number: "many"' "$said" ||
	fail "traxbench: $(cat "$said")"
for experiment in free scan pass files place gap_writeback reads streams \
	deadlines mix segments age clean postmark fsync unpack tpcb recover \
	scale cut; do
	"$top_builddir/traxbench" sched -q -d /nowhere.json $experiment \
		>"$said" 2>&1
	code=$?
	[ $code = 1 ] ||
		fail "sched $experiment: $code, $(cat "$said")"
	grep -q '^traxbench: error: /nowhere.json: No such file' "$said" ||
		fail "sched $experiment: $(cat "$said")"
done
echo "all good"
