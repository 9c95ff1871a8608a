/*
 * signature.c - looks for signatures, by libblkid and by our superblock.
 */
#include <blkid/blkid.h>
#include <stdio.h>
#include <string.h>

#include "base/msg.h"
#include "tools/device.h"
#include "tools/signature.h"

static void say_signature(const char *device, const char *kind)
{
	msg_error("%s: holds %s; use -f to overwrite it", device, kind);
}

bool signature_name(const char *device, char *name, size_t bytes, bool *is_fs)
{
	blkid_probe probe = blkid_new_probe_from_filename(device);
	const char *type = NULL, *usage = "";
	int rc;

	*is_fs = false;
	if (!probe)
		return false;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE |
						 BLKID_SUBLKS_USAGE);
	blkid_probe_enable_partitions(probe, 1);
	/* 0: found, -2: several at once, 1: nothing. */
	rc = blkid_do_safeprobe(probe);
	if (rc == -2) {
		snprintf(name, bytes, "several signatures");
	} else if (rc == 0 &&
		   !blkid_probe_lookup_value(probe, "TYPE", &type, NULL)) {
		snprintf(name, bytes, "%s", type);
		blkid_probe_lookup_value(probe, "USAGE", &usage, NULL);
		*is_fs = !strcmp(usage, "filesystem");
	} else if (rc == 0) {
		blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL);
		snprintf(name, bytes, "a partition table%s%s%s",
			 type ? " (" : "", type ? type : "", type ? ")" : "");
	}
	blkid_free_probe(probe);
	return rc == 0 || rc == -2;
}

bool signature_found(const char *device, struct disk *disk)
{
	struct super super;
	char name[64];
	bool is_fs;

	if (signature_name(device, name, sizeof(name), &is_fs)) {
		say_signature(device, name);
		return true;
	}
	if (device_read_super(disk, &super))
		return false;
	say_signature(device, "a traxfs");
	return true;
}
