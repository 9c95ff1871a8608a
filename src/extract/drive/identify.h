/*
 * identify.h - which drive a device is: what can be told without measuring.
 *
 * From sysfs (the kernel has asked the drive already), for block devices and
 * their partitions; of an image file its size; of a loop device what its file
 * says.  Nothing is opened and nothing is sent.
 */
#ifndef TRAX_DRIVE_IDENTIFY_H
#define TRAX_DRIVE_IDENTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct identity {
	char name[64];			/* "sda", "disk" */
	/* "": not known. */
	char model[64], serial[64], firmware[32], wwn[64];
	bool block, loop, partition;
	bool rotational;		/* as declared */
	bool host_managed;		/* zones to be written in order */
	unsigned actuators;		/* ranges that seek by themselves */
	char queue[128];		/* its folder in sysfs; "": none */
};

/* `sysfs`: "/sys", or what stands in for it in a test.  -errno of stat(2). */
int identify(const char *path, const char *sysfs, struct identity *identity);

/* Why it can't be measured as one disk; NULL: it can. */
const char *identify_refusal(const struct identity *identity);

#endif
