#!/bin/sh
# soak.sh - a campaign of power cuts and write errors over many sequences, those
# of tests/traces among them, in parallel, that can be stopped and gone on with.
#
# Each line of the log is one command that has ended, with its seed: "ok N ..."
# (N cuts or runs with faults) or "FAILED ...".  What is "ok" is not run again.
#
#   SOAK       factor of the number of seeds (5)
#   SOAK_SEED  the first seed (1)
#   SOAK_JOBS  commands at once (the number of processors)
#   SOAK_LOG   the log (soak.log)
set -eu
traces=$(cd "$(dirname "$0")/../traces" && pwd)
cd "${top_builddir:-.}"
# Each cut makes a file system and frees it: the memory is kept meanwhile.
export MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864
export MALLOC_MMAP_THRESHOLD_=1073741824
factor=${SOAK:-5} first=${SOAK_SEED:-1} jobs=${SOAK_JOBS:-$(nproc)}
log=${SOAK_LOG:-soak.log}
last=$((first + 4 * factor - 1))

# Short ones, so that little is done again when one is stopped.
crashes()
{
	crash="tests/system/crash --seed $1 --ops 200 --cuts 120 --recuts 2"
	echo "$crash"
	echo "$crash --cache"
	echo "$crash --cache --gaps"
	echo "$crash --cache --replicas"
	echo "$crash --cache --replicas --keep"
	echo "$crash --cache --replicas --drive atlas-10k"
	echo "$crash --lose"
	echo "$crash --cache --moves"
	echo "tests/system/crash --seed $1 --ops 60 --cuts 30 --cache --spills"
	gathers="tests/system/crash --seed $1 --ops 250 --gathers"
	echo "$gathers --cuts 80 --recuts 2"
	echo "$gathers --cuts 80 --cache --moves"
}

# What real programs made the front end send.
replays()
{
	for trace in "$traces"/*.trace; do
		crash="tests/system/crash --trace $trace --seed $1 --cuts 30"
		echo "$crash --recuts 2"
		echo "$crash --cache"
		echo "$crash --cache --gaps"
		echo "$crash --cache --moves"
		echo "$crash --cache --replicas --drive atlas-10k"
		echo "$crash --lose"
		fault="tests/system/fault --trace $trace --seed $1 --settle 45"
		# Another one of so many writes with each seed.
		k="--first $(($1 % 29 + 1)) --step 29"
		for n in 1 3 10; do
			echo "$fault --what data $k --second $n --cut"
			echo "$fault --what writes $k --second $n"
		done
		echo "tests/system/fault --trace $trace --seed $1 --what" \
			"memory --first $(($1 % 997 + 1)) --step 997"
	done
}

commands()
{
	for seed in $(seq "$first" "$last"); do
		crashes "$seed"
		replays "$seed"
		fault="tests/system/fault --seed $seed --ops 200 --settle 45"
		echo "tests/system/fault --seed $seed --ops $((40 * factor))"
		echo "tests/system/fault --seed $seed --ops 150 --what memory"
		for n in 2 3 5 10 20 50 100 200; do
			echo "tests/system/fault --seed $seed --ops 150" \
				"--what memory --most $n --every $n"
		done
		beside="tests/system/fault --seed $seed --settle 45 --step 3"
		for end in "" --cut; do
			for n in $(seq 0 12); do
				echo "$beside --ops 300 --what data --moves" \
					"--second $n $end"
				echo "$beside --ops 300 --what writes --moves" \
					"--second $n $end"
				echo "$beside --ops 30 --what writes --spills" \
					"--second $n $end"
				echo "$beside --ops 200 --what writes" \
					"--gathers --second $n $end"
			done
			for n in 4 8 15 16 200; do
				echo "$beside --ops 300 --what writes --moves" \
					"--times $n $end"
				echo "$beside --ops 30 --what writes --spills" \
					"--times $n $end"
			done
		done
		for end in "" --cut --gaps; do
			for what in data writes; do
				echo "$fault --what $what $end"
				# Pairs, and rows, of errors at every write.
				for n in $(seq 1 40); do
					echo "$fault --what $what" \
						"--second $n $end"
				done
				for n in 2 4 8 15 16 30 100 1000; do
					echo "$fault --what $what" \
						"--times $n $end"
				done
			done
		done
	done
}

# Runs one command and notes how it has ended.
one()
{
	if out=$(sh -c "$1" 2>&1); then
		n=$(echo "$out" | awk '
			match($0, /[0-9]+ (cuts, all|runs with a failing)/) {
				n += substr($0, RSTART)
			}
			END { print n + 0 }')
		line="ok $n $1"
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
			if (sub(/^ok [0-9]+ /, "", line))
				done[line] = 1
	}
	!($0 in done)' |
	tr '\n' '\0' |
	SOAK_LOG=$log xargs -0 -r -n 1 -P "$jobs" sh "$here" --one
awk '/^ok/ { n += $2; c++ } /^FAILED/ { f++ }
	END { printf "%d commands, %d cuts and faults, %d failed\n",
	      c + f, n, f }' "$log"
! grep -q ^FAILED "$log"
