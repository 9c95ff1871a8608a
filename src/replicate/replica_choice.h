/*
 * replica_choice.h - which blocks are worth a replica (FS2, 3.1).
 *
 * Candidates are blocks that were read one after the other but lie apart. A
 * replica saves the way of the head from the read before, but not more than the
 * time that the read waited for the disk, because its cache may have had the
 * block; it costs being written once. Runs are copied whole, in the order in
 * which they were read, including blocks that lie near: otherwise the head
 * would go back for them. Long sequential stretches and large reads are left
 * alone; that the head goes to and fro between these and replicas counts as a
 * cost.
 *
 * What is read once is not copied: a quarter of the head's ways in a sequence
 * must lead to places that have been read before, as far as reads are known.
 *
 * Where there is a replica already, another one is made only when the same two
 * reads have followed each other twice and still lie apart: a pattern that was
 * seen once does not outweigh what was learned before. And this must hold for a
 * good part of a sequence: taking a few blocks out of a run would break it.
 *
 * Pure memory.
 */
#ifndef TRAX_REPLICATE_REPLICA_CHOICE_H
#define TRAX_REPLICATE_REPLICA_CHOICE_H

#include "replicate/heat.h"

struct replica_choice_cost {
	/* Time of the head from the end of one access to the start of
	 * another. */
	uint64_t (*move_ns)(void *arg, uint64_t from, uint64_t to);
	uint64_t (*transfer_ns)(void *arg, uint64_t sectors);
	void *arg;
};

struct replica_choice {
	uint64_t ino, block;
	uint32_t blocks;
};

struct replica_chooser;

/*
 * Judges reads [first, end) in steps of some 20 us.  It gets a copy of them at
 * first; the heat must live as long as it.  At most `most` stretches of blocks
 * are chosen.  NULL: no memory.
 */
struct replica_chooser *replica_chooser_new(const struct heat *heat,
					    uint64_t first, uint64_t end,
					    size_t most);
void replica_chooser_free(struct replica_chooser *chooser);

/* Returns whether this was the last step. */
bool replica_chooser_step(struct replica_chooser *chooser,
			  const struct replica_choice_cost *cost);

/*
 * The blocks that are worth a replica, in order, each once, until the chooser
 * is freed. Returns their number; *saving_ns: what they save each time that the
 * same is read again.
 */
size_t replica_chooser_get(const struct replica_chooser *chooser,
			   const struct replica_choice **choices,
			   uint64_t *saving_ns);

#endif
