#!/bin/sh
# The short turn of the crash and fault tests; `make soak` is the long one.
# The seeds are fixed, so that a failure is one of the change at hand.
set -e
cd "${top_builddir:-.}"

tests/system/crash --seed 1 --runs 3 --ops 350 --cuts 25 --recuts 2
tests/system/crash --seed 11 --runs 3 --ops 350 --cuts 25 --cache
tests/system/crash --seed 31 --runs 2 --ops 350 --cuts 25 --cache --replicas
tests/system/crash --seed 2 --runs 2 --ops 200 --cuts 50 --recuts 1 --cache --keep
tests/system/crash --seed 51 --runs 2 --ops 350 --cuts 40 --recuts 1 --moves
tests/system/crash --seed 61 --runs 2 --ops 350 --cuts 40 --cache --moves
# What is free is discarded.
discard="tests/system/crash --ops 350 --discard"
$discard --seed 72 --runs 2 --cuts 30 --recuts 1
$discard --seed 81 --runs 2 --cuts 30 --cache
$discard --seed 82 --cuts 20 --drive hp-c2247a
$discard --seed 83 --cuts 15 --cache --drive modern
tests/system/crash --seed 71 --runs 1 --ops 60 --cuts 15 --cache --spills
# Leaves are brought together and lined up, and node tracks go back.
tests/system/crash --seed 91 --runs 2 --ops 250 --cuts 20 --recuts 1 --gathers
tests/system/crash --seed 95 --ops 250 --cuts 25 --cache --gathers
tests/system/crash --seed 99 --ops 250 --cuts 20 --cache --gathers --moves
# Records that nobody was told of are lost.
tests/system/crash --seed 41 --runs 2 --ops 100 --cuts 25 --lose
# On a drive that is known, well or badly.
tests/system/crash --seed 31 --ops 350 --cuts 25 --recuts 2 --drive hp-c2247a
# Its tracks hold files whose places are chosen when they are written.
tests/system/crash --seed 31 --ops 350 --cuts 10 --drive modern
tests/system/crash --seed 7 --ops 350 --cuts 15 --recuts 1 --gaps --drive hp-c2247a
tests/system/crash --seed 20 --ops 350 --cuts 15 --cache --gaps
tests/system/crash --seed 32 --ops 350 --cuts 10 --drive hp-c2247a --doubt 1
tests/system/crash --seed 33 --ops 350 --cuts 10 --drive hp-c2247a --doubt 4
tests/system/crash --seed 5 --ops 250 --cuts 20 --drive hp-c2247a --replicas
tests/system/crash --seed 21 --ops 350 --cuts 0 --canary
tests/system/fault --seed 1 --ops 400 --step 5 --what requests
tests/system/fault --seed 1 --ops 150 --step 11 --what memory
for n in 3 7 40; do
	tests/system/fault --seed 2 --ops 100 --most 4 --what memory --every $n
done
# Homes fail whose files are waited for.
tests/system/fault --seed 14 --ops 400 --first 131 --most 151 --step 4 --gaps
# One write error, two, and many, at every write: of data, then of everything.
errors="tests/system/fault --ops 150 --settle 45"
$errors --seed 3 --what data
$errors --seed 3 --what data --cut
$errors --seed 4 --what data --second 1 --cut
$errors --seed 4 --what data --second 3 --gaps
$errors --seed 5 --what data --times 4 --cut
# So many that data is given up.
$errors --seed 6 --what data --times 30 --cut
$errors --seed 7 --what data --times 1000
$errors --seed 3 --what writes --step 3
$errors --seed 8 --what writes --second 2 --cut --step 4
$errors --seed 1 --what writes --times 200 --step 9
# What real programs made the front end send.
for trace in "${top_srcdir:-..}"/tests/traces/*.trace; do
	tests/system/crash --trace "$trace" --cuts 8 --recuts 1 --cache
	tests/system/crash --trace "$trace" --cuts 4 --gaps
	tests/system/fault --trace "$trace" --settle 45 --what data \
		--first 3 --step 71
	tests/system/fault --trace "$trace" --settle 45 --what writes \
		--first 7 --step 101 --second 2 --cut
	tests/system/fault --trace "$trace" --what memory --first 50 \
		--step 499 --most 9000
done
# An access ACL that changes the mode is the last that is there.
tests/system/crash --trace "${top_srcdir:-..}/tests/traces/git.trace" \
	--seed 800001 --cuts 30 --cache --replicas --drive atlas-10k
# A checkpoint begins here.
tests/system/fault --trace "${top_srcdir:-..}/tests/traces/sqlite.trace" \
	--what memory --first 2390 --most 2430
# The same while data is moved, while leaves are written because memory is short,
# and while they are brought together.
errors="tests/system/fault --settle 45"
$errors --seed 3 --ops 300 --what data --moves --cut --step 3
$errors --seed 3 --ops 300 --what data --moves --second 3 --step 3
$errors --seed 3 --ops 30 --what writes --spills --step 29
$errors --seed 3 --ops 30 --what writes --spills --second 1 --cut --step 29
$errors --seed 4 --ops 200 --what writes --gathers --step 59
$errors --seed 4 --ops 200 --what writes --gathers --second 1 --cut --step 61
$errors --seed 51 --ops 300 --what data --gathers --moves --cut --step 31
