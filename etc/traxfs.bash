# bash completion for the programs of traxfs

# _trax_complete OPTIONS OPTIONS-WITH-FILE [FIRST-WORDS]
_trax_complete()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}

	COMPREPLY=()
	if [[ " $2 " == *" $prev "* ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
	elif [[ -n $3 && $COMP_CWORD -eq 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$3" -- "$cur")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

_trax_traxfs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local list=

	if [[ $prev != -o && $prev != --options ]]; then
		_trax_complete "-o -r -f -d --options --read-only --foreground
			--debug --help --usage --version" ""
		return
	fi
	[[ $cur != *,* ]] || list=${cur%,*},
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -P "$list" -W "ro rw noatime relatime
		allow_other commit= memory= nosuid nodev noexec" -- "${cur##*,}")
}

_trax_mkfs()
{
	_trax_complete "--profile --tracks --measure -L --label -U --uuid -n
		--dry-run -f --force --json --help --usage --version" "--profile --tracks"
}

_trax_chkfs()
{
	_trax_complete "-n --no -y --yes -p --preen -f --force --data --json
		-a -v --verbose --scratch --help --usage --version" "--scratch"
}

_trax_traxctl()
{
	_trax_complete "-j --json --help --usage --version" "" \
		"status model extents tracks sync scan tasks"
}

_trax_traxdisk()
{
	_trax_complete "-f --foreground -o --options --slow --fast --seed
		--trace --profile --tracks --info --json --help --usage
		--version" "--trace"
}

_trax_traxtract()
{
	_trax_complete "-o --output -q --quick -s --state --scsi --restart
		--destructive-on -f --force --json --plot --verify --list
		--help --usage --version" \
		"-o --output -s --state --plot --verify --list"
}

_trax_traxbench()
{
	_trax_complete "--fs --drive --workload --rounds --percent --slow
		--image-dir --blind --json --help --usage --version" \
		"--drive --json --image-dir" "peers"
}

complete -F _trax_traxfs traxfs mount.traxfs
complete -F _trax_mkfs mkfs.traxfs
complete -F _trax_chkfs chkfs.traxfs fsck.traxfs
complete -F _trax_traxctl traxctl
complete -F _trax_traxdisk traxdisk
complete -F _trax_traxtract traxtract
complete -F _trax_traxbench traxbench
