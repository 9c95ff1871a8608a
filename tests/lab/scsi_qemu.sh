#!/bin/sh
# The SCSI path against a real kernel's SCSI stack: Debian's kernel in QEMU, a
# disk that target_core_user serves from a specification, traxtract --scsi on
# it, killed a few times, every boundary compared with the truth and the drive's
# settings with what they were.
#
#	tests/lab/scsi_qemu.sh [SPEC]
#
# Needs qemu-system-x86_64, cpio and busybox (static), and a kernel package:
# SCSI_KERNEL=FILE.deb, or it is downloaded.  77: cannot be done here.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-$PWD}
spec=${1:-$top/drives/atlas-10k.json}
work=$(mktemp -d /tmp/traxfs-scsi.XXXXXX)
trap 'rm -rf "$work"' EXIT

skip() { echo "scsi_qemu: $*; skipped"; exit 77; }
for tool in qemu-system-x86_64 cpio busybox dpkg-deb; do
	command -v $tool >/dev/null || skip "no $tool"
done

kernel_package()
{
	[ -n "${SCSI_KERNEL:-}" ] && { echo "$SCSI_KERNEL"; return; }
	name=$(apt-cache depends linux-image-amd64 2>/dev/null |
	       sed -n 's/.*Depends: \(linux-image-[0-9].*-amd64\)$/\1/p')
	[ -n "$name" ] || return 1
	(cd "$work" && apt-get download "$name" >/dev/null 2>&1) || return 1
	echo "$work"/linux-image-*.deb
}

# In the order in which they need each other.
modules="configfs uio crct10dif_common crct10dif_generic crc-t10dif
crc64 crc64-rocksoft crc64_rocksoft_generic t10-pi
scsi_common scsi_mod sd_mod sg target_core_mod target_core_user tcm_loop"

deb=$(kernel_package) || skip "no kernel package"
mkdir "$work/kernel" "$work/root"
dpkg-deb -x "$deb" "$work/kernel"
cd "$work/root"
mkdir -p bin dev proc sys tmp lib/modules lib64
cp "$(command -v busybox)" bin/busybox
cp "$spec" spec.json
for name in $modules; do
	file=$(find "$work/kernel/lib/modules" -name "$name.ko*" | head -n 1)
	[ -z "$file" ] || cp "$file" lib/modules/
done
for program in tests/lab/scsi_daemon traxtract; do
	cp "$build/$program" bin/
	ldd "$build/$program" | grep -o '/[^ ]*' | while read -r lib; do
		mkdir -p ".$(dirname "$lib")"
		cp -Lu "$lib" ".$lib"
	done
done

cat >init <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for m in MODULES; do
	[ ! -f /lib/modules/$m.ko ] || insmod /lib/modules/$m.ko
done
mount -t configfs config /sys/kernel/config
t=/sys/kernel/config/target
mkdir -p $t/core/user_0/disk
echo "dev_size=$(scsi_daemon --bytes /spec.json),dev_config=traxfs/disk,hw_block_size=512,nl_reply_supported=-1" >$t/core/user_0/disk/control
echo 1 >$t/core/user_0/disk/enable
scsi_daemon /spec.json /dev/uio0 /sys/class/uio/uio0/maps/map0 >/tmp/set &
tpg=$t/loopback/naa.6001405000000001/tpgt_1
mkdir -p $tpg
echo naa.6001405000000002 >$tpg/nexus
mkdir $tpg/lun/lun_0
ln -s $t/core/user_0/disk $tpg/lun/lun_0/disk
i=0
while [ ! -b /dev/sda ] && [ $i -lt 50 ]; do sleep 0.2; i=$((i + 1)); done
queue()
{
	cat /sys/block/sda/queue/scheduler /sys/block/sda/queue/read_ahead_kb \
		/sys/block/sda/queue/nomerges /sys/block/sda/queue/max_sectors_kb
}
queue >/tmp/before
# Killed in one stage after another; what it has set comes back in the end.
for t in 0.3 1 2.5 4; do
	traxtract --scsi --quick --state /tmp/state -o /tmp/profile.json \
		/dev/sda >/dev/null 2>&1 &
	sleep $t
	kill -9 $! && echo "killed with $(tail -n 1 /tmp/set)"
	wait $!
done
traxtract --scsi --quick --state /tmp/state -o /tmp/profile.json /dev/sda
echo "traxtract ended with $?"
queue >/tmp/after
cmp /tmp/before /tmp/after && [ "$(tail -n 1 /tmp/set)" = "settings 04 01 01 0f" ] &&
	grep -q "settings 05 00 00 00" /tmp/set && [ ! -e /tmp/state ] &&
	echo "all settings are back"
traxtract --list /tmp/profile.json | grep -v '^#' |
	awk '{ print $1, $2, $3, $4 }' >/tmp/told
scsi_daemon --list /spec.json >/tmp/true
wc -l /tmp/told
cmp /tmp/told /tmp/true && echo "every boundary is right"
# Taken away in the middle: said, and what was learned is kept.
traxtract --scsi --quick --state /tmp/state -o /tmp/none /dev/sda 2>/tmp/err &
sleep 2.5
echo 1 >/sys/block/sda/device/delete
wait $!
[ $? = 6 ] && grep -q vanished /tmp/err && [ -s /tmp/state ] &&
	[ ! -e /tmp/none ] && echo "vanished, and that was said" || cat /tmp/err
poweroff -f
INIT
sed -i "s/MODULES/$(echo $modules)/" init
chmod +x init
find . | cpio -o -H newc --quiet | gzip -1 >"$work/initrd"
timeout 300 qemu-system-x86_64 -accel tcg -m 512 -nographic -no-reboot \
	-kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initrd" \
	-append "console=ttyS0 quiet panic=-1" </dev/null >"$work/out" 2>&1 ||
	true
tr -d '\r' <"$work/out" | tail -n 22
grep -q "all settings are back" "$work/out" || exit 1
grep -q "vanished, and that was said" "$work/out" || exit 1
grep -q "every boundary is right" "$work/out"
