#!/bin/bash
# xfstests.sh ARGUMENTS-OF-check - for example "-g quick", "generic/001".
# XFSTESTS: where xfstests has been built.  Each test ends with chkfs.traxfs.
#
# xfstests takes the type "fuseblk.traxfs", as df(1) shows it, for that of a
# file system it does not know, and calls mkfs, mount and fsck of that type:
# small scripts in a directory that is put over /sbin/fs.d, where mount(8) looks
# for its helpers, in a mount namespace of our own.  There common/rc is covered
# by one that knows how to make a file system of a given size, on a loop device
# that is made so large.
. "$(dirname "$0")/common.sh"
need XFSTESTS "${XFSTESTS-}" check
[ "$(id -u)" = 0 ] || fail "root only"
bytes=$((3 << 30))
bin=$work/bin

helpers() {
	mkdir -p "$bin" /sbin/fs.d "$work/test" "$work/scratch"
	cp "$tools"/{traxfs,mkfs.traxfs,chkfs.traxfs,mount.traxfs} "$bin"
	cat >"$bin/mount.fuseblk.traxfs" <<-END
	#!/bin/sh
	case "\$*" in
	*remount*) shift; exec mount -i "\$@" ;;
	esac
	exec "$bin/mount.traxfs" "\$@"
	END
	cat >"$bin/fsck.fuseblk.traxfs" <<-END
	#!/bin/sh
	exec "$bin/chkfs.traxfs" "\$@"
	END
	cat >"$bin/mkfs.fuseblk.traxfs" <<-END
	#!/bin/bash
	bytes=$bytes
	args=()
	for a; do
		case \$a in
		--fs-bytes=*) bytes=\${a#*=} ;;
		*) args+=("\$a") ;;
		esac
	done
	device=\${args[-1]}
	# An image that a test has made has its length.
	if [ -b "\$device" ]; then
		file=\$(losetup -nO BACK-FILE "\$device")
		truncate -s "\$bytes" "\$file" && losetup -c "\$device"
	fi
	exec "$bin/mkfs.traxfs" "\${args[@]}" 2>/dev/null
	END
	chmod +x "$bin"/*
	sed '/^_try_scratch_mkfs_sized()/,/^}/s|^\tcase $FSTYP in|&\n'\
'\tfuseblk.traxfs)\n\t\t$MKFS_PROG -t $FSTYP -- --fs-bytes=$fssize '\
'$MKFS_OPTIONS $SCRATCH_DEV\n\t\t;;|' "$XFSTESTS/common/rc" >"$work/rc"
}

run() {
	mount --make-rprivate /
	mount --bind "$bin" /sbin/fs.d
	mount --bind "$work/rc" "$XFSTESTS/common/rc"
	export PATH=$bin:$PATH FSTYP=fuseblk.traxfs FSCK_OPTIONS=-n
	export MKFS_OPTIONS=-f
	export TEST_DIR=$work/test SCRATCH_MNT=$work/scratch
	export RESULT_BASE=$work/results
	truncate -s $bytes "$work/image.test" "$work/image.scratch"
	TEST_DEV=$(losetup -f --show "$work/image.test")
	SCRATCH_DEV=$(losetup -f --show "$work/image.scratch")
	export TEST_DEV SCRATCH_DEV
	mkfs.fuseblk.traxfs -f "$TEST_DEV" >/dev/null || fail "mkfs"
	(cd "$XFSTESTS" && ./check "$@")
	umount "$TEST_DIR" "$SCRATCH_MNT" 2>/dev/null
	losetup -d "$TEST_DEV" "$SCRATCH_DEV"
	rm "$work/image.test" "$work/image.scratch"
}

if [ "${1-}" = --inside ]; then
	shift
	run "$@"
else
	helpers
	exec unshare -m "$0" --inside "$@"
fi
