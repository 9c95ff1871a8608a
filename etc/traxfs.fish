# fish completion: the programs themselves say what they have.
function __trax_options
	$argv[1] --help 2>/dev/null | sed -n 's/^ \{1,8\}\(-.*\)/\1/p' |
		sed 's/  .*//' | grep -oE -- '(^|[ ,])--?[A-Za-z][A-Za-z-]*' |
		tr -d ' ,'
end

function __trax_commands
	traxctl --help 2>/dev/null |
		sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
end

for program in traxfs mkfs.traxfs chkfs.traxfs fsck.traxfs traxctl traxdisk \
	traxtract traxbench
	complete -c $program -n 'string match -q -- "-*" (commandline -ct)' \
		-f -a "(__trax_options $program)"
end
complete -c traxctl -n 'test (count (commandline -opc)) -eq 1' -f \
	-a '(__trax_commands)'
# Actions of a command; where no path may stand in their place no file is offered.
function __trax_action
	set -l words (commandline -opc)
	test (count $words) -eq 2; and contains -- $words[2] $argv
end

complete -c traxctl -n '__trax_action scrub' -f -a 'status start pause resume'
complete -c traxctl -n '__trax_action order' -f -a 'status now pause resume'
complete -c traxctl -n '__trax_action streams' -a admit
complete -c traxctl -n '__trax_action tasks' -a 'pause resume limit'
complete -c traxfs -s o -l options -x \
	-a '(traxfs -o help 2>/dev/null | sed "s/ .*//")'
