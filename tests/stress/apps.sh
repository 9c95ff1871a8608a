#!/bin/bash
# apps.sh - real programs at work in a directory: apps.sh DIRECTORY [TIMES].
# What is not installed is left out.  Exit: 0, or 1 at the first wrong thing.
set -u
dir=$1/apps
times=${2-1}
work=$(mktemp -d "${TMPDIR-/tmp}/traxfs-apps-XXXXXX")
trap 'cd /; rm -rf "$work"' EXIT

fail() {
	echo "apps: FAILED: $*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null || {
		echo "apps: skipped: no $1"
		return 1
	}
}

# A tree of some hundred or thousand files.
source_tree() {
	if [ "$times" -gt 1 ] || [ ! -d /usr/include/linux ]; then
		echo /usr/include
	else
		echo /usr/include/linux
	fi
}

use_tar() {
	local from

	have tar || return
	from=$(source_tree)
	mkdir tar
	tar -C "$from" -cf - . | tar -C tar -xf - || fail "tar in"
	diff -r --no-dereference "$from" tar || fail "tar: compare"
	tar -C tar -cf "$work/out.tar" . || fail "tar out"
	tar -C "$from" -df "$work/out.tar" >"$work/diff" 2>&1 || {
		head "$work/diff"
		fail "tar: compare with the archive"
	}
	cp -a tar copied && diff -r --no-dereference tar copied ||
		fail "cp -a"
	rm -rf copied
}

use_git() {
	have git || return
	export GIT_CONFIG_GLOBAL=/dev/null HOME=$work
	git init -q repo && cd repo || fail "git init"
	git config user.email a@b && git config user.name n
	for i in 1 2 3 4; do
		cp -r ../tar/. "part$i" 2>/dev/null || cp -r /etc "part$i"
		echo $i >number
		rm -rf "part$((i - 1))"
		git add -A >/dev/null 2>&1 && git commit -qm "c$i" ||
			fail "git commit"
	done
	git gc -q || fail "git gc"
	git fsck --full >"$work/fsck" 2>&1 || fail "git fsck"
	git clone -q . ../clone || fail "git clone"
	git -C ../clone log --oneline | wc -l | grep -qx 4 || fail "git log"
	git status --porcelain | grep -m 3 . && fail "git status"
	cd ..
	rm -rf clone repo
}

use_sqlite() {
	have python3 || return
	python3 - "$times" <<'PY' || fail "sqlite"
import sqlite3, sys, os, threading
n = 300 * int(sys.argv[1])
for mode in ('wal', 'delete', 'truncate'):
    name = 'db.' + mode
    db = sqlite3.connect(name, timeout=60)
    got = db.execute('pragma journal_mode=' + mode).fetchone()[0]
    assert got == mode, got
    db.execute('create table t(a integer primary key, b blob)')
    db.commit()
    def work(k):
        c = sqlite3.connect(name, timeout=60)
        for i in range(n // 2):
            with c:
                c.execute('insert into t(b) values(?)',
                          (os.urandom(50 + 37 * i % 3000),))
                if i % 5 == 0:
                    c.execute('delete from t where a % 7 = ?', (k,))
        c.close()
    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert db.execute('pragma integrity_check').fetchone()[0] == 'ok'
    db.execute('vacuum')
    assert db.execute('pragma integrity_check').fetchone()[0] == 'ok'
    db.close()
PY
}

use_sparse() {
	truncate -s 20M sparse
	dd if=/dev/urandom of=sparse bs=4096 seek=1000 count=3 conv=notrunc \
		status=none
	cp -a --sparse=always sparse sparse2 && cmp sparse sparse2 ||
		fail "cp --sparse"
	cp --reflink=auto sparse sparse3 && cmp sparse sparse3 || fail "cp"
	[ "$(stat -c %b sparse2)" -lt 4096 ] || fail "the copy is not sparse"
}

use_direct() {
	dd if=/dev/urandom of="$work/random" bs=1M count=9 status=none
	dd if="$work/random" of=direct bs=64k oflag=direct status=none ||
		fail "dd oflag=direct"
	dd if=direct of="$work/back" bs=1M iflag=direct status=none ||
		fail "dd iflag=direct"
	cmp "$work/random" "$work/back" || fail "O_DIRECT"
}

use_python() {
	have python3 || return
	mkdir py
	cp "$(python3 -c 'import os; print(os.path.dirname(os.__file__))')"/[a-g]*.py \
		py/
	python3 -m compileall -q py || fail "compileall"
	[ "$(find py -name '*.pyc' | wc -l)" -gt 10 ] || fail "no .pyc"
}

use_make() {
	have make && have cc || return
	mkdir proj && cd proj || fail "mkdir"
	for i in $(seq 12); do
		echo "int f$i(int x) { return x + $i; }" >f$i.c
		echo "int f$i(int x);"
	done >all.h
	{
		echo '#include "all.h"'
		echo 'int main(void) { int s = 0;'
		for i in $(seq 12); do echo "s += f$i(1);"; done
		echo 'return s != 90; }'
	} >main.c
	printf 'OBJ := $(patsubst %%.c,%%.o,$(wildcard *.c))\nprog: $(OBJ)\n\t$(CC) -o $@ $^\n' \
		>Makefile
	make -s -j2 prog && ./prog || fail "make"
	make -q prog || fail "make: built, yet not up to date"
	touch f3.c
	make -q prog && fail "make: touched, yet up to date"
	cd ..
}

# Twenty processes count to 200 under a lock.
use_flock() {
	have flock || return
	echo 0 >count
	for _ in $(seq 20); do
		(for _ in $(seq 10); do
			flock lock sh -c 'read n <count; echo $((n + 1)) >count'
		done) &
	done
	wait
	[ "$(cat count)" = 200 ] || fail "flock: $(cat count)"
}

use_rsync() {
	have rsync || return
	mkdir rs
	rsync -aHAX --inplace tar/ rs/ || fail "rsync"
	rsync -aHAXn --itemize-changes tar/ rs/ | grep . && fail "rsync again"
}

# Attributes, ACLs, and sorting something larger than a buffer.
use_others() {
	have setfattr && have setfacl || return
	echo x >attr
	setfattr -n user.a -v "$(head -c 3000 /dev/zero | tr '\0' z)" attr ||
		fail setfattr
	setfacl -m u:1:rw,g:2:r attr && getfacl -c attr | grep -q '^user:1:rw' ||
		getfacl -nc attr | grep -q '^user:1:rw' || fail setfacl
	cp -a attr attr2
	[ "$(getfattr -d -m - --absolute-names attr | tail -n +2)" = \
	  "$(getfattr -d -m - --absolute-names attr2 | tail -n +2)" ] ||
		fail "cp -a loses attributes"
	seq 300000 | shuf --random-source="$0" 2>/dev/null >shuffled ||
		seq 300000 | tac >shuffled
	sort -n -S 1M -T . shuffled | cmp - <(seq 300000) || fail "sort"
}

mkdir "$dir" && cd "$dir" || fail "mkdir $dir"
for app in tar git sqlite sparse direct python make flock rsync others; do
	use_$app
done
echo "apps: all good"
