/*
 * head_account.c - see head_account.h.
 */
#include "fs/replica/head_account.h"

#include "diskmodel/profile.h"
#include "sched/head/head.h"

void head_account_read(const struct fs *fs, struct head_account *account,
		       uint64_t sector, uint64_t sectors, uint64_t wait_ns)
{
	struct head_state head_state;
	struct geom_track from, to;
	uint64_t seek, transfer, period, rotation;

	if (!fs->head || !head_is_known(fs->head) ||
	    sector + sectors > geom_sectors(fs->geom))
		return;
	head_get_state(fs->head, &head_state);
	period = head_state.mech->period_ps / 1000;
	geom_track_of(head_state.geom, account->end < geom_sectors(fs->geom) ?
		      account->end : 0, &from);
	geom_track_of(head_state.geom, sector, &to);
	seek = service_seek_ns(head_state.mech, from.cylinder, to.cylinder);
	transfer = period * sectors / to.sectors;
	rotation = sector == account->end ? 0 : period / 2;
	if (wait_ns) {
		seek = seek < wait_ns ? seek : wait_ns;
		rotation = wait_ns > seek + transfer ?
			   wait_ns - seek - transfer : 0;
		rotation = rotation < period ? rotation : period;
	}
	account->reads++;
	account->seek_ns += seek;
	account->rotation_ns += rotation;
	account->transfer_ns += transfer;
	account->end = sector + sectors;
}

void head_account_guess(const struct fs *fs, struct head_account *account,
			uint64_t sector, uint64_t sectors)
{
	uint64_t track = alloc_track_sectors(fs->alloc, sector);
	unsigned i;

	for (i = 0; i < HEAD_ACCOUNT_STREAMS; i++)
		if (sector >= account->stream[i] &&
		    sector - account->stream[i] < track)
			break;
	if (i < HEAD_ACCOUNT_STREAMS)
		account->end = sector;
	else
		i = account->next++ % HEAD_ACCOUNT_STREAMS;
	account->stream[i] = sector + sectors;
	head_account_read(fs, account, sector, sectors, 0);
}

static double watts(double known, double usual)
{
	return known > 0 ? known : usual;
}

json_t *head_account_json(const struct fs *fs,
			  const struct head_account *account)
{
	double seek_w = watts(fs->profile ? fs->profile->seek_w : 0,
			      PROFILE_USUAL_SEEK_W);
	double active_w = watts(fs->profile ? fs->profile->active_w : 0,
				PROFILE_USUAL_ACTIVE_W);
	double reads = account->reads ? (double)account->reads : 1;
	double seek = (double)account->seek_ns / reads / 1e6;
	double rotation = (double)account->rotation_ns / reads / 1e6;
	double transfer = (double)account->transfer_ns / reads / 1e6;

	return json_pack("{s:I, s:f, s:f, s:f, s:f}", "reads",
			 (json_int_t)account->reads, "seek_ms", seek,
			 "rotation_ms", rotation, "transfer_ms", transfer,
			 "energy_mj", seek * seek_w +
				      (rotation + transfer) * active_w);
}
