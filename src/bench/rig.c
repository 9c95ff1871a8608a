/*
 * rig.c - opens the parts in order; a load is an array of clients, each
 * thinking, waiting for its request, or at its end.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/msg.h"
#include "base/sort.h"
#include "bench/rig.h"
#include "fs/mkfs.h"
#include "sim/named.h"

/* ---- the rig ---- */

static int rig_read_specs(const struct rig_options *options, struct rig *rig)
{
	int err = named_spec(options->drive, &rig->spec);

	if (!err)
		err = named_spec(options->drive, &rig->model);
	if (err)
		return err;
	if (options->no_cache) {
		rig->spec->cache_segments = rig->spec->read_ahead_lbns = 0;
		rig->model->read_ahead_lbns = 0;
	}
	if (options->doubt)
		options->doubt(rig->spec, rig->model, options->arg);
	return spec_geom(rig->model, &rig->geom);
}

static int rig_open_head(struct rig *rig)
{
	struct head_options options = {
		.geom = rig->geom,
		.mech = &rig->model->mech,
		.read_overhead_ns = rig->model->read_overhead_ns,
		.write_overhead_ns = rig->model->write_overhead_ns,
		.hit_overhead_ns = rig->model->hit_overhead_ns,
		.read_ahead_sectors = rig->model->read_ahead_lbns,
		.physical_sectors = rig->disk->limits.physical_bytes /
				    SECTOR_BYTES,
	};
	int err = head_open(rig->env, &options, &rig->head);

	if (!err)
		queue_set_head(rig->queue, rig->head);
	return err;
}

static int rig_open_disk(const struct rig_options *options, struct rig *rig)
{
	struct sim_options sim_options = {
		.seed = options->seed,
		.host_ns = options->host_ns,
		.volatile_cache = options->volatile_cache,
	};
	struct disk_open_options disk_options = {
		.read_only = !options->scratch,
		.exclusive = true,
	};

	if (options->device) {
		rig->env = env_real();
		rig->read_only = !options->scratch;
		return disk_open(options->device, &disk_options, &rig->disk);
	}
	rig->sim = options->flat ?
		sim_new(NULL, geom_sectors(rig->geom), &sim_options) :
		sim_new(rig->spec, 0, &sim_options);
	if (!rig->sim)
		return -ENOMEM;
	rig->env = sim_env(rig->sim);
	rig->disk = sim_disk(rig->sim);
	return 0;
}

static int rig_open_parts(const struct rig_options *options, struct rig *rig)
{
	struct queue_options queue_options = {
		.depth = options->depth,
		.policy = options->policy,
	};
	int err = rig_read_specs(options, rig);

	if (!err)
		err = rig_open_disk(options, rig);
	if (err)
		return err;
	err = queue_open(rig->env, rig->disk, &queue_options, &rig->queue);
	if (!err && !options->blind)
		err = rig_open_head(rig);
	return err;
}

int rig_open(const struct rig_options *options, struct rig *rig)
{
	int err;

	*rig = (struct rig){ 0 };
	err = rig_open_parts(options, rig);
	if (err)
		rig_close(rig);
	return err;
}

void rig_close(struct rig *rig)
{
	/* A reference read may be under way. */
	if (rig->queue)
		queue_drain(rig->queue);
	queue_close(rig->queue);
	head_close(rig->head);
	if (rig->disk)
		disk_close(rig->disk);
	geom_free(rig->geom);
	if (rig->spec)
		spec_free(rig->spec);
	if (rig->model)
		spec_free(rig->model);
	*rig = (struct rig){ 0 };
}

uint64_t rig_sectors(const struct rig *rig)
{
	uint64_t n = geom_sectors(rig->geom);

	return n < rig->disk->limits.sectors ? n : rig->disk->limits.sectors;
}

/* ---- loads ---- */

struct client {
	struct queue_request req;
	struct iovec iov;
	struct rig_run *run;
	uint64_t next_ns;	/* time of its next request; UINT64_MAX: one is
				 * outstanding */
};

struct rig_run {
	struct rig *rig;
	const struct rig_load *load;
	struct client *clients;
	uint64_t seed;
	uint64_t last_sector;
	uint64_t asked, done;
	uint64_t begin_ns, last_done_ns;
	double *response_ns;
	double head_sum, head_squares;
	int err;
};

