#!/bin/sh
# traxctl_use.sh - each command of traxctl says what it takes, and refuses what it
# does not take; nothing here needs a mount.
set -u
traxctl=$top_builddir/traxctl

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# CODE WORDS...: the command line behind it is refused, and says the words.
refused() {
	code=$1 words=$2
	shift 2
	said=$("$traxctl" "$@" 2>&1 </dev/null)
	[ $? -eq "$code" ] || fail "$*: not $code: $said"
	case $said in
	*"$words"*) ;;
	*) fail "$*: $said" ;;
	esac
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
		--output=x --quiet --json; do
		case $help in
		*"${option%=*}"*) continue ;;
		esac
		refused 2 "$command takes no ${option%=*}" "$command" \
			"$option" /nowhere
	done
done
"$traxctl" scan --help >/dev/null || fail "scan --help"
refused 2 "no command" nonsense
refused 2 "Usage: traxctl status" status / /
refused 2 "Usage: traxctl scrub" --json scrub /
refused 2 'not a number' replicas --set=many /
refused 2 'not a number' replicate --at=-1 /
refused 1 "/nowhere" status /nowhere
refused 1 "not on a traxfs" --json status /
"$traxctl" --version | grep -q '^traxctl [0-9]' || fail --version
echo "all good"
