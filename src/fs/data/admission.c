/*
 * admission.c - see admission.h.
 */
#include "fs/data/admission.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "diskmodel/geom.h"
#include "fs/data/file_data.h"
#include "sched/head/head.h"

/* A promise ends when its file was not read for a minute, so that a program
 * that has ended blocks nobody. */
#define UNHEARD_NS (60 * NS_PER_SECOND)
/* Part of a round's time that promises may take; the log, nodes of the tree and
 * other readers have the rest. */
#define USED_PART 0.9
/* A round may take this many standard deviations of the sum of its waits longer
 * than their mean: one in a thousand takes longer (Traxtents, section 5.4). */
#define SIGMAS 3.0
/* One part in two of the cache chunks holds what is read in a round, while
 * readers use up the other half. */
#define MEMORY_PART 2u
/* Longest round that is counted on, in seconds: in a longer one seeks take so
 * small a part that it gains nothing more. */
#define ROUND_MOST_S 4.0
/* One user has at most half of what the disk can promise, so that nobody takes
 * all of it from the others. */
#define USER_PART 2u

struct promise {
	struct list link;	/* files->promises */
	uint64_t ino, rate;
	uint64_t heard_ns;	/* when it was asked for, or its file was last
				 * read */
	uint32_t uid;		/* the user who asked for it */
};

/* Seconds of a seek when the readers are spread evenly over the disk: a seek
 * grows about with the root of its distance. */
static double seek_s(const struct admission_drive *drive, unsigned readers)
{
	double step = (double)drive->step_ns / 1e9;

	return step + ((double)drive->stroke_ns / 1e9 - step) /
			      sqrt((double)readers);
}

bool admission_fits(const struct admission_drive *drive, unsigned readers,
		    uint64_t rate)
{
	double turn = (double)drive->turn_ns / 1e9, n = readers;
	double round, used;

	if (!rate || !readers)
		return true;
	round = (double)drive->memory / (double)rate;
	round = round < ROUND_MOST_S ? round : ROUND_MOST_S;
	used = n * (seek_s(drive, readers) + turn / 2) +
	       SIGMAS * sqrt(n / 12) * turn +
	       round * (double)rate / (double)drive->media_rate;
	return used <= USED_PART * round;
}

/* False: what the drive can do is not known. */
static bool drive_known(const struct fs *fs, struct admission_drive *drive)
{
	const struct service_mech *mech;
	struct head_state head_state;
	struct geom_track last;

	if (!fs->head || !head_is_known(fs->head))
		return false;
	head_get_state(fs->head, &head_state);
	mech = head_state.mech;
	geom_track_at(fs->geom, geom_tracks(fs->geom) - 1, &last);
	*drive = (struct admission_drive){
		.stroke_ns = service_seek_ns(mech, 0, last.cylinder),
		.step_ns = service_seek_ns(mech, 0, 1),
		.turn_ns = mech->period_ps / 1000,
		.media_rate = (uint64_t)last.sectors * SECTOR_BYTES *
			      1000000000000ull / mech->period_ps,
		.memory = pool_count(fs->files->chunk_pool) * CHUNK_BYTES /
			  MEMORY_PART,
	};
	return true;
}

static struct promise *promise_of(const struct files *files, uint64_t ino)
{
	const struct list *pos;

	list_for_each(pos, &files->promises) {
		struct promise *promise = list_entry(pos, struct promise, link);

		if (promise->ino == ino)
			return promise;
	}
	return NULL;
}

static void promise_end(struct promise *promise)
{
	list_del(&promise->link);
	free(promise);
}

static void forget_unheard(struct files *files, uint64_t now_ns)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &files->promises) {
		struct promise *promise = list_entry(pos, struct promise, link);

		if (promise->heard_ns + UNHEARD_NS < now_ns)
			promise_end(promise);
	}
}

static unsigned promises(const struct files *files)
{
	const struct list *pos;
	unsigned n = 0;

	list_for_each(pos, &files->promises)
		n++;
	return n;
}

/* Does what a user would have with this promise stay within the user's part of
 * the disk? */
static bool user_fits(const struct files *files,
		      const struct admission_drive *drive,
		      const struct fs_promise *ask)
{
	const struct list *pos;
	uint64_t rate = ask->rate;
	unsigned n = 1;

	list_for_each(pos, &files->promises) {
		const struct promise *other =
			list_entry(pos, const struct promise, link);

		if (other->uid == ask->uid && other->ino != ask->ino) {
			rate += other->rate;
			n++;
		}
	}
	return admission_fits(drive, n * USER_PART, rate * USER_PART);
}

static int promise_make(struct fs *fs, const struct fs_promise *ask,
			struct promise *had, uint64_t now_ns)
{
	struct files *files = fs->files;
	struct promise *promise = had;
	struct admission_drive drive;
	uint64_t others = admission_rate_all(files) - (had ? had->rate : 0);

	if (!drive_known(fs, &drive))
		return -EOPNOTSUPP;
	/* The sum does not overflow. */
	if (ask->rate > drive.media_rate ||
	    !admission_fits(&drive, promises(files) + !had,
			    others + ask->rate))
		return -EBUSY;
	if (!ask->admin && !user_fits(files, &drive, ask))
		return -EDQUOT;
	if (!had) {
		promise = malloc(sizeof(*promise));
		if (!promise)
			return -ENOMEM;
		list_add(&files->promises, &promise->link);
	}
	*promise = (struct promise){
		.link = promise->link,
		.ino = ask->ino,
		.rate = ask->rate,
		.heard_ns = now_ns,
		.uid = ask->uid,
	};
	return 0;
}

int admission_ask(struct fs *fs, const struct fs_promise *ask,
		  uint64_t *rate_all, unsigned *readers)
{
	struct files *files = fs->files;
	uint64_t now_ns = env_now_ns(fs->env);
	struct promise *had;
	int rc = 0;

	forget_unheard(files, now_ns);
	had = promise_of(files, ask->ino);
	if (had && had->uid != ask->uid && !ask->admin)
		return -EPERM;
	if (ask->rate)
		rc = promise_make(fs, ask, had, now_ns);
	else if (had)
		promise_end(had);
	if (rc)
		return rc;
	*rate_all = admission_rate_all(files);
	*readers = promises(files);
	return 0;
}

uint64_t admission_heard(struct files *files, uint64_t ino, uint64_t now_ns)
{
	struct promise *promise = promise_of(files, ino);

	if (!promise)
		return 0;
	if (promise->heard_ns + UNHEARD_NS < now_ns) {
		promise_end(promise);
		return 0;
	}
	promise->heard_ns = now_ns;
	return promise->rate;
}

void admission_end(struct files *files, uint64_t ino)
{
	struct promise *promise = promise_of(files, ino);

	if (promise)
		promise_end(promise);
}

uint64_t admission_rate_all(const struct files *files)
{
	const struct list *pos;
	uint64_t rate = 0;

	list_for_each(pos, &files->promises)
		rate += list_entry(pos, struct promise, link)->rate;
	return rate;
}

void admission_free(struct files *files)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &files->promises)
		promise_end(list_entry(pos, struct promise, link));
}
