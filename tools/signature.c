/*
 * signature.c - libblkid's signatures and ours.
 */
#include <blkid/blkid.h>

#include "base/msg.h"
#include "tools/device.h"
#include "tools/signature.h"

static void say_signature(const char *device, const char *kind)
{
	msg_error("%s: holds %s; use -f to overwrite it", device, kind);
}

/* A file system, RAID member, partition table ... that libblkid knows. */
static bool has_known_signature(const char *device)
{
	blkid_probe probe = blkid_new_probe_from_filename(device);
	const char *type = NULL;
	bool found;
	int rc;

	if (!probe)
		return false;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
	blkid_probe_enable_partitions(probe, 1);
	/* 0: found, -2: several at once, 1: nothing. */
	rc = blkid_do_safeprobe(probe);
	found = rc == 0 || rc == -2;
	if (found && rc == 0 &&
	    blkid_probe_lookup_value(probe, "TYPE", &type, NULL))
		blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL);
	if (found)
		say_signature(device, type ? type : "several signatures");
	blkid_free_probe(probe);
	return found;
}

bool signature_found(const char *device, struct disk *disk)
{
	struct super super;

	if (has_known_signature(device))
		return true;
	if (device_read_super(disk, &super))
		return false;
	say_signature(device, "a traxfs");
	return true;
}