static uint64_t run_random(struct rig_run *run)
{
	uint64_t z = run->seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t run_think_ns(struct rig_run *run)
{
	double u = (double)(run_random(run) >> 11) / 9007199254740992.0;

	return run->load->think_ns ?
		(uint64_t)(-log(1 - u) * (double)run->load->think_ns) : 0;
}

static void run_place(struct rig_run *run, uint64_t *sector, uint32_t *sectors)
{
	const struct rig_load *load = run->load;
	uint64_t all = rig_sectors(run->rig), first = load->first, span;

	*sectors = load->sectors;
	if (load->vary)
		*sectors = (load->sectors / 2 +
			    (uint32_t)(run_random(run) % (load->sectors + 1))) /
			   8 * 8;
	if (*sectors < 8)
		*sectors = 8;
	span = load->span ? load->span : all - first;
	if (load->near && run->asked) {
		first = run->last_sector > load->near ?
				run->last_sector - load->near : 0;
		span = 2 * load->near;
	}
	if (first + span > all)
		span = all - first;
	if (span <= *sectors) {
		first = all - 2 * *sectors;
		span = 2 * *sectors;
	}
	*sector = (first + run_random(run) % (span - *sectors)) / 8 * 8;
	run->last_sector = *sector;
}

static void rig_clear_times(struct rig *rig)
{
	if (rig->sim)
		drive_clear_times(sim_drive(rig->sim), env_now_ns(rig->env));
}

void rig_sum_up(double *v, uint64_t n, double *mean, double *p99)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		sum += v[i];
	qsort(v, n, sizeof(*v), sort_double_cmp);
	*mean = sum / (double)n;
	*p99 = v[n * 99 / 100];
}

double rig_media_rate(const struct rig *rig)
{
	return (double)geom_sectors(rig->geom) /
	       (double)geom_tracks(rig->geom) * 1e12 /
	       (double)rig->model->mech.period_ps;
}

static void run_count(struct rig_run *run, const struct disk_request *disk)
{
	uint64_t from_ns = disk->submit_ns;
	double head_ns;

	if (run->done < run->load->warmup)
		return;
	if (run->last_done_ns > from_ns)
		from_ns = run->last_done_ns;
	head_ns = (double)(disk->complete_ns - from_ns);
	run->head_sum += head_ns;
	run->head_squares += head_ns * head_ns;
	run->response_ns[run->done - run->load->warmup] =
		(double)(disk->complete_ns - disk->submit_ns);
}

static void run_done(struct disk_request *disk)
{
	struct client *client = disk->owner;
	struct rig_run *run = client->run;

	if (disk->result && !run->err)
		run->err = disk->result;
	if (run->load->over)
		run->load->over(run->load->arg,
				(unsigned)(client - run->clients),
				&client->req);
	run_count(run, disk);
	run->done++;
	run->last_done_ns = disk->complete_ns;
	if (run->done == run->load->warmup) {
		run->begin_ns = disk->complete_ns;
		rig_clear_times(run->rig);
	}
	client->next_ns = env_now_ns(run->rig->env) + run_think_ns(run);
}

static void run_ask(struct rig_run *run, struct client *client)
{
	struct disk_request *disk = &client->req.disk;
	uint64_t sector;
	uint32_t sectors;

	if (run->load->next)
		run->load->next(run->load->arg, &sector, &sectors);
	else
		run_place(run, &sector, &sectors);
	client->req = (struct queue_request){ .class = QUEUE_READ };
	*disk = (struct disk_request){
		.op = run_random(run) % 100 < run->load->read_percent ||
				      run->rig->read_only ?
			      DISK_READ : DISK_WRITE,
		.sector = sector,
		.sectors = sectors,
		.iov = &client->iov,
		.iov_n = 1,
		.done = run_done,
		.owner = client,
	};
	client->iov.iov_len = (size_t)sectors * SECTOR_BYTES;
	client->next_ns = UINT64_MAX;
	run->asked++;
	if (run->load->prepare)
		run->load->prepare(run->load->arg,
				   (unsigned)(client - run->clients),
				   &client->req);
	queue_submit(run->rig->queue, &client->req);
}

/* Clients whose time has come submit a request; returns when the next one
 * will. */
static uint64_t run_turn(struct rig_run *run)
{
	uint64_t now_ns = env_now_ns(run->rig->env), next_ns = UINT64_MAX;
	uint64_t all = run->load->warmup + run->load->requests;
	unsigned i;

	for (i = 0; i < run->load->clients; i++) {
		struct client *client = &run->clients[i];

		if (client->next_ns <= now_ns && run->asked < all)
			run_ask(run, client);
		if (client->next_ns < next_ns)
			next_ns = client->next_ns;
	}
	return run->asked < all ? next_ns : UINT64_MAX;
}

