/*
 * scsi_daemon.c - scsi_target behind a real kernel's SCSI stack.
 *
 * Serves one target_core_user device: the kernel puts commands into a ring
 * that both have mapped, this takes them out, answers and kicks back
 * (Documentation/target/tcmu-design.rst).  Runs in the guest of scsi_qemu.sh.
 *
 *	scsi_daemon SPEC /dev/uioN SYSFS_MAP_DIRECTORY
 *	scsi_daemon --list SPEC		the true tracks, as traxtract --list
 *	scsi_daemon --bytes SPEC	how large it is
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The kernel's header and the library's both define it. */
#define iovec kernel_iovec
#include <linux/target_core_user.h>
#undef iovec

#include "diskmodel/spec.h"
#include "tests/rig/scsi_target.h"

#define MOST_BYTES (1u << 22)
#define CHECK_CONDITION 2
#define SEND_DIAGNOSTIC 0x1d
#define MODE_SELECT 0x55

struct ring {
	int fd;
	struct tcmu_mailbox *mailbox;
	struct scsi_target *target;
	uint8_t *bytes;		/* of one command */
};

static int ring_map(struct ring *ring, const char *uio, const char *map)
{
	char path[256];
	uint64_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/size", map);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%" SCNx64, &size) != 1)
		return -1;
	fclose(f);
	ring->fd = open(uio, O_RDWR);
	if (ring->fd < 0)
		return -1;
	ring->mailbox = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     ring->fd, 0);
	ring->bytes = malloc(MOST_BYTES);
	return ring->mailbox == MAP_FAILED || !ring->bytes ? -1 : 0;
}

/* Bytes of the command to or from where the kernel has them. */
static size_t ring_copy(struct ring *ring, struct tcmu_cmd_entry *entry,
			bool out, size_t n)
{
	uint8_t *base = (uint8_t *)ring->mailbox;
	size_t at = 0, part;
	uint32_t i;

	for (i = 0; i < entry->req.iov_cnt && at < n; i++) {
		uint8_t *buf = base + (size_t)entry->req.iov[i].iov_base;

		part = entry->req.iov[i].iov_len;
		if (part > n - at)
			part = n - at;
		if (out)
			memcpy(ring->bytes + at, buf, part);
		else
			memcpy(buf, ring->bytes + at, part);
		at += part;
	}
	return at;
}

static void set_sense(struct tcmu_cmd_entry *entry,
		      const struct scsi_command *command)
{
	uint8_t *sense = (uint8_t *)entry->rsp.sense_buffer;

	entry->rsp.scsi_status = command->key ? CHECK_CONDITION : 0;
	if (!command->key)
		return;
	memset(sense, 0, sizeof(entry->rsp.sense_buffer));
	sense[0] = 0x70;
	sense[2] = command->key;
	sense[7] = 10;
	sense[12] = command->asc;
	sense[13] = command->ascq;
}

/* For the guest's script: what is set now. */
static void say_settings(const struct scsi_target *target)
{
	unsigned n;

	printf("settings %02x %02x %02x %02x\n",
	       scsi_target_page(target, 0x08, &n)[2],
	       scsi_target_page(target, 0x11c, &n)[4],
	       scsi_target_page(target, 0x1a, &n)[2],
	       scsi_target_page(target, 0x1a, &n)[3]);
	fflush(stdout);
}

static void ring_answer(struct ring *ring, struct tcmu_cmd_entry *entry)
{
	const uint8_t *cdb = (uint8_t *)ring->mailbox + entry->req.cdb_off;
	struct scsi_command command = { .cdb = cdb, .cdb_bytes = 16 };
	size_t room = 0;
	uint32_t i;

	for (i = 0; i < entry->req.iov_cnt; i++)
		room += entry->req.iov[i].iov_len;
	if (room > MOST_BYTES)
		room = MOST_BYTES;
	if (cdb[0] == SEND_DIAGNOSTIC || cdb[0] == MODE_SELECT) {
		command.out = ring->bytes;
		command.out_bytes = (uint32_t)ring_copy(ring, entry, true,
							room);
	} else {
		command.in = ring->bytes;
		command.in_bytes = (uint32_t)room;
	}
	scsi_target_answer(ring->target, &command);
	if (command.in) {
		memset(ring->bytes + command.got_bytes, 0,
		       room - command.got_bytes);
		ring_copy(ring, entry, false, room);
	}
	if (cdb[0] == MODE_SELECT && !command.key)
		say_settings(ring->target);
	set_sense(entry, &command);
}

static void ring_serve(struct ring *ring)
{
	struct tcmu_mailbox *mb = ring->mailbox;
	struct tcmu_cmd_entry *entry;

	while (mb->cmd_tail != *(volatile uint32_t *)&mb->cmd_head) {
		__sync_synchronize();
		entry = (struct tcmu_cmd_entry *)((uint8_t *)mb +
						  mb->cmdr_off +
						  mb->cmd_tail);
		if (tcmu_hdr_get_op(entry->hdr.len_op) == TCMU_OP_CMD)
			ring_answer(ring, entry);
		else if (tcmu_hdr_get_op(entry->hdr.len_op) != TCMU_OP_PAD)
			entry->hdr.uflags |= TCMU_UFLAG_UNKNOWN_OP;
		__sync_synchronize();
		mb->cmd_tail = (mb->cmd_tail +
				tcmu_hdr_get_len(entry->hdr.len_op)) %
			       mb->cmdr_size;
	}
}

static int serve(const struct geom *geom, const char *uio, const char *map)
{
	const struct scsi_target_habits habits = { 0 };
	struct ring ring = { .target = scsi_target_new(geom, &habits) };
	uint32_t event = 0;

	if (!ring.target || ring_map(&ring, uio, map)) {
		perror(uio);
		return EXIT_FAILURE;
	}
	for (;;) {
		ring_serve(&ring);
		if (write(ring.fd, &event, 4) != 4 ||
		    read(ring.fd, &event, 4) != 4)
			return EXIT_FAILURE;
	}
}

static void list(const struct geom *geom)
{
	struct geom_track t;
	uint64_t i;

	for (i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		printf("%" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
		       t.first, t.sectors, t.cylinder, t.surface);
	}
}

int main(int argc, char **argv)
{
	bool facts = argc == 3 && argv[1][0] == '-';
	struct spec *spec;
	struct geom *geom;

	if (argc != 4 && !facts) {
		fprintf(stderr, "usage: scsi_daemon SPEC UIO MAP | --list SPEC "
				"| --bytes SPEC\n");
		return EXIT_FAILURE;
	}
	if (spec_read(argv[facts ? 2 : 1], &spec) || spec_geom(spec, &geom))
		return EXIT_FAILURE;
	if (!facts)
		return serve(geom, argv[2], argv[3]);
	if (!strcmp(argv[1], "--list"))
		list(geom);
	else
		printf("%" PRIu64 "\n", geom_sectors(geom) * 512);
	geom_free(geom);
	spec_free(spec);
	return EXIT_SUCCESS;
}
