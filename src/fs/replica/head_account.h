/*
 * head_account.h - the head's time for reads, as far as it can be told without
 * the drive: seek, rotation, transfer, and the energy for them.
 *
 * Two accounts, of reads as they were and as they would have been without
 * replicas, tell what replicas bring.
 */
#ifndef TRAX_REPLICA_HEAD_ACCOUNT_H
#define TRAX_REPLICA_HEAD_ACCOUNT_H

#include <jansson.h>

#include "fs/op/fs_internal.h"

#define HEAD_ACCOUNT_STREAMS 8u	/* readers that an account tells apart */

struct head_account {
	uint64_t reads, seek_ns, rotation_ns, transfer_ns;
	uint64_t end;		/* end of the last read */
	/* Ends of reads that may go on, and the index of the one that is
	 * replaced next. */
	uint64_t stream[HEAD_ACCOUNT_STREAMS];
	unsigned next;
};

/* Accounts for one more read.  `wait_ns` 0: its time is not known and counts as
 * half a revolution, unless it goes on where one ended. */
void head_account_read(const struct fs *fs, struct head_account *account,
		       uint64_t sector, uint64_t sectors, uint64_t wait_ns);

/* Accounts for a read that a replica has served as if there were none: a read
 * less than a track behind one of the last few would have been read ahead. */
void head_account_guess(const struct fs *fs, struct head_account *account,
			uint64_t sector, uint64_t sectors);

/* Means of a read in milliseconds and millijoules.  The caller owns the
 * object. */
json_t *head_account_json(const struct fs *fs,
			  const struct head_account *account);

#endif
