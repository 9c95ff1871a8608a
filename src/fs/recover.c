/*
 * recover.c - logged data that a crash left away from home.
 *
 * Each block is looked up in the tree as it is after replay: where the sum is
 * the one of the logged content, that content is the file's, and is written to
 * its extents; otherwise something newer has taken its place and it is dropped.
 * Nothing else runs yet.  On a read-only mount nothing is written: such blocks
 * stay in memory, in the tree's buffers, and reads are served from them.
 */
#include "fs/data.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"

#define AT_ONCE 64u
#define BLOCK_PIECES BLOCK_SECTORS

struct rescue {
	struct recovery *recovery;
	struct list link;		/* among all that are not over */
	const struct tree_data *data;
	bool valid;
	unsigned n, outstanding;
	void *buffer;			/* aligned */
	struct iovec iov[BLOCK_PIECES];
	struct queue_request req[BLOCK_PIECES];
	uint64_t sector[BLOCK_PIECES], sectors[BLOCK_PIECES];
};

struct recovery {
	struct fs *fs;
	struct list rescues;
	unsigned busy;
	bool over;		/* one of them, since it was last cleared */
	uint64_t written;
	int rc;
};

static void rescue_free(struct rescue *rescue)
{
	list_del(&rescue->link);
	free(rescue->buffer);
	free(rescue);
}

static void rescue_over(struct rescue *rescue, int rc)
{
	struct recovery *recovery = rescue->recovery;

	if (rc && !recovery->rc)
		recovery->rc = rc;
	recovery->busy--;
	recovery->over = true;
	rescue_free(rescue);
}

static int rescue_run(struct ticket *ticket)
{
	struct rescue *rescue = ticket->state;
	const struct tree_data *data = rescue->data;
	uint64_t sector = data->block * BLOCK_SECTORS;
	uint64_t end = sector + BLOCK_SECTORS;
	unsigned p = data->block % TRAX_CSUM_WINDOW_BLOCKS / PIECE_BLOCKS;
	unsigned i = data->block % PIECE_BLOCKS;
	struct csum_window window;
	struct extent extent;
	int rc;

	rescue->valid = false;
	rescue->n = 0;
	rc = map_window(ticket, data->ino,
			data->block / TRAX_CSUM_WINDOW_BLOCKS, &window);
	if (rc)
		return rc;
	if (!(window.present & 1u << p) || window.coarse & 1u << p ||
	    !(window.mask[p] & 1u << i) || window.sum[p][i] != data->sum)
		return 0;
	while (sector < end) {
		rc = map_extent(ticket, data->ino, sector, &extent);
		if (rc == -ENOENT || (rc == 0 && extent.off > sector))
			return 0;
		if (rc)
			return rc;
		rescue->sector[rescue->n] = addr_sector(extent.addr) +
					    (sector - extent.off);
		rescue->sectors[rescue->n] = extent.off + extent.n < end ?
			extent.off + extent.n - sector : end - sector;
		sector += rescue->sectors[rescue->n++];
	}
	rescue->valid = true;
	return 0;
}

static void rescue_written(struct disk_request *req)
{
	struct rescue *rescue = req->owner;

	if (req->result)
		rescue->recovery->rc = -EIO;
	if (--rescue->outstanding == 0)
		rescue_over(rescue, 0);
}

static void rescue_write(struct rescue *rescue)
{
	uint8_t *data = rescue->buffer;
	unsigned i;

	memcpy(data, rescue->data->bytes, BLOCK_BYTES);
	rescue->recovery->written++;
	rescue->outstanding = rescue->n;
	for (i = 0; i < rescue->n; i++) {
		rescue->iov[i].iov_base = data;
		rescue->iov[i].iov_len = rescue->sectors[i] * SECTOR_BYTES;
		data += rescue->iov[i].iov_len;
		rescue->req[i] = (struct queue_request){
			.disk = {
				.op = DISK_WRITE,
				.sector = rescue->sector[i],
				.sectors = (uint32_t)rescue->sectors[i],
				.iov = &rescue->iov[i],
				.iov_n = 1,
				.done = rescue_written,
				.owner = rescue,
			},
			.class = QUEUE_WRITE_BACK,
		};
		queue_submit(rescue->recovery->fs->queue, &rescue->req[i]);
	}
}

/* Read-only: the block stays, in the tree's memory. */
static int rescue_keep(struct rescue *rescue)
{
	struct fs *fs = rescue->recovery->fs;
	struct file *file = file_get(fs, rescue->data->ino);
	struct block *block;

	if (!file)
		return -ENOMEM;
	block = block_add_foreign(file, rescue->data->block,
				  rescue->data->bytes);
	file_put(file);
	return block ? 0 : -ENOMEM;
}

static void rescue_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct rescue *rescue = ticket->state;
	struct fs *fs = ticket->fs;

	(void)seq;
	ticket_finish(ticket, 0);
	if (rc || !rescue->valid)
		rescue_over(rescue, rc);
	else if (fs->options.read_only)
		rescue_over(rescue, rescue_keep(rescue));
	else
		rescue_write(rescue);
}

static const struct ticket_type rescue_type = {
	.name = "recover data",
	.bounds = { .nodes = 32 },
	.stages = 20,
	.run = rescue_run,
	.end = rescue_end,
};

static int rescue_start(struct recovery *recovery, const struct tree_data *data)
{
	struct rescue *rescue = calloc(1, sizeof(*rescue));
	int rc;

	if (!rescue)
		return -ENOMEM;
	rescue->recovery = recovery;
	rescue->data = data;
	list_add(&recovery->rescues, &rescue->link);
	rescue->buffer = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
	recovery->busy++;
	rc = rescue->buffer ? ticket_start(recovery->fs, &rescue_type, NULL,
					   rescue) : -ENOMEM;
	if (rc)
		rescue_over(rescue, rc);
	return rc;
}

int files_recover(struct fs *fs)
{
	struct recovery recovery = { .fs = fs };
	const struct tree_data *data;
	size_t n = tree_recovered_data(fs->tree, &data), i = 0;

	list_init(&recovery.rescues);
	while (i < n || recovery.busy) {
		while (i < n && recovery.busy < AT_ONCE && !recovery.rc)
			if (rescue_start(&recovery, &data[i++]))
				break;
		if (recovery.rc)
			i = n;
		recovery.over = !recovery.busy;
		if (fs_wait(fs, &recovery.over))
			break;
	}
	if (recovery.busy)	/* the disk is gone */
		recovery.rc = -EIO;
	while (!list_empty(&recovery.rescues))
		rescue_free(list_first(&recovery.rescues, struct rescue, link));
	if (recovery.written)
		msg_info("%s: %llu logged blocks brought home", fs->disk->name,
			 (unsigned long long)recovery.written);
	return recovery.rc;
}
