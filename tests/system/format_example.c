/*
 * format_example.c - prints the hex dump of doc/format.md, section 11.
 *
 * Makes an empty file system of 16 MiB on a simulated disk, with a fixed UUID,
 * time and random numbers, and prints what the document explains: the first
 * superblock, the newest root block with its payload, and the root node.
 * Lines of zeros are left out.  tests/system/format_example.sh compares.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/mkfs.h"
#include "sim/sim.h"

#define SECTORS 32768u
#define LINE_BYTES 16u
#define WALL_NS INT64_C(1700000000000000000) /* 2023-11-14 22:13:20 UTC */

static int64_t example_wall_ns(struct env *env)
{
	(void)env;
	return WALL_NS;
}

static uint64_t example_random(struct env *env)
{
	(void)env;
	return UINT64_C(0x0123456789abcdef);
}

static uint64_t example_now_ns(struct env *env)
{
	(void)env;
	return 0;
}

static void fail(const char *what, int rc)
{
	fprintf(stderr, "format_example: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void *read_sectors(struct disk *disk, uint64_t sector, uint32_t sectors)
{
	void *buf = aligned_alloc(4096, (size_t)sectors * 512);
	int rc;

	if (!buf)
		fail("memory", -ENOMEM);
	rc = disk_read(disk, sector, sectors, buf);
	if (rc)
		fail("read", rc);
	return buf;
}

static void dump_line(size_t offset, const uint8_t *line)
{
	unsigned i;

	printf("%05zx ", offset);
	for (i = 0; i < LINE_BYTES; i++)
		printf("%s%02x", i % 8 ? " " : "  ", line[i]);
	printf("  |");
	for (i = 0; i < LINE_BYTES; i++)
		putchar(line[i] >= ' ' && line[i] <= '~' ? line[i] : '.');
	printf("|\n");
}

static void dump(const char *what, struct disk *disk, uint64_t sector,
		 uint32_t sectors)
{
	uint8_t *buf = read_sectors(disk, sector, sectors);
	static const uint8_t zeros[LINE_BYTES];
	const size_t bytes = (size_t)sectors * 512;
	size_t offset;

	printf("%s, sector %llu:\n", what, (unsigned long long)sector);
	for (offset = 0; offset < bytes; offset += LINE_BYTES)
		if (memcmp(buf + offset, zeros, LINE_BYTES) != 0)
			dump_line(offset, buf + offset);
	free(buf);
}

static void dump_all(struct disk *disk, const struct super *super)
{
	struct root root, newest = { 0 };
	uint64_t sector = 0;
	const char *bad;
	unsigned area;
	void *buf;

	dump("superblock", disk, TRAX_SUPER_SECTOR, 8);
	for (area = 0; area < 2; area++) {
		const uint64_t at = super->area_sector[area][0];

		buf = read_sectors(disk, at, 8);
		bad = root_decode(buf, super->uuid, at, &root);
		free(buf);
		if (bad || root.gen <= newest.gen)
			continue;
		newest = root;
		sector = at;
	}
	printf("\n");
	dump("root area", disk, sector, super->area_sectors);
	printf("\n");
	dump("root node", disk, addr_sector(newest.tree.addr), 32);
}

int main(void)
{
	static const uint8_t uuid[16] = "traxfs example\0";
	struct env env = {
		.now_ns = example_now_ns,
		.wall_ns = example_wall_ns,
		.random = example_random,
	};
	struct mkfs_options options = { .uuid = uuid, .label = "example" };
	struct sim_options sim_options = { 0 };
	struct sim *sim = sim_new(NULL, SECTORS, &sim_options);
	struct mkfs_plan plan;
	struct disk *disk;
	int rc;

	if (!sim)
		fail("disk", -ENOMEM);
	disk = sim_disk(sim);
	rc = mkfs_plan(&env, &disk->limits, &options, &plan);
	if (!rc)
		rc = mkfs_write(&env, disk, &options, &plan);
	if (rc)
		fail("mkfs", rc);
	dump_all(disk, &plan.super);
	sim_free(sim);
	return 0;
}
