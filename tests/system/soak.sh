#!/bin/sh
# soak.sh - a campaign of power cuts and faults over many sequences, those of
# tests/traces among them, in parallel, that can be stopped and gone on with.
#
# Each seed has all kinds of cuts and faults, some twenty thousand in all; what
# cannot be tried in full takes its turn from seed to seed.
#
# Each line of the log is one command that has ended, with its seed: "ok N M S ..."
# (N cuts, M runs with faults, S seconds of processor time), "idle ..." (what it was
# to try never happened) or "FAILED ...".  What is "ok" or "idle" is not run again.
#
#   SOAK       factor of the number of seeds (12: 48 of them)
#   SOAK_SEED  the first seed (1)
#   SOAK_JOBS  commands at once (the number of processors)
#   SOAK_LOG   the log (soak.log)
set -eu
traces=$(cd "$(dirname "$0")/../traces" && pwd)
cd "${top_builddir:-.}"
# Each cut makes a file system and frees it: the memory is kept meanwhile.
export MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864
export MALLOC_MMAP_THRESHOLD_=1073741824
factor=${SOAK:-12} first=${SOAK_SEED:-1} jobs=${SOAK_JOBS:-$(nproc)}
log=${SOAK_LOG:-soak.log}
last=$((first + 4 * factor - 1))

# The word of a list whose turn it is; the next one's is so many seeds later.
turn()
{
	seeds=$1
	shift
	shift $((seed / seeds % $#))
	echo "$1"
}

crashes()
{
	crash="tests/system/crash --seed $seed --ops 200 --cuts 100 --recuts 2"
	echo "$crash"
	echo "$crash --cache"
	echo "$crash --cache --replicas"
	echo "$crash --cache --replicas --keep"
	echo "$crash --cache --moves"
	echo "$crash $(turn 1 --cache '') --discard"
	crash="tests/system/crash --seed $seed --ops 200 --cuts 60 --recuts 1"
	echo "$crash --cache --replicas --drive atlas-10k"
	echo "$crash --drive hp-c2247a --doubt $((seed % 6))"
	echo "$crash --lose"
	crash="tests/system/crash --seed $seed"
	echo "$crash --ops 60 --cuts 100 --recuts 2 --cache --gaps"
	echo "$crash --ops 60 --cuts 20 --cache --spills"
	echo "$crash --ops 250 --cuts 20 --recuts 1 --gathers"
	echo "$crash --ops 250 --cuts 20 --cache --moves --gathers"
}

# What real programs made the front end send.
replays()
{
	for trace in "$traces"/*.trace; do
		echo "tests/system/crash --trace $trace --seed $seed --cuts 12" \
			"--recuts 1 $(turn 1 '' --cache '--cache --gaps' \
				'--cache --moves' --lose \
				'--cache --replicas --drive atlas-10k')"
		# Others of so many writes and allocations with each seed.
		fault="tests/system/fault --trace $trace --seed $seed"
		echo "$fault --settle 45 --cuts 20 --what $(turn 1 data writes)" \
			"--first $((seed % 97 + 1)) --step 97" \
			"$(turn 2 '' '--second 1' '--second 3' '--second 10' \
				'--second 1 --late 400')" "$(turn 10 '' --cut)"
		echo "$fault --what memory --cuts 5" \
			"--first $((seed % 997 + 1)) --step 997"
	done
}

# One error, two, rows of them, and delays.
faults()
{
	fault="tests/system/fault --seed $seed --ops 200 --settle 45 --cuts 12"
	fault="$fault --first $((seed % 3 + 1)) --step 3"
	echo "$fault --what requests --cache"
	echo "$fault --what reads"
	end=$(turn 1 '' --cut --gaps)
	for what in data writes; do
		echo "$fault --what $what $end"
		for n in $((seed % 10 + 1)) $((seed % 31 + 11)); do
			echo "$fault --what $what --second $n" \
				"$(turn 10 '' --cut --gaps --cache)"
		done
		echo "$fault --what $what $end" \
			"--times $(turn 3 2 4 8 15 16 30 100 1000)"
		late=$(turn 1 50 400 5000 40000)
		echo "$fault --what $what --late $late $end"
		echo "$fault --what $what --late $late" \
			"--second $((seed % 10 + 1)) $end"
	done
	echo "$fault --what reads --late $late --second $((seed % 10 + 1))"
	fault="tests/system/fault --seed $seed --ops 150 --what memory --cuts 5"
	echo "$fault --first $((seed % 7 + 1)) --step 7"
	echo "$fault --most 60 --step 3 --every $(turn 1 2 3 5 10 20 50 100 200)"
}

# The same beside moves, and while leaves are written or brought together.
faults_beside()
{
	k="--first $((seed % 97 + 1)) --step 97"
	fault="tests/system/fault --seed $seed --settle 45 --cuts 20 $k"
	errors=$(turn 2 '' "--second $((seed % 13))" '--times 4' \
		"--second $((seed % 7 + 1)) --late 400" '--times 200')
	end=$(turn 10 '' --cut)
	echo "$fault --ops 200 --what $(turn 1 data writes) --moves $errors $end"
	echo "$fault --ops 30 --what writes --spills $errors $end"
	echo "$fault --ops 200 --what writes --gathers $errors $end"
}

commands()
{
	for seed in $(seq "$first" "$last"); do
		crashes
		faults
		replays
		faults_beside
	done
}

# Processor time of all that this shell has run, in seconds.
seconds()
{
	awk -v hz="$(getconf CLK_TCK)" \
		'{ printf "%.2f\n", ($16 + $17) / hz }' /proc/$$/stat
}

# Runs one command and notes how it has ended.
one()
{
	rc=0
	out=$(sh -c "$1" 2>&1) || rc=$?
	if [ $rc -eq 0 ]; then
		line="ok $(echo "$out" | awk '
			match($0, /[0-9]+ cuts, all/) {
				cuts += substr($0, RSTART)
			}
			match($0, /[0-9]+ runs with a failing/) {
				runs += substr($0, RSTART)
			}
			END { print cuts + 0, runs + 0 }') $(seconds) $1"
	elif [ $rc -eq 4 ]; then
		line="idle $1"
	else
		line="FAILED $1"
		echo "$line"
		echo "$out" | tail -20
	fi
	echo "$line" | flock "$2" tee -a "$2" >/dev/null
}

if [ "${1:-}" = --one ]; then
	one "$2" "$log"
	exit 0
fi
touch "$log"
here=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
commands | awk -v log_file="$log" '
	BEGIN {
		while ((getline line < log_file) > 0)
			if (sub(/^(ok [0-9]+ [0-9]+ [0-9.]+|idle) /, "", line))
				done[line] = 1
	}
	!($0 in done)' |
	tr '\n' '\0' |
	SOAK_LOG=$log xargs -0 -r -n 1 -P "$jobs" sh "$here" --one
awk '/^ok/ { cuts += $2; runs += $3; s += $4 } /^idle/ { idle++ } /^FAILED/ { failed++ }
	END { printf "%d commands: %d cuts and %d runs with faults, %d in " \
	      "all, %d s of processor time; %d commands idle, %d failed\n",
	      NR, cuts, runs, cuts + runs, s, idle, failed }' "$log"
! grep -q ^FAILED "$log"
