/*
 * fs_model.c - the model of the drive that a mount uses: its profile, and the
 * head state by which requests are chosen.
 */
#include "fs/fs_model.h"

#include <errno.h>

#include "base/msg.h"
#include "fs/drive/profile_save.h"
#include "fs/drive/profile_load.h"
#include "sched/freeblock/freeblock.h"

/* ---- The drive ---- */

static int fs_read_record(void *arg, uint64_t sector, uint32_t sectors,
			  void *buf)
{
	struct fs *fs = arg;

	return queue_read(fs->queue, sector, sectors, buf);
}

int fs_open_profile(struct fs *fs)
{
	const struct super *super = tree_super(fs->tree);
	const struct profile_reader reader = { fs_read_record, fs };
	uint32_t track = super->pseudo_track_sectors;
	struct geom *geom;
	int rc;

	if (super->geom_sector) {
		rc = profile_load(&reader, super, &fs->profile);
		if (rc == 0 || rc == -ENOMEM)
			return rc;
		msg_warn("%s: the record of the drive at sector %llu is bad; "
			 "going on without", fs->disk->name,
			 (unsigned long long)super->geom_sector);
	}
	rc = geom_regular(super->sectors,
			  track ? track : GEOM_PSEUDO_SECTORS, &geom);
	if (rc)
		return rc;
	fs->profile = profile_from_geom(geom, PROFILE_NONE);
	if (fs->profile)
		return 0;
	geom_free(geom);
	return -ENOMEM;
}

int fs_open_head(struct fs *fs)
{
	const struct profile *p = fs->profile;
	const struct head_options options = {
		.geom = p->geom,
		.mech = &p->mech,
		.read_overhead_ns = p->read_overhead_ns,
		.write_overhead_ns = p->write_overhead_ns,
		.hit_overhead_ns = p->hit_overhead_ns,
		.read_ahead_sectors = p->read_ahead_sectors,
		.physical_sectors = queue_limits(fs->queue)->physical_bytes /
				    SECTOR_BYTES,
	};
	int rc;

	if (fs->head || fs->options.doubt || !p->mech.period_ps ||
	    !p->mech.seek_n || !geom_known(p->geom))
		return 0;
	rc = head_open(fs->env, &options, &fs->own_head);
	if (!rc)
		rc = queue_drain(fs->queue);
	if (rc)
		return rc;
	fs->head = fs->own_head;
	head_learn_reads(fs->head, fs->options.past_reads,
			 fs->options.past_reads_n);
	fs->options.past_reads_n = 0;
	queue_set_head(fs->queue, fs->head);
	return 0;
}

int fs_adopt_profile(struct fs *fs, struct profile *profile)
{
	struct profile *old = fs->profile;
	int rc;

	if (!queue_idle(fs->queue))
		return -EBUSY;
	rc = freeblock_set_geom(fs->queue, profile->geom);
	if (rc)
		return rc;
	alloc_set_geom(fs->alloc, profile->geom);
	if (fs->own_head)
		head_set_geom(fs->own_head, profile->geom);
	fs->profile = profile;
	fs->geom = profile->geom;
	profile_free(old);
	profile_save_wanted(fs->profile_save);
	rc = fs_open_head(fs);
	if (rc)
		msg_warn("%s: the head is not followed: %s", fs->disk->name,
			 strerror(-rc));
	return 0;
}

int fs_trust_profile(struct fs *fs)
{
	int rc;

	if (!queue_idle(fs->queue))
		return -EBUSY;
	/* Without a predicted head the freeblock planner used pseudo-tracks. */
	rc = freeblock_set_geom(fs->queue, fs->geom);
	if (rc)
		return rc;
	fs->options.doubt = false;
	return fs_open_head(fs);
}
