/*
 * mix.c - see mix.h.  Each kind has a part of the disk to itself, so that none
 * waits for another because of what they access.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/mix.h"

#define CLIENTS_MAX 64u	/* Most clients of all kinds together. */

const struct mix_kind mix_kinds[MIX_KINDS] = {
	{ "random reads", QUEUE_READ, DISK_READ, 3, 8, false },
	{ "read-ahead", QUEUE_READ_AHEAD, DISK_READ, 8, 2048, true },
	{ "large reads", QUEUE_READ, DISK_READ, 2, 2048, true },
	{ "small reads in order", QUEUE_READ, DISK_READ, 1, 128, true },
	{ "commits", QUEUE_COMMIT, DISK_WRITE, 1, 8, true },
	{ "large write-back", QUEUE_WRITE_BACK, DISK_WRITE, 8, 2048, true },
	{ "random write-back", QUEUE_WRITE_BACK, DISK_WRITE, 16, 128, false },
	{ "idle reads", QUEUE_IDLE, DISK_READ, 1, 1024, true },
};

struct client {
	struct queue_request req;
	struct iovec iov;
	struct mix *mix;
	unsigned kind;
	bool busy;
};

struct mix {
	struct rig *rig;
	struct mix_result *result;
	struct client client[CLIENTS_MAX];
	unsigned clients;
	uint64_t at[MIX_KINDS];		/* where each sequential kind goes on */
	uint64_t seed;
	void *buffer[2];		/* one buffer for all reads, one for all
					 * writes */
	int err;
};

static uint64_t mix_place(struct mix *mix, unsigned k)
{
	const struct mix_kind *kind = &mix_kinds[k];
	uint64_t part = rig_sectors(mix->rig) / MIX_KINDS / 8 * 8, at;

	if (!kind->sequential)
		return k * part + random_next(&mix->seed) %
				  (part - kind->sectors) / 8 * 8;
	if (mix->at[k] + kind->sectors > part)
		mix->at[k] = 0;
	at = mix->at[k];
	mix->at[k] += kind->sectors;
	return k * part + at;
}

static void mix_count(struct mix_result *result, uint64_t ns)
{
	result->wait_ns += ns;
	if (ns > result->max_ns)
		result->max_ns = ns;
}

static void client_done(struct disk_request *disk)
{
	struct client *client = disk->owner;
	struct mix_result *result = &client->mix->result[client->kind];

	client->busy = false;
	if (disk->result && !client->mix->err)
		client->mix->err = disk->result;
	result->requests++;
	result->bytes += (uint64_t)disk->sectors * SECTOR_BYTES;
	mix_count(result, disk->complete_ns - disk->submit_ns);
}

static void client_ask(struct client *client)
{
	const struct mix_kind *kind = &mix_kinds[client->kind];

	client->busy = true;
	client->iov = (struct iovec){
		client->mix->buffer[kind->op == DISK_WRITE],
		(size_t)kind->sectors * SECTOR_BYTES,
	};
	client->req = (struct queue_request){
		.disk = {
			.op = kind->op,
			.sector = mix_place(client->mix, client->kind),
			.sectors = kind->sectors,
			.iov = &client->iov,
			.iov_n = 1,
			.done = client_done,
			.owner = client,
		},
		.class = kind->class,
	};
	queue_submit(client->mix->rig->queue, &client->req);
}

static int mix_init(struct mix *mix, unsigned kinds)
{
	uint32_t most = 0;
	unsigned k, i;

	for (k = 0; k < MIX_KINDS; k++) {
		for (i = 0; kinds & 1u << k && i < mix_kinds[k].clients; i++)
			mix->client[mix->clients++] = (struct client){
				.mix = mix, .kind = k,
			};
		if (mix_kinds[k].sectors > most)
			most = mix_kinds[k].sectors;
	}
	for (i = 0; i < 2; i++) {
		mix->buffer[i] = aligned_alloc(DISK_BUFFER_ALIGN, (size_t)most *
							     SECTOR_BYTES);
		if (!mix->buffer[i])
			return -ENOMEM;
		memset(mix->buffer[i], 0, (size_t)most * SECTOR_BYTES);
	}
	return 0;
}

static int mix_loop(struct mix *mix, uint64_t ns)
{
	struct env *env = mix->rig->env;
	uint64_t end_ns = env_now_ns(env) + ns, now_ns;
	unsigned i;
	int n = 0;

	while ((now_ns = env_now_ns(env)) < end_ns && !mix->err && n >= 0) {
		for (i = 0; i < mix->clients; i++)
			if (!mix->client[i].busy)
				client_ask(&mix->client[i]);
		n = queue_poll_ns(mix->rig->queue, (int64_t)(end_ns - now_ns));
	}
	for (i = 0; i < mix->clients; i++)
		if (mix->client[i].busy)
			mix_count(&mix->result[mix->client[i].kind],
				  now_ns -
				  mix->client[i].req.disk.submit_ns);
	return n < 0 ? n : mix->err;
}

int mix_run(struct rig *rig, unsigned kinds, uint64_t ns, uint64_t seed,
	    struct mix_result result[MIX_KINDS])
{
	struct mix *mix = calloc(1, sizeof(*mix));
	struct mix_result late[MIX_KINDS] = { 0 };
	int rc;
	unsigned k;

	if (!mix)
		return -ENOMEM;
	for (k = 0; k < MIX_KINDS; k++)
		result[k] = (struct mix_result){ 0 };
	mix->rig = rig;
	mix->seed = seed;
	mix->result = result;
	rc = mix_init(mix, kinds);
	if (!rc)
		rc = mix_loop(mix, ns);
	mix->result = late;	/* A request that only ended after the
				 * measurement does not count. */
	if (!rc)
		rc = queue_drain(rig->queue);
	free(mix->buffer[0]);
	free(mix->buffer[1]);
	free(mix);
	return rc;
}
