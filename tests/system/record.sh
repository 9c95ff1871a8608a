#!/bin/bash
# record.sh [PROGRAM ...] - makes the traces of tests/traces: real programs work
# on a mount whose daemon writes down what the front end sends.  By hand, as
# root; crash --trace and fault --trace replay them.
set -eu
build=$(cd "${top_builddir:-.}" && pwd)
traces=$(cd "$(dirname "$0")/../traces" && pwd)
work=$(mktemp -d /tmp/traxfs-record-XXXXXX)
mnt=$work/mnt
mkdir "$mnt"
trap 'umount "$mnt" 2>/dev/null || :; rm -rf "$work"' EXIT
unset XDG_CONFIG_HOME
export HOME=$work GIT_AUTHOR_DATE='2026-01-01 00:00 +0000'
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE

# A tree of 60 files of 100 bytes to 120 KB, the same each time.
tree()
{
	awk -v dir="$1" 'BEGIN {
		srand(7)
		for (i = 0; i < 60; i++) {
			d = dir "/d" int(i / 12)
			if (i % 12 == 0)
				system("mkdir -p " d)
			n = 100 + int(exp(rand() * 7))
			f = d "/file" i
			for (j = 0; j < n; j++)
				printf "%d line %d of %s\n", i, j * j, f > f
			close(f)
		}
	}'
}

run_tar()
{
	tree "$work/from"
	ln -s file1 "$work/from/d0/link"
	ln "$work/from/d0/file1" "$work/from/d0/hard"
	tar -C "$work" -cf "$mnt/a.tar" from
	tar -C "$mnt" -xf "$mnt/a.tar"
	sync -f "$mnt"
	tar -C "$mnt" -cf "$mnt/b.tar" from
	rm -r "$mnt/from" "$mnt/a.tar"
	tar -C "$mnt" -xf "$mnt/b.tar"
}

run_sqlite()
{
	{
		echo 'create table t(k integer primary key, v text);'
		echo 'create index i on t(v);'
		for i in $(seq 40); do
			echo "insert into t(v) values (hex(randomblob(300)));"
			echo "update t set v = 'x' || v where k % 7 = $((i % 7));"
		done
		echo 'pragma journal_mode=wal;'
		for i in $(seq 60); do
			echo "begin; delete from t where k = $i;"
			echo "insert into t(v) values (hex(randomblob(500)));"
			echo 'commit;'
		done
		echo 'pragma wal_checkpoint(truncate); vacuum;'
	} | sqlite3 "$mnt/db" >/dev/null
}

run_git()
{
	git init -q --template= "$mnt/r"
	tree "$mnt/r/t"
	cd "$mnt/r"
	git add . && git commit -qm one
	sed -i 's/line/word/' t/d*/file?
	git commit -qam two
	git checkout -q -b other HEAD~1
	git mv t/d1 t/e1
	git commit -qm three
	git -c core.fsync=all gc -q
	git checkout -q master 2>/dev/null || git checkout -q main
	cd /
}

run_rsync()
{
	tree "$work/from"
	rsync -a "$work/from/" "$mnt/to"
	sed -i 's/line/word/' "$work"/from/d*/file?
	rm "$work"/from/d2/*
	rsync -a --delete "$work/from/" "$mnt/to"
	rsync -a --inplace "$work/from/" "$mnt/to2"
	sed -i 's/word/line/' "$work"/from/d*/file?
	rsync -a --inplace --fsync "$work/from/" "$mnt/to2"
	rsync -a --link-dest="$mnt/to2" "$work/from/" "$mnt/to3"
}

run_postmark()
{
	printf '%s\n' "set location $mnt" 'set number 100' \
		'set transactions 250' 'set size 500 40000' run quit |
		postmark >/dev/null
}

# Several processes at once, in one directory.
run_stress()
{
	"$build/tests/stress/names" --seed 3 --ops 120 --processes 3 tree "$mnt"
	"$build/tests/stress/fsx" --seed 3 --ops 150 --files 2 --size 300000 "$mnt"
}

record()
{
	truncate -s 0 "$work/text" && truncate -s 64M "$work/text"
	rm -f "$work/image" && truncate -s 96M "$work/image"
	"$build/mkfs.traxfs" "$work/image" >/dev/null 2>&1
	TRAX_RECORD=$work/text "$build/tests/system/traxfs_record" \
		"$work/image" "$mnt"
	"run_$1"
	umount "$mnt"
	tr -d '\0' <"$work/text" >"$traces/$1.trace"
	"$build/chkfs.traxfs" -n "$work/image" >/dev/null
	rm -rf "$work/from"
	echo "$1: $(grep -c '^>' "$traces/$1.trace") operations," \
		"$(wc -c <"$traces/$1.trace") bytes"
}

[ $# -gt 0 ] || set -- git postmark rsync sqlite stress tar
for program; do
	record "$program"
done
