/*
 * problem.c - the table of problems, one row each.
 */
#include "check/scan/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "check/scan/check_internal.h"

const struct check_problem check_problems[] = {
	[PROBLEM_SUPER_NONE] = { "super-none", CHECK_FATAL, false,
		"no superblock of a traxfs is there (%s)", NULL },
	[PROBLEM_SUPER_COPY] = { "super-copy", CHECK_MINOR, true,
		"superblock at sector %llu: %s", "Write it again" },
	[PROBLEM_SUPER_FEATURE] = { "super-feature", CHECK_FATAL, false,
		"it was made by a newer version (features %#llx)", NULL },
	[PROBLEM_DEVICE_SMALL] = { "device-small", CHECK_FATAL, false,
		"the file system has %llu sectors, the device only %llu",
		NULL },
	[PROBLEM_ROOT_NONE] = { "root-none", CHECK_LOSS, false,
		"no root can be read (%s)",
		"Search the node tracks for what is left" },
	[PROBLEM_ROOT_COPY] = { "root-copy", CHECK_MINOR, true,
		"copy of the root at sector %llu: %s", "Write it again" },
	[PROBLEM_ROOT_LOST] = { "root-lost", CHECK_LOSS, false,
		"the newest root is lost: record %llu of the log follows it",
		"Go on from the root before it and the log" },
	[PROBLEM_PAYLOAD] = { "payload", CHECK_ERROR, true,
		"slot map and group table of generation %llu: %s",
		"Make them again from the tree" },
	[PROBLEM_PAYLOAD_COPY] = { "payload-copy", CHECK_MINOR, true,
		"copy of slot map and group table at sector %llu: %s",
		"Write it again" },
	[PROBLEM_NOT_CLEAN] = { "not-clean", CHECK_NOTE, true,
		"it was not unmounted: generation %llu is checked, the log is "
		"not looked at", NULL },
	[PROBLEM_LOG_REPLAY] = { "log-replay", CHECK_ERROR, false,
		"the log cannot be replayed: %s",
		"Go on without what is missing" },
	[PROBLEM_GEOMETRY] = { "geometry", CHECK_MINOR, true,
		"the record of the drive cannot be used (%s)",
		"Use regular tracks of 1 MiB instead" },
	[PROBLEM_NODE_LOST] = { "node-lost", CHECK_LOSS, false,
		"node at sector %llu (%s): %s: items from %s to %s are lost",
		"Put back what other copies of them can be found" },
	[PROBLEM_NODE_MIRROR] = { "node-mirror", CHECK_MINOR, true,
		"one copy of the node at sector %llu: %s",
		"Write it again" },
	[PROBLEM_NODE_PLACE] = { "node-place", CHECK_ERROR, true,
		"node at sector %llu is not in a slot of a node track",
		"Write the tree again" },
	[PROBLEM_NODE_TWICE] = { "node-twice", CHECK_ERROR, false,
		"sector %llu holds two nodes at once",
		"Write the tree again" },
	[PROBLEM_SLOT_TRACKS] = { "slot-tracks", CHECK_ERROR, true,
		"node track at sector %llu: %s", "Make the slot map again" },
	[PROBLEM_SLOT_LEAKED] = { "slot-leaked", CHECK_MINOR, true,
		"slot at sector %llu is marked as used and is not",
		"Make the slot map again" },
	[PROBLEM_SLOT_UNMAPPED] = { "slot-unmapped", CHECK_ERROR, true,
		"slot at sector %llu is used and not marked so",
		"Make the slot map again" },
	[PROBLEM_GROUP_TABLE] = { "group-table", CHECK_ERROR, true,
		"number of groups is %llu, must be %llu",
		"Make it again" },
	[PROBLEM_GROUP_FREE] = { "group-free", CHECK_ERROR, true,
		"group %llu: %llu free sectors are noted, %llu were counted",
		"Correct it" },
	[PROBLEM_ITEM_BAD] = { "item-bad", CHECK_ERROR, false,
		"item %s: %s", "Drop it" },
	[PROBLEM_OWNER_OUTSIDE] = { "owner-outside", CHECK_ERROR, true,
		"owner of %llu sectors at %llu lies outside the file system",
		"Make the owners again" },
	[PROBLEM_OWNER_OVERLAP] = { "owner-overlap", CHECK_ERROR, true,
		"owner at sector %llu begins before the one before it ends "
		"(%llu)", "Make the owners again" },
	[PROBLEM_OWNER_STRAY] = { "owner-stray", CHECK_ERROR, true,
		"%llu sectors at %llu are owned by inode %llu, which does not "
		"use them",
		"Free them, or give the inode back what is lost of it" },
	[PROBLEM_OWNER_MISSING] = { "owner-missing", CHECK_ERROR, true,
		"%llu sectors at %llu are used by inode %llu and have no owner",
		"Note the owner" },
	[PROBLEM_OWNER_WRONG] = { "owner-wrong", CHECK_ERROR, true,
		"%llu sectors at %llu are used by inode %llu, their owner says "
		"otherwise", "Correct it" },
	[PROBLEM_FIXED_MISSING] = { "fixed-missing", CHECK_ERROR, false,
		"%s at sector %llu has no owner item", "Note the owner" },
	[PROBLEM_FIXED_STRAY] = { "fixed-stray", CHECK_ERROR, true,
		"owner item at sector %llu: there is no %s", "Free it" },
	[PROBLEM_EXTENT_OUTSIDE] = { "extent-outside", CHECK_LOSS, false,
		"inode %llu: %llu sectors at %llu lie outside the file system",
		"Make them a hole" },
	[PROBLEM_EXTENT_OVERLAP] = { "extent-overlap", CHECK_ERROR, false,
		"inode %llu: extents overlap at file sector %llu",
		"Keep the first" },
	[PROBLEM_EXTENT_SHARED] = { "extent-shared", CHECK_LOSS, false,
		"inode %llu: %llu sectors at %llu are used by something else, "
		"too",
		"Leave them to those whose checksum fits" },
	[PROBLEM_EXTENT_EOF] = { "extent-eof", CHECK_ERROR, false,
		"inode %llu: data beyond its end, at file sector %llu",
		"Drop it" },
	[PROBLEM_EXTENT_TRACK] = { "extent-track", CHECK_NOTE, true,
		"inode %llu: extent at sector %llu crosses a track", NULL },
	[PROBLEM_CSUM_MISSING] = { "csum-missing", CHECK_ERROR, false,
		"inode %llu: block %llu has no checksum",
		"Believe what is on the disk" },
	[PROBLEM_CSUM_STRAY] = { "csum-stray", CHECK_ERROR, true,
		"inode %llu: checksum of block %llu, which is a hole",
		"Drop it" },
	[PROBLEM_COPY_REGION] = { "copy-region", CHECK_MINOR, true,
		"region of copies at sector %llu: %s", "Drop all copies" },
	[PROBLEM_COPY_WRONG] = { "copy-wrong", CHECK_MINOR, true,
		"inode %llu, offset %llu: the copy at sector %llu %s",
		"Drop all copies" },
	[PROBLEM_DATA_BAD] = { "data-bad", CHECK_LOSS, false,
		"inode %llu: bytes from %llu, %llu long, at sector %llu, do "
		"not have their checksum", NULL },
	[PROBLEM_DATA_READ] = { "data-read", CHECK_LOSS, false,
		"inode %llu: bytes from %llu, %llu long, at sector %llu, "
		"cannot be read", NULL },
	[PROBLEM_INODE_MISSING] = { "inode-missing", CHECK_LOSS, false,
		"inode %llu is missing, but there are items of it",
		"Make a new one" },
	[PROBLEM_INODE_ITEMS] = { "inode-items", CHECK_ERROR, false,
		"inode %llu has items that do not go with its type",
		"Drop them" },
	[PROBLEM_INODE_SIZE] = { "inode-size", CHECK_ERROR, false,
		"inode %llu: size is %llu, must be %llu", "Correct it" },
	[PROBLEM_INODE_SECTORS] = { "inode-sectors", CHECK_ERROR, true,
		"inode %llu: number of sectors is %llu, must be %llu",
		"Correct it" },
	[PROBLEM_INODE_XATTRS] = { "inode-xattrs", CHECK_ERROR, true,
		"inode %llu: number of extended attributes is %llu, must be "
		"%llu",
		"Correct it" },
	[PROBLEM_INODE_NLINK] = { "inode-nlink", CHECK_ERROR, true,
		"inode %llu: number of links is %llu, must be %llu",
		"Correct it" },
	[PROBLEM_INODE_UNREACHED] = { "inode-unreached", CHECK_ERROR, false,
		"inode %llu has no name", "Put it into lost+found" },
	[PROBLEM_INODE_FLAGS] = { "inode-flags", CHECK_ERROR, true,
		"inode %llu: flags about attributes are %#llx, must be %#llx",
		"Correct them" },
	[PROBLEM_INODE_RDEV] = { "inode-rdev", CHECK_ERROR, true,
		"inode %llu has a device number and is no device",
		"Clear it" },
	[PROBLEM_XATTR_PIECES] = { "xattr-pieces", CHECK_LOSS, false,
		"inode %llu: extended attribute %#llx is not whole",
		"Drop it" },
	[PROBLEM_XATTR_HASH] = { "xattr-hash", CHECK_ERROR, false,
		"inode %llu: extended attribute %#llx is not where its name "
		"says", "Move it" },
	[PROBLEM_SYMLINK_TARGET] = { "symlink-target", CHECK_LOSS, false,
		"inode %llu: the symlink's target is %s",
		"Make it a file" },
	[PROBLEM_ROOT_DIR] = { "root-dir", CHECK_LOSS, false,
		"the root directory is %s", "Make a new one" },
	[PROBLEM_DIR_NEXT_SEQ] = { "dir-next-seq", CHECK_ERROR, true,
		"directory %llu: next sequence number is %llu, must be above "
		"%llu", "Correct it" },
	[PROBLEM_DIR_ENTRIES] = { "dir-entries", CHECK_ERROR, true,
		"directory %llu: number of entries is %llu, must be %llu",
		"Correct it" },
	[PROBLEM_DIR_NLINK] = { "dir-nlink", CHECK_ERROR, true,
		"directory %llu: number of links is %llu, must be %llu",
		"Correct it" },
	[PROBLEM_DIR_PARENT] = { "dir-parent", CHECK_ERROR, true,
		"directory %llu: parent is %llu, must be %llu", "Correct it" },
	[PROBLEM_DIR_LINKS] = { "dir-links", CHECK_ERROR, false,
		"directory %llu has more names than one (%llu)", "Keep one" },
	[PROBLEM_DIR_LOOP] = { "dir-loop", CHECK_ERROR, false,
		"directory %llu is below itself", "Put it into lost+found" },
	[PROBLEM_NAME_HASH] = { "name-hash", CHECK_ERROR, true,
		"directory %llu: name of inode %llu is under the wrong hash",
		"Move it" },
	[PROBLEM_NAME_TWICE] = { "name-twice", CHECK_ERROR, false,
		"directory %llu: two entries have the name of entry %llu",
		"Rename one" },
	[PROBLEM_NAME_UNPAIRED] = { "name-unpaired", CHECK_ERROR, true,
		"directory %llu: name of inode %llu has no entry %llu",
		"Make the entry" },
	[PROBLEM_ENTRY_UNPAIRED] = { "entry-unpaired", CHECK_ERROR, true,
		"directory %llu: name of inode %llu, entry %llu, cannot be "
		"looked up", "Make the name" },
	[PROBLEM_ENTRY_SEQ] = { "entry-seq", CHECK_ERROR, false,
		"directory %llu: entry has the reserved sequence number %llu",
		"Give it another" },
	[PROBLEM_ENTRY_DANGLING] = { "entry-dangling", CHECK_LOSS, false,
		"directory %llu: entry %llu leads to inode %llu, which does "
		"not exist", "Drop it" },
	[PROBLEM_ENTRY_TYPE] = { "entry-type", CHECK_ERROR, true,
		"directory %llu: entry %llu has the wrong type for inode %llu",
		"Correct it" },
	[PROBLEM_ORPHAN_STRAY] = { "orphan-stray", CHECK_ERROR, false,
		"inode %llu is to be deleted, but %s", "Keep it" },
	[PROBLEM_ORPHAN_MISSING] = { "orphan-missing", CHECK_ERROR, false,
		"inode %llu has no links and is not to be deleted",
		"Delete it with the next mount" },
	[PROBLEM_ROOT_INODES] = { "root-inodes", CHECK_ERROR, true,
		"number of inodes is %llu, must be %llu", "Correct it" },
	[PROBLEM_ROOT_NUMBERS] = { "root-numbers", CHECK_ERROR, true,
		"next inode number %llu (group %llu) is in use already",
		"Correct it" },
	[PROBLEM_RESCUED] = { "rescued", CHECK_NOTE, true,
		"inode %llu is now lost+found/%s", NULL },
	[PROBLEM_DATA_LOST] = { "data-lost", CHECK_NOTE, true,
		"inode %llu has lost data; reading where it was gives an "
		"error", NULL },
	[PROBLEM_DATA_UNSURE] = { "data-unsure", CHECK_NOTE, true,
		"inode %llu: its data was kept, but nothing verifies it",
		NULL },
};
static_assert(sizeof(check_problems) / sizeof(check_problems[0]) == PROBLEMS,
	      "a row for each problem");

