/*
 * quiet.c - see quiet.h.  The gaps that count are those between requests to the
 * disk, which freeblock follows; operations that need no disk end a quiet time
 * as well.
 */
#include "fs/op/quiet.h"

#include "sched/freeblock/freeblock.h"

static uint64_t asked_ns(const struct fs *fs)
{
	uint64_t disk_ns = queue_users_ns(fs->queue);

	return disk_ns > fs->answer_ns ? disk_ns : fs->answer_ns;
}

uint64_t fs_quiet_from_ns(const struct fs *fs)
{
	return asked_ns(fs) + freeblock_quiet_ns(fs->queue);
}

bool fs_may_sleep(const struct fs *fs)
{
	return env_now_ns(fs->env) - queue_users_ns(fs->queue) >=
	       freeblock_sleep_ns(fs->queue);
}

bool fs_is_quiet(const struct fs *fs)
{
	return list_empty(&fs->ops) && !fs_may_sleep(fs) &&
	       env_now_ns(fs->env) >= fs_quiet_from_ns(fs);
}
