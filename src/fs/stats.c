/*
 * stats.c - statistics of the file system as JSON: trax.stats and trax.model of
 * the root directory.
 */
#include "fs/data/file_data.h"

#include <jansson.h>
#include <uuid.h>

#include "base/units.h"
#include "fs/data/admission.h"
#include "fs/data/pace.h"
#include "fs/op/errors.h"
#include "fs/drive/profile_save.h"
#include "fs/replica/replica_ops.h"

#include "sched/queue/queue.h"

static void stats_set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *stats_ops(const struct fs *fs)
{
	json_t *ops = json_object();
	int type;

	for (type = 0; type < FS_OP_TYPES; type++)
		stats_set(ops, fs_op_name((enum fs_op_type)type),
			  fs->stat_ops[type]);
	return ops;
}

static json_t *stats_queue_class(const struct queue_class_stats *class)
{
	json_t *object = json_object();

	stats_set(object, "requests", class->requests);
	stats_set(object, "bytes", class->bytes);
	stats_set(object, "wait_ns", class->wait_ns);
	stats_set(object, "max_wait_ns", class->max_wait_ns);
	stats_set(object, "service_ns", class->service_ns);
	return object;
}

static json_t *stats_queue(const struct fs *fs)
{
	static const char *const names[QUEUE_CLASSES] = {
		[QUEUE_COMMIT] = "commit",
		[QUEUE_READ] = "read",
		[QUEUE_READ_AHEAD] = "read_ahead",
		[QUEUE_WRITE_BACK] = "write_back",
		[QUEUE_IDLE] = "idle",
	};
	const struct queue_stats *stats = queue_stats(fs->queue);
	json_t *object = json_object(), *hour = json_object();
	uint64_t past[QUEUE_CLASSES], ns;
	int i;

	for (i = 0; i < QUEUE_CLASSES; i++)
		json_object_set_new(object, names[i],
				    stats_queue_class(&stats->class[i]));
	stats_set(object, "accesses", stats->accesses);
	stats_set(object, "merged", stats->merged);
	stats_set(object, "held", stats->held);
	stats_set(object, "overdue", stats->overdue);
	stats_set(object, "retried", stats->retried);
	stats_set(object, "copies", stats->copies);
	stats_set(object, "split", stats->split);
	stats_set(object, "patient", stats->patient);
	stats_set(object, "in_vain", stats->in_vain);
	stats_set(object, "window_percent", stats->window_percent);
	stats_set(object, "budget_ppm", stats->budget_ppm);
	stats_set(object, "gaps", stats->gaps);
	stats_set(object, "idle_steps", stats->idle_steps);
	stats_set(object, "flushes", stats->flushes);
	stats_set(object, "flushes_saved", stats->flushes_saved);
	ns = queue_past_hour(fs->queue, past);
	stats_set(hour, "seconds", ns / 1000000000u);
	for (i = 0; i < QUEUE_CLASSES; i++)
		stats_set(hour, names[i], past[i]);
	json_object_set_new(object, "past_hour_ns", hour);
	return object;
}

static json_t *stats_gap_writeback(const struct files *files)
{
	json_t *object = json_object();

	stats_set(object, "offered", files->gap_queued_total);
	stats_set(object, "recalled", files->gap_recalled_total);
	stats_set(object, "waiting", files->gap_queued);
	return object;
}

static json_t *stats_log(const struct fs *fs)
{
	const struct log *log = tree_log(fs->tree);
	json_t *object = json_object();
	struct log_stats stats;

	log_get_stats(log, &stats);
	stats_set(object, "commits", stats.commits);
	stats_set(object, "records", stats.records);
	stats_set(object, "record_bytes", stats.record_bytes);
	stats_set(object, "mirror_writes", stats.mirror_writes);
	stats_set(object, "retries", stats.retries);
	stats_set(object, "fill_percent", log_fill_percent(log));
	stats_set(object, "tracks", tree_super(fs->tree)->log_tracks);
	return object;
}

static json_t *stats_tree(const struct fs *fs)
{
	const struct space *space = tree_space(fs->tree);
	json_t *object = json_object();
	struct tree_stats stats;

	tree_get_stats(fs->tree, &stats);
	stats_set(object, "levels", stats.levels);
	stats_set(object, "transactions", stats.txns);
	stats_set(object, "max_reruns", stats.max_reruns);
	stats_set(object, "waits", stats.waits);
	stats_set(object, "node_reads", stats.node_reads);
	stats_set(object, "node_writes", stats.node_writes);
	stats_set(object, "nodes_cached", stats.nodes_cached);
	stats_set(object, "nodes_dirty", stats.nodes_dirty);
	stats_set(object, "checkpoints", stats.checkpoints);
	stats_set(object, "spills", stats.spills);
	stats_set(object, "inodes", tree_inodes(fs->tree));
	stats_set(object, "inode_numbers_left",
		  tree_ino_seqs_left(fs->tree));
	stats_set(object, "slots", space_slots_total(space));
	return object;
}

