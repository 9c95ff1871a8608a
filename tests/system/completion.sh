#!/bin/bash
# completion.sh - what bash, zsh and fish complete is what the programs have.
set -u
export PATH=$top_builddir:$PATH

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

complete_word() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_trax "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	printf '%s\n' "${COMPREPLY[@]}"
}

# The same by zsh, with stand-ins for the functions of its completion system:
# they print what they are given.  Prints the last word where there is no zsh.
complete_by_zsh() {
	command -v zsh >/dev/null || {
		printf '%s\n' "${@: -1}"
		return
	}
	# shellcheck disable=SC2016
	zsh -fc 'file=$1
		shift
		compadd() { print -rl -- ${(P)2} }
		_call_program() { shift; "$@" }
		_values() { shift 3; print -rl -- $@ }
		_files() { print files }
		_traxfs() { source $file }
		complete() {
			local -a words=("$@")
			local CURRENT=$# PREFIX=$words[-1] service=$1
			_traxfs
		}
		complete "$@"' zsh "$top_srcdir/etc/_traxfs" "$@"
}

. "$top_srcdir/etc/traxfs.bash"
for program in traxfs mkfs.traxfs chkfs.traxfs traxctl traxdisk traxtract \
	traxbench; do
	[ -x "$top_builddir/$program" ] || continue
	complete -p $program >/dev/null || fail "$program is not completed"
	# argp's usage names every option in another way.
	for option in $("$program" --usage | grep -oE -- '--[a-z-]+' | sort -u)
	do
		complete_word $program "$option" | grep -qx -- "$option" ||
			fail "$program $option"
	done
	for option in $("$program" --usage | grep -oE -- '--[a-z-]+'); do
		complete_by_zsh $program "$option" | grep -qx -- "$option" ||
			fail "zsh: $program $option"
	done
	command -v fish >/dev/null || continue
	# shellcheck disable=SC2016
	fish -c "source '$top_srcdir/etc/traxfs.fish'"'
		for option in $argv[2..]
			complete -C "$argv[1] $option" | string match -q -- "$option*"
			or echo "$argv[1] $option"
		end' $program $("$program" --usage | grep -oE -- '--[a-z-]+') |
		grep . && fail "fish does not complete these"
done
for command in status top report label uuid grow scrub metrics errors sync; do
	complete_word traxctl $command | grep -qx $command ||
		fail "traxctl $command"
done
complete_word traxctl errors --r | grep -qx -- --recheck || fail "--recheck"
complete_word traxctl streams a | grep -qx admit || fail "streams admit"
complete_word traxctl tasks l | grep -qx limit || fail "tasks limit"
for action in 'streams admit' 'tasks limit' 'scrub start' 'order now'; do
	# shellcheck disable=SC2086
	complete_by_zsh traxctl $action | grep -qx "${action#* }" ||
		fail "zsh: $action"
done
complete_by_zsh traxctl label f | grep -qx admit && fail "zsh: label admit"
for command in report order replicate; do
	complete_by_zsh traxctl $command | grep -qx $command ||
		fail "zsh: traxctl $command"
done
for option in commit= noatime remount; do
	complete_by_zsh traxfs -o $option | grep -qx -- $option ||
		fail "zsh: -o $option"
done
[ "$(complete_word traxctl scrub --w)" = --wait ] || fail "scrub --wait"
[ -z "$(complete_word traxctl label --w)" ] || fail "label --wait"
complete_word traxctl order n | grep -qx now || fail "order now"
complete_word traxctl scrub s | grep -qx start || fail "scrub start"
for option in commit= noatime remount brick nosuid context=; do
	complete_word traxfs -o ro,$option | grep -qx -- "ro,$option" ||
		fail "-o $option"
done
bash -n "$top_srcdir/etc/traxfs.bash" || fail "bash's file"
if command -v zsh >/dev/null; then
	zsh -n "$top_srcdir/etc/_traxfs" || fail "zsh's file"
fi
if command -v fish >/dev/null; then
	fish -c "source '$top_srcdir/etc/traxfs.fish'
		complete -C 'traxctl '" | grep -q '^report' ||
		fail "fish: commands"
	for action in 'streams admit' 'tasks limit' 'scrub start' 'order now'
	do
		fish -c "source '$top_srcdir/etc/traxfs.fish'
			complete -C 'traxctl ${action% *} '" |
			grep -qx "${action#* }" || fail "fish: $action"
	done
	fish -c "source '$top_srcdir/etc/traxfs.fish'
		complete -C 'mkfs.traxfs --me'" | grep -q '^--measure' ||
		fail "fish: options"
fi
echo "all good"
