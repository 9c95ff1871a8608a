# bash completion for the programs of traxfs: the programs themselves say what
# options, commands and mount options they have.

# --long and -s options of a program, or of one of its commands
_trax_options()
{
	"$@" --help 2>/dev/null | sed -n 's/^ \{1,8\}\(-.*\)/\1/p' |
		sed 's/  .*//' | grep -oE -- '(^|[ ,])--?[A-Za-z][A-Za-z-]*' |
		tr -d ' ,'
}

_trax_commands()
{
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_trax_words()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_trax()
{
	local program=$1 cur=$2 prev=$3 list= command=

	COMPREPLY=()
	if [[ ${program##*/} == *traxfs && ${program##*/} != *.traxfs &&
		( $prev == -o || $prev == --options ) ]]; then
		[[ $cur != *,* ]] || list=${cur%,*},
		compopt -o nospace 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P "$list" -W \
			"$("$program" -o help 2>/dev/null | sed 's/ .*//')" \
			-- "${cur##*,}")
	elif [[ $cur == -* ]]; then
		[[ $program != *traxctl || $COMP_CWORD -eq 1 ||
			${COMP_WORDS[1]} == -* ]] || command=${COMP_WORDS[1]}
		_trax_words "$(_trax_options "$program" $command)" "$cur"
	elif [[ $COMP_CWORD -eq 1 && -n $(_trax_commands "$program") ]]; then
		_trax_words "$(_trax_commands "$program")" "$cur"
	elif [[ $COMP_CWORD -eq 2 && $prev == scrub ]]; then
		_trax_words "status start pause resume" "$cur"
	elif [[ $COMP_CWORD -eq 2 && $prev == order ]]; then
		_trax_words "status now pause resume" "$cur"
	else
		[[ $COMP_CWORD -ne 2 || $prev != streams ]] || list=admit
		[[ $COMP_CWORD -ne 2 || $prev != tasks ]] ||
			list="pause resume limit"
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur"
			compgen -f -- "$cur")
	fi
}

complete -F _trax traxfs mkfs.traxfs chkfs.traxfs fsck.traxfs traxctl \
	traxdisk traxtract traxbench