static json_t *stats_space(const struct fs *fs)
{
	json_t *object = json_object();
	struct space_counts count;

	space_count(tree_space(fs->tree), &count);
	stats_set(object, "sectors", count.total);
	stats_set(object, "free", count.free);
	stats_set(object, "pending", count.pending);
	stats_set(object, "reserved", count.reserved);
	stats_set(object, "own", count.own);
	stats_set(object, "groups", space_groups(tree_space(fs->tree)));
	return object;
}

static json_t *stats_memory(const struct fs *fs)
{
	const struct pool_budget *budget = &fs->budget;
	json_t *object = json_object();

	stats_set(object, "nodes", budget->nodes);
	stats_set(object, "dirty", budget->dirty);
	stats_set(object, "tracks", budget->tracks);
	stats_set(object, "replicas", budget->replicas);
	stats_set(object, "flight", budget->flight);
	stats_set(object, "vnodes", hashmap_count(fs->vnodes));
	return object;
}

/* Counted since the mount; max_ns is measured by the loop of src/fuse, the
 * others are what was charged. */
static json_t *stats_turn(const struct loop_turn *turn)
{
	const char *charged_part = turn_part_name(turn->max_charged_part);
	json_t *object = json_object();

	stats_set(object, "max_ns", turn->max_ns);
	stats_set(object, "max_charged_ns", turn->max_charged_ns);
	json_object_set_new(object, "max_charged_part",
			    json_string(charged_part));
	stats_set(object, "turns", turn->turns);
	stats_set(object, "cut", turn->cuts);
	return object;
}

/* Text of an object; frees the object. */
static char *stats_text(json_t *object)
{
	char *text = json_dumps(object, JSON_INDENT(2));

	json_decref(object);
	return text;
}

static json_t *stats_uuid(const struct super *super)
{
	char text[UUID_STR_LEN];

	uuid_unparse_lower(super->shown_uuid, text);
	return json_string(text);
}

char *fs_stats_json(struct fs *fs)
{
	json_t *object = json_object();

	json_object_set_new(object, "uuid", stats_uuid(fs_super(fs)));
	json_object_set_new(object, "ops", stats_ops(fs));
	json_object_set_new(object, "queue", stats_queue(fs));
	json_object_set_new(object, "gap_writeback",
			    stats_gap_writeback(fs->files));
	json_object_set_new(object, "log", stats_log(fs));
	json_object_set_new(object, "tree", stats_tree(fs));
	json_object_set_new(object, "space", stats_space(fs));
	json_object_set_new(object, "memory", stats_memory(fs));
	json_object_set_new(object, "turn", stats_turn(&fs->env->turn));
	json_object_set_new(object, "replicas", copies_summary(fs));
	stats_set(object, "errors", errors_count(fs));
	stats_set(object, "orphans", fs->orphans_pending);
	json_object_set_new(object, "read_only",
			    json_boolean(fs_read_only(fs)));
	json_object_set_new(object, "failed",
			    json_boolean(tree_failed(fs->tree)));
	return stats_text(object);
}

static json_t *stats_track(const struct geom *geom, uint64_t index)
{
	json_t *object = json_object();
	struct geom_track track;

	geom_track_at(geom, index, &track);
	stats_set(object, "first", track.first);
	stats_set(object, "sectors", track.sectors);
	stats_set(object, "cylinder", track.cylinder);
	stats_set(object, "surface", track.surface);
	return object;
}

static json_t *stats_head_kind(const struct head_kind_stats *kind)
{
	json_t *object = json_object(), *bins = json_array();
	unsigned i;

	json_object_set_new(object, "on", json_boolean(kind->on));
	stats_set(object, "switched", kind->switched);
	stats_set(object, "predictions", kind->predictions);
	stats_set(object, "wrong", kind->wrong);
	stats_set(object, "misses", kind->misses);
	stats_set(object, "overhead_ns", kind->overhead_ns);
	for (i = 0; i < HEAD_BINS; i++)
		json_array_append_new(bins, json_integer(
				(json_int_t)kind->error_bins[i]));
	json_object_set_new(object, "errors_by_64th_turn", bins);
	return object;
}

static json_t *stats_head(const struct head *head)
{
	static const char *const modes[] = {
		[HEAD_OFF] = "off", [HEAD_TRIAL] = "trial", [HEAD_ON] = "on",
	};
	json_t *object = json_object();
	struct head_stats stats;

	head_get_stats(head, &stats);
	json_object_set_new(object, "mode", json_string(modes[stats.mode]));
	stats_set(object, "period_ps", stats.period_ps);
	stats_set(object, "readings", stats.observed);
	stats_set(object, "outliers", stats.outliers);
	json_object_set_new(object, "reads", stats_head_kind(&stats.read));
	json_object_set_new(object, "writes", stats_head_kind(&stats.write));
	return object;
}

