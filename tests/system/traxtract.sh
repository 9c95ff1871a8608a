#!/bin/sh
# traxtract on what is no rotating disk, and on profiles.
set -u
cd "${top_builddir:-.}" || exit 1
dir=$(mktemp -d /tmp/traxtract-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

# expect STATUS WHAT COMMAND...
expect()
{
	wanted=$1 what=$2
	shift 2
	"$@" >"$dir/out" 2>"$dir/err"
	got=$?
	if [ $got -ne "$wanted" ]; then
		echo "$what: exit status $got instead of $wanted"
		cat "$dir/err"
		failed=1
	fi
}

same()
{
	cmp "$1" "$2" || { echo "$3: differs"; failed=1; }
}

# A specification is a profile: the same tracks.
./traxdisk --profile random:5 >"$dir/spec.json" || exit 1
./traxdisk --tracks "$dir/spec.json" >"$dir/true"
expect 0 "list" ./traxtract --list "$dir/spec.json" \
	--plot "$dir/picture.svg"
same "$dir/true" "$dir/out" "list"
grep -q '</svg>' "$dir/picture.svg" || { echo "no picture"; failed=1; }

# What can't be measured, and what is no use.
truncate -s 64M "$dir/image"
truncate -s 100K "$dir/small"
expect 4 "an image" ./traxtract -s "$dir/state" -o "$dir/p" "$dir/image"
expect 8 "a small one" ./traxtract -s "$dir/state" -o "$dir/p" "$dir/small"
[ ! -e "$dir/p" ] || { echo "a profile of nothing"; failed=1; }
expect 1 "nothing there" ./traxtract -s "$dir/state" "$dir/nothing"
expect 1 "no place" ./traxtract -s "$dir/state" -o "$dir/none/p" "$dir/image"
grep -q "none/p: nothing can be written there" "$dir/err" ||
	{ echo "no place: $(cat "$dir/err")"; failed=1; }
expect 2 "no device" ./traxtract
expect 2 "not the same" ./traxtract --destructive-on "$dir/small" \
	"$dir/image"
expect 7 "another drive" ./traxtract --verify "$dir/spec.json" "$dir/image"

# Of a comparison only the exit code tells, if so wanted.
[ -s "$dir/err" ] || { echo "nothing said of another drive"; failed=1; }
expect 7 "quiet" ./traxtract --quiet --verify "$dir/spec.json" "$dir/image"
[ ! -s "$dir/err" ] || { echo "not quiet"; cat "$dir/err"; failed=1; }

# In JSON, whatever the end.
expect 4 "JSON" ./traxtract --json -s "$dir/state" -o "$dir/p" "$dir/image"
grep -q '"end": "not measurable"' "$dir/err" || { echo "no JSON"; failed=1; }
expect 1 "JSON of nothing" ./traxtract --json "$dir/nothing"
grep -q '"end": "failed"' "$dir/err" || { echo "no JSON"; failed=1; }

# What is listed as unknown mkfs takes for that.
awk '$1 == "#" { print; next } ++n == 5 { at = $1; sum = $2; next }
	n > 5 && n < 9 { sum += $2; next }
	n == 9 { print "# " at " " sum " unknown" } { print }' \
	"$dir/true" >"$dir/part"
expect 0 "unknown" ./mkfs.traxfs --tracks "$dir/part" "$dir/image"
truncate -s 0 "$dir/image"
truncate -s 64M "$dir/image"

# Something is there: no writing.
expect 4 "read only" ./traxtract -s "$dir/state" "$dir/image"
printf 'x%.0s' 1 2 3 >"$dir/small"
if command -v mkswap >/dev/null; then
	mkswap "$dir/image" >/dev/null 2>&1
	expect 3 "holds something" ./traxtract -s "$dir/state" \
		--destructive-on "$dir/image" "$dir/image"
fi

# What a run that was killed has left set is put back by the next.
echo changed >"$dir/setting"
rm -f "$dir/state"
(umask 077; printf 'traxtract-state 1\nsetting sysfs %s was\n' \
	"$dir/setting" >"$dir/state")
expect 4 "after a kill" ./traxtract -s "$dir/state" "$dir/image"
[ "$(cat "$dir/setting")" = was ] || { echo "not put back"; failed=1; }
# But not if others could have written that.
echo changed >"$dir/setting"
(umask 077; printf 'traxtract-state 1\nsetting sysfs %s was\n' \
	"$dir/setting" >"$dir/state")
chmod 666 "$dir/state"
expect 1 "another's state" ./traxtract -s "$dir/state" "$dir/image"
[ "$(cat "$dir/setting")" = changed ] || { echo "put back"; failed=1; }

exit $failed
