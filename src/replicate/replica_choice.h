/*
 * replica_choice.h - which blocks are worth a copy (FS2, 3.1).
 *
 * Candidates are blocks that were read one after the other but lie apart.  What
 * a copy saves is the way of the head from the read before, but not more than
 * the disk was waited for (its cache may have known); what it costs is being
 * written once.  Runs are copied whole, in the order in which they were read,
 * the near ones among the far ones too: or the head would go back for them.
 * Long sequential stretches and large reads are left alone; that the head goes
 * to and fro between these and copies counts as a cost.
 *
 * Where there is a copy already another one is made only when the same two
 * reads have followed each other twice and still lie apart: a pattern that was
 * seen once is not worth giving up what was learned.  And only where this is
 * so for a good part of a sequence: taking a few out of a run would break it.
 *
 * Pure memory.
 */
#ifndef TRAX_REPLICATE_REPLICA_CHOICE_H
#define TRAX_REPLICATE_REPLICA_CHOICE_H

#include "replicate/heat.h"

struct replica_choice_cost {
	/* How long the head takes from the end of one access to the start of
	 * another. */
	uint64_t (*move_ns)(void *arg, uint64_t from, uint64_t to);
	uint64_t (*transfer_ns)(void *arg, uint64_t sectors);
	void *arg;
};

struct replica_choice {
	uint64_t ino, block;
	uint32_t blocks;
};

/*
 * Looks at reads [first, end) and puts what is worth it into `choices`, in
 * order, each block once; at most `most`.  Returns how many; *saving_ns: what
 * they save each time the same is read again.
 */
size_t replica_choose(const struct heat *heat, uint64_t first, uint64_t end,
		      const struct replica_choice_cost *cost,
		      struct replica_choice *choices, size_t most,
		      uint64_t *saving_ns);

#endif