static json_t *stats_part(const struct profile *profile, int part)
{
	json_t *object = json_object();
	enum profile_method method = profile->part[part].method;
	uint32_t ppm = profile->part[part].confidence_ppm;

	json_object_set_new(object, "method",
			    json_string(profile_method_name(method)));
	json_object_set_new(object, "confidence",
			    json_real((double)ppm / PROFILE_CERTAIN_PPM));
	return object;
}

static json_t *stats_profile(const struct fs *fs)
{
	const struct profile *profile = fs->profile;
	uint64_t known = geom_known_sectors(profile->geom);
	json_t *object = json_object(), *parts = json_object();
	int i;

	json_object_set_new(object, "model", json_string(profile->model));
	json_object_set_new(object, "serial", json_string(profile->serial));
	json_object_set_new(object, "firmware",
			    json_string(profile->firmware));
	stats_set(object, "made_seconds",
		  (uint64_t)profile->made_wall_ns / 1000000000u);
	json_object_set_new(object, "known_share",
			    json_real((double)known /
				      (double)profile->sectors));
	json_object_set_new(object, "doubted", json_boolean(fs->options.doubt));
	for (i = 0; i < PROFILE_PARTS; i++)
		json_object_set_new(parts, profile_part_name(i),
				    stats_part(profile, i));
	json_object_set_new(object, "parts", parts);
	return object;
}

/* How often the profile was stored, and with how many bytes. */
static json_t *stats_kept(const struct fs *fs)
{
	json_t *object = json_object();
	struct profile_save_stats kept;

	profile_save_get_stats(fs->profile_save, &kept);
	stats_set(object, "written", kept.written);
	stats_set(object, "bytes", kept.bytes);
	return object;
}

char *fs_model_json(struct fs *fs)
{
	const struct geom *geom = fs->geom;
	uint64_t tracks = geom_tracks(geom);
	uint64_t period_ns = geom_period_ns(geom);
	json_t *object = json_object();

	json_object_set_new(object, "known", json_boolean(geom_known(geom)));
	stats_set(object, "sectors", geom_sectors(geom));
	stats_set(object, "tracks", tracks);
	stats_set(object, "period_ns", period_ns);
	json_object_set_new(object, "profile", stats_profile(fs));
	json_object_set_new(object, "kept", stats_kept(fs));
	if (fs->head)
		json_object_set_new(object, "head", stats_head(fs->head));
	if (period_ns)
		json_object_set_new(object, "rpm",
				    json_real(60e9 / (double)period_ns));
	if (tracks) {
		json_object_set_new(object, "outermost", stats_track(geom, 0));
		json_object_set_new(object, "innermost",
				    stats_track(geom, tracks - 1));
	}
	return stats_text(object);
}

size_t fs_memory_bytes(const struct fs *fs)
{
	const struct pool_budget *b = &fs->budget;

	return b->nodes + b->dirty + b->tracks + b->replicas + b->flight;
}

void fs_get_recovery(const struct fs *fs, struct fs_recovery *out)
{
	const struct tree_recovery *recovered = tree_recovered(fs->tree);

	*out = (struct fs_recovery){
		.was_clean = recovered->was_clean,
		.records = recovered->records,
		.blocks = recovered->data_blocks,
	};
}

static json_t *stats_stream(const struct pace *pace, uint64_t now_ns)
{
	json_t *object = json_object();

	stats_set(object, "ino", pace->ino);
	stats_set(object, "rate", pace->rate);
	json_object_set_new(object, "promised", json_boolean(pace->promised));
	json_object_set_new(object, "slack_s", json_real(
		(double)(pace_slack_ns(pace, now_ns) / NS_PER_MS) / 1e3));
	stats_set(object, "reads", pace->reads);
	stats_set(object, "late", pace->late);
	return object;
}

char *fs_streams_json(struct fs *fs)
{
	json_t *object = json_object(), *streams = json_array();
	uint64_t now_ns = env_now_ns(fs->env);
	const struct list *pos;
	char *text;

	stats_set(object, "promised_rate", admission_rate_all(fs->files));
	list_for_each(pos, &fs->files->paced)
		json_array_append_new(streams, stats_stream(
			list_entry(pos, const struct pace, link), now_ns));
	json_object_set_new(object, "streams", streams);
	text = json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	return text;
}

int fs_promise(struct fs *fs, const struct fs_promise *ask, uint64_t *rate_all,
	       unsigned *files)
{
	return admission_ask(fs, ask, rate_all, files);
}