const unsigned check_problems_n = PROBLEMS;

/* Is this problem repaired where it is found, without a new tree? */
static bool in_place(enum problem problem)
{
	switch (problem) {
	case PROBLEM_SUPER_COPY:
	case PROBLEM_ROOT_COPY:
	case PROBLEM_PAYLOAD_COPY:
	case PROBLEM_NODE_MIRROR:
	case PROBLEM_GEOMETRY:
		return true;
	default:
		return false;
	}
}

/* Do the options allow this repair? */
static bool is_allowed(const struct check *check,
		       const struct check_problem *row)
{
	return check->options.repair && row->question &&
	       (row->safe || !check->options.safe_only);
}

bool problem_report(struct check *check, enum problem problem,
		    struct problem_place place, ...)
{
	const struct check_problem *row = &check_problems[problem];
	bool first = !check->problem_found[problem]++;
	struct check_found found = {
		.problem = row,
		.ino = place.ino,
		.sector = place.sector,
		.again = check->again,
	};
	char text[512];
	bool yes = true;
	va_list args;

	va_start(args, place);
	vsnprintf(text, sizeof(text), row->text, args);
	va_end(args);
	found.text = text;
	if (row->severity > CHECK_NOTE) {
		check->found++;
		paths_ask(check, place.ino);
	}
	if (check->options.found)
		yes = check->options.found(check->options.arg, &found);
	if (first && !check->again)
		check->problem_repair[problem] = yes && is_allowed(check, row);
	return check->problem_repair[problem];
}

bool problem_to_repair(const struct check *check, enum problem problem)
{
	return check->problem_found[problem] && check->problem_repair[problem];
}

bool problem_any_to_repair(const struct check *check)
{
	unsigned i;

	if (check->rewrite)
		return true;
	for (i = 0; i < PROBLEMS; i++)
		if (!in_place(i) && problem_to_repair(check, i))
			return true;
	return false;
}
