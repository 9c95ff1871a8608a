/*
 * check.c - the order of things.
 *
 *   superblocks -> roots -> walk (nodes, items, counts, sums)
 *     -> slots, owners, names, links against each other
 *     -> a second walk where sums differ -> data, when asked
 *     -> repair -> all of it again
 */
#include "check/check.h"

#include <errno.h>
#include <string.h>

#include "check/repair/repair_internal.h"

/* ---- One pass ---- */

/* Number of nodes to read, from the slot map: progress is measured by it. */
static uint64_t slots_used(const struct check *check)
{
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; check->payload && i < check->root.slotmap_bytes; i++)
		used += (unsigned)__builtin_popcount(check->payload[i]);
	return used;
}

static void pass_begin(struct check *check)
{
	struct check_result *result = check->result;

	vec_init(&check->nodes, sizeof(uint64_t));
	vec_init(&check->lost, sizeof(struct lost_range));
	mirrors_begin(check);
	vec_init(&check->inodes.orphans, sizeof(struct orphan));
	vec_init(&check->inodes.now.written.ranges,
		 sizeof(struct block_range));
	vec_init(&check->dirs.differ, sizeof(uint64_t));
	vec_init(&check->dirs.exact, sizeof(struct name_seen));
	vec_init(&check->links.dirs, sizeof(struct dir_parent));
	vec_init(&check->links.exact, sizeof(struct link_seen));
	copies_begin(check);
	paths_begin(check);
	memset(check->problem_found, 0, sizeof(check->problem_found));
	check->found = 0;
	result->items = result->inodes = result->directories = 0;
	result->extents = result->data_sectors = 0;
	result->bytes_verified = result->bytes_bad = 0;
}

static void pass_end(struct check *check)
{
	owners_free(check);
	inodes_free(check);
	dirs_free(check);
	links_free(check);
	copies_free(check);
	paths_free(check);
	vec_fini(&check->nodes);
	vec_fini(&check->lost);
	mirrors_free(check);
	super_root_free(check);
}

static void exact_item(struct check *check, struct key key, const void *value,
		       size_t bytes)
{
	owners_exact_item(check, key, value);
	dirs_exact_item(check, key, value, bytes);
	links_exact_item(check, key, value);
}

static void pass_exact(struct check *check)
{
	walk_tree(check, false, exact_item);
	if (check->rc)
		return;
	owners_exact_finish(check);
	dirs_exact_finish(check);
	links_exact_finish(check);
}

static void pass_tree(struct check *check)
{
	bool exact;

	check->nodes_total = slots_used(check);
	owners_begin(check);
	if (check->rc)
		return;
	walk_tree(check, true, inodes_item);
	if (!check->rc)
		mirrors_verify(check);
	if (check->rc)
		return;
	inodes_finish(check);
	check->result->nodes = check->nodes.n;
	check->result->levels = check->root.level + 1;
	slots_finish(check);
	copies_finish(check);
	exact = owners_finish(check);
	exact |= links_finish(check);
	exact |= dirs_need_exact(check);
	if (exact)
		pass_exact(check);
}

/* Reports that the state on the disk is not the last one. */
static void pass_not_clean(struct check *check)
{
	if (!check->root.clean)
		problem_report(check, PROBLEM_NOT_CLEAN,
			       (struct problem_place){ 0 },
			       (unsigned long long)check->root.gen);
}

/* The root may be older than one that cannot be read. */
static void pass_lost_root(struct check *check)
{
	uint64_t seq;

	if (!check->roots_doubted)
		return;
	seq = log_scan_newer(check);
	if (seq)
		problem_report(check, PROBLEM_ROOT_LOST,
			       (struct problem_place){ 0 },
			       (unsigned long long)seq);
}

static int pass(struct check *check)
{
	int rc = super_root_load_root(check);

	if (rc || !check->have_root)
		return rc;
	check->result->generation = check->root.gen;
	pass_lost_root(check);
	if (check->options.skip_clean && check->root.clean &&
	    !check->problem_found[PROBLEM_ROOT_LOST])
		return 0;
	pass_not_clean(check);
	pass_tree(check);
	/* Without a clean root the log may hold data that is newer than the
	 * root's checksums. */
	if (check->options.data && check->root.clean && !check->rc)
		data_verify(check);
	paths_finish(check);
	return check->rc;
}

/* ---- Repair ---- */

/* With -p, a problem that needs a human's decision stops all repairs but those
 * of copies. */
static bool unsafe_found(const struct check *check)
{
	unsigned i;

	for (i = 0; i < PROBLEMS; i++)
		if (check->problem_found[i] && !check_problems[i].safe &&
		    check_problems[i].severity > CHECK_NOTE)
			return true;
	return false;
}

static int run_repair(struct check *check)
{
	if (!check->options.repair || !problem_any_to_repair(check) ||
	    (check->options.safe_only && unsafe_found(check)))
		return 0;
	return repair_run(check);
}

/* Does the first pass, and repairs what it finds. */
static int run_first(struct check *check)
{
	struct check_result *result = check->result;
	int rc;

	pass_begin(check);
	rc = super_root_load_super(check);
	if (!rc && check->options.repair)
		rc = replay_run(check);
	if (!rc)
		rc = pass(check);
	result->was_clean = check->have_root && check->root.clean &&
			    !result->replayed;
	if (!rc)
		rc = run_repair(check);
	result->found = result->left = check->found;
	pass_end(check);
	return rc;
}

/* Checks again after a repair: only what is gone then is called repaired. */
static int run_again(struct check *check)
{
	struct check_result *result = check->result;
	uint64_t verified = result->bytes_verified, bad = result->bytes_bad;
	bool unhealed = check->problem_found[PROBLEM_DATA_BAD] ||
			check->problem_found[PROBLEM_DATA_READ];
	int rc;

	/* Reading all data again is worth its time only when some of it was
	 * bad. */
	check->again = true;
	check->options.data = check->options.data && unhealed;
	pass_begin(check);
	rc = super_root_load_super(check);
	if (!rc)
		rc = pass(check);
	result->left = check->found;
	result->bytes_verified = verified;
	result->bytes_bad = bad;
	pass_end(check);
	return rc;
}

int check_run(struct env *env, struct disk *disk,
	      const struct check_options *options, struct check_result *result)
{
	struct check check = {
		.env = env,
		.disk = disk,
		.options = *options,
		.result = result,
	};
	int rc;

	memset(result, 0, sizeof(*result));
	if (disk->limits.read_only)
		check.options.repair = false;
	paths_init(&check);
	rc = run_first(&check);
	if (!rc && result->changed)
		rc = run_again(&check);
	paths_fini(&check);
	return rc;
}
