/*
 * copy_limit.c - see copy_limit.h.
 */
#include "fs/replica/copy_limit.h"

#include "base/units.h"
#include "fs/data/file_data.h"
#include "fs/data/pace.h"
#include "fs/op/quiet.h"
#include "fs/replica/access_trace.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"

/* Replicas made in a day by themselves: at most a 1024th of the disk, or
 * DAY_LEAST bytes (1 GiB) if that is more: some minutes of the disk's time. */
#define DAY_PART 1024u
#define DAY_LEAST (1ull << 30)

static bool streams_are_read(const struct fs *fs)
{
	return env_now_ns(fs->env) < pace_streams_until_ns(fs->files);
}

static bool day_is_full(struct fs *fs)
{
	uint64_t most = tree_super(fs->tree)->sectors / DAY_PART * SECTOR_BYTES;
	struct replicas *replicas = fs->replicas;
	uint64_t now_ns = env_now_ns(fs->env);

	if (now_ns - replicas->day_ns >= NS_PER_DAY) {
		replicas->day_ns = now_ns;
		replicas->day_bytes = replicas->stats.made_bytes;
	}
	return replicas->stats.made_bytes - replicas->day_bytes >=
	       (most > DAY_LEAST ? most : DAY_LEAST);
}

bool copies_wait(struct fs *fs)
{
	return streams_are_read(fs) || day_is_full(fs) ||
	       (fs_may_sleep(fs) && !access_trace_leaving(fs));
}

const char *copies_why_not(struct fs *fs)
{
	const struct replicas *replicas = fs->replicas;

	if (fs_read_only(fs))
		return "the file system is read-only";
	if (!replicas->most || !fs->access_trace)
		return "replicas=0: nothing is learned";
	if (streams_are_read(fs))
		return "streams are being read";
	if (fs_may_sleep(fs))
		return "the drive may sleep";
	if (day_is_full(fs))
		return "as many as may be in a day have been made";
	if (replicas->maker && !replica_maker_is_paused(replicas->maker))
		return NULL;
	if (replicas->maker || access_trace_waits(fs))
		return access_trace_quiet(fs) ? NULL :
			"users are at work: they wait for a quiet moment";
	if (replicas->gainless)
		return "nothing read of late lies apart and is read together";
	return "too little has been read";
}
