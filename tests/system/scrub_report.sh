#!/bin/sh
# scrub_report.sh - traxfs-scrub-report mails damage that was not healed, and
# nothing else; traxctl and mail are stand-ins.
set -u
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT

fail() {
	echo "FAILED: $*" >&2
	cat "$dir/said" >&2
	exit 1
}

sed "s|@bindir@|$dir|; s|/etc/default/traxfs|$dir/default|g" \
	"$top_srcdir/etc/traxfs-scrub-report.in" >"$dir/report"
echo TRAXFS_MAILTO=root >"$dir/default"
cat >"$dir/traxctl" <<'END'
#!/bin/sh
[ "$1" != errors ] || cat "$(dirname "$0")/errors"
[ "$1" != scrub ] || echo "state     waiting"
END
cat >"$dir/mail" <<'END'
#!/bin/sh
cat >"$(dirname "$0")/mailed"
END
chmod +x "$dir/traxctl" "$dir/mail"
PATH=$dir:$PATH

# CODE LINES: with these errors the report ends with CODE.
ends_with() {
	code=$1
	printf '%b' "$2" >"$dir/errors"
	rm -f "$dir/mailed"
	sh "$dir/report" /mnt >"$dir/said" 2>&1
	[ $? -eq "$code" ] || fail "not $code"
	grep -q "state     waiting" "$dir/said" || fail "no state"
}

columns='number what healed path offset lbn sectors\n'
healed='1 unreadable yes /no 0 800 8\n'
lost='2 checksum no /a name 4096 1600 8\n'
ends_with 0 ''
[ ! -e "$dir/mailed" ] || fail "mail of nothing"
ends_with 0 "$columns$healed"
[ ! -e "$dir/mailed" ] || fail "mail of what was healed"
grep -q "/no 0 800" "$dir/said" || fail "what was healed is not said"
ends_with 1 "$columns$healed$lost"
grep -q "/a name" "$dir/mailed" || fail "no mail"
# A name is not read as anything but a name.
ends_with 1 "$columns"'1 checksum yes /a\\cb 0 800 8\n'"$lost"
grep -q "/a name" "$dir/mailed" || fail "a name hides what follows"
ends_with 0 "$columns"'1 checksum yes /a\\n2\\tchecksum\\tno 0 800 8\n'
sh "$dir/report" >"$dir/said" 2>&1
[ $? -eq 2 ] || fail "without a mount point"
echo "all good"