static int run_loop(struct rig_run *run)
{
	uint64_t all = run->load->warmup + run->load->requests, next_ns;
	uint64_t now_ns;
	int n = 0;

	while (run->done < all && n >= 0) {
		next_ns = run_turn(run);
		now_ns = env_now_ns(run->rig->env);
		n = queue_poll_ns(run->rig->queue, next_ns == UINT64_MAX ? -1 :
				  next_ns <= now_ns ? 0 :
				  (int64_t)(next_ns - now_ns));
	}
	return n < 0 ? n : run->err;
}

static void run_sum_up(struct rig_run *run, struct rig_result *result)
{
	double n = (double)run->load->requests;

	rig_sum_up(run->response_ns, run->load->requests, &result->mean_ns,
		   &result->p99_ns);
	result->head_mean_ns = run->head_sum / n;
	result->head_deviation_ns =
		sqrt(fmax(run->head_squares / n -
			  result->head_mean_ns * result->head_mean_ns, 0));
	result->ns = run->last_done_ns - run->begin_ns;
	result->times = (struct drive_times){ 0 };
	if (run->rig->sim)
		drive_get_times(sim_drive(run->rig->sim), run->last_done_ns,
				&result->times);
}

static int run_init(struct rig_run *run)
{
	unsigned i;
	uint32_t most = run->load->sectors * 2 + 8;

	run->clients = calloc(run->load->clients, sizeof(*run->clients));
	run->response_ns = calloc(run->load->requests, sizeof(double));
	if (!run->clients || !run->response_ns)
		return -ENOMEM;
	for (i = 0; i < run->load->clients; i++) {
		run->clients[i].run = run;
		run->clients[i].next_ns = env_now_ns(run->rig->env);
		run->clients[i].iov.iov_base = aligned_alloc(DISK_BUFFER_ALIGN,
			((size_t)most * SECTOR_BYTES + DISK_BUFFER_ALIGN - 1) /
				DISK_BUFFER_ALIGN * DISK_BUFFER_ALIGN);
		if (!run->clients[i].iov.iov_base)
			return -ENOMEM;
		memset(run->clients[i].iov.iov_base, (int)i,
		       (size_t)most * SECTOR_BYTES);
	}
	return 0;
}

int rig_run(struct rig *rig, const struct rig_load *load,
	    struct rig_result *result)
{
	struct rig_run run = {
		.rig = rig,
		.load = load,
		.seed = load->seed,
		.begin_ns = env_now_ns(rig->env),
	};
	int err = run_init(&run);
	unsigned i;

	rig_clear_times(rig);
	if (!err)
		err = run_loop(&run);
	if (!err)
		run_sum_up(&run, result);
	for (i = 0; run.clients && i < load->clients; i++)
		free(run.clients[i].iov.iov_base);
	free(run.clients);
	free(run.response_ns);
	return err;
}

/* Requests that tell the head's position. */
#define LEARN_REQUESTS 400

int rig_make_fs(struct rig *rig, struct fs_options *options, struct fs **fs)
{
	const struct rig_load learn = {
		.clients = 1, .sectors = 8, .read_percent = 50,
		.requests = LEARN_REQUESTS,
	};
	const struct mkfs_options mkfs = { .geom = rig->geom,
					   .sectors = rig->fs_sectors };
	struct disk *disk = sim_disk(rig->sim);
	struct rig_result result;
	struct mkfs_plan plan;
	int err = rig_run(rig, &learn, &result);

	if (err)
		return err;
	queue_close(rig->queue);
	rig->queue = NULL;
	options->head = rig->head;
	err = mkfs_plan(rig->env, &disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(rig->env, disk, &mkfs, &plan);
	return err ? err : fs_open(rig->env, disk, options, fs);
}

void rig_pass(const struct rig *rig, uint64_t to_ns)
{
	const uint64_t next_ns = sim_next_ns(rig->sim);
	const uint64_t now_ns = sim_now_ns(rig->sim);

	if (next_ns < to_ns)
		to_ns = next_ns;
	if (to_ns != UINT64_MAX && to_ns > now_ns)
		sim_advance(rig->sim, to_ns - now_ns);
}

static void op_over(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

int rig_do(const struct rig *rig, struct fs *fs, struct fs_op *op)
{
	bool over = false;
	uint64_t next_ns;

	op->done = op_over;
	op->owner = &over;
	fs_submit(fs, op);
	while (!over) {
		next_ns = fs_run(fs, 0);
		if (!over)
			rig_pass(rig, next_ns);
	}
	return op->rc;
}
