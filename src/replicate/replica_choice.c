/*
 * replica_choice.c - see replica_choice.h.
 *
 * Reads are cut into sequences at pauses and at sequential stretches; each
 * sequence is judged as a whole.  Files that are read from front to back beside
 * each other are told apart first: what one of them reads in order is read well
 * where it is, so it is no candidate, however far the head goes between them.
 */
#include "replicate/replica_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/units.h"

#define NEAR_SECTORS 64u	/* distance in sectors up to which the head just
				 * goes on */
#define LEAST_READS 4u		/* least number of reads in a sequence */
#define STREAM_SETS 64u		/* sets of readers, by the number of the file */
#define STREAMS 16u		/* readers that are told apart in a set */
#define STREAM_READS 4u		/* a row of reads to which the head came this
				 * often, and which is */
#define STREAM_SECTORS 2048u	/* this long (1 MiB), is a stream */
#define STREAM_GAP_SECTORS 2048u /* sectors of other data within a stream: a
				  * track */
#define STREAM_GAP_BLOCKS 8u	/* blocks that a stream may leave out or read
				 * out of order */
#define STREAM_REQUESTS 16u	/* requests of one reader that may overtake each
				 * other: three times the 5 that were seen
				 * where a file was read once, in order */
#define NO_WAY_US 1000u		/* a wait below this was no movement of a
				 * head */
#define LARGE_WAYS 2u		/* a read that takes more than this many ways of
				 * the head reads well where it is */
#define USES 2u			/* times that a saving is expected, while the
				 * price is paid once */
#define LEAST_MEAN_NS 20000u	/* least saving for each replica */
/* A place comes again when it has been read this often; a sequence does when
 * this part of the head's ways in it leads to such places. */
#define LEAST_TIMES 2u
#define AGAIN_WAYS 4u
/* Times that two reads must have followed each other before one with a replica
 * gets another one. */
#define LEAST_PAIRS 2u
#define AGAIN_SHARE 4u		/* one read in this many of a sequence must
				 * gain */
#define LEAST_NS (50 * NS_PER_MS)	/* least saving of a sequence */
#define MOST_SEEN (1u << 20)	/* size of the table: twice the blocks of all
				 * sequences */
#define STEP_READS 64u		/* reads that a step looks at, */
#define STEP_BLOCKS 256u	/* and blocks */

/* Reads of a file that go on in order. */
struct choice_row {
	uint64_t sectors;
	uint32_t reads;		/* how often the head came to them */
};

/* A read that is judged, in the parts of the work, see enum choice_part. */
struct judged {
	struct heat_read read;
	uint64_t way_ns;	/* time that the head took to get to it */
	uint64_t price_ns;	/* cost of making a replica */
	uint32_t row;		/* it belongs to, from 1 on; 0: none */
	bool goes_on;		/* it begins where the one before it ended */
	bool first;		/* it may get its first replica */
	bool another;		/* it may get another one */
	bool taken;		/* its blocks are chosen */
};

enum choice_part {
	CHOICE_ROWS,		/* which readers read in order */
	CHOICE_READS,		/* each read by itself */
	CHOICE_SEQUENCES,	/* arithmetic only: in one step */
	CHOICE_BLOCKS,
	CHOICE_OVER
};

struct choice_stream;

struct replica_chooser {
	const struct heat *heat;
	const struct replica_choice_cost *cost;
	enum choice_part part;
	struct judged *judged;	/* [1] to [reads]; [0] is the one before */
	size_t reads, at;	/* number of them, and where this part is */
	uint32_t block;		/* CHOICE_BLOCKS: the block of read `at` that
				 * comes next */
	bool known_before;	/* [0] is known */
	struct replica_choice *choices;
	size_t n, most;
	uint64_t saving_ns;
	uint64_t usual_way_ns;
	bool again;		/* blocks that have a replica may get another
				 * one */
	uint64_t *seen;		/* hashes of the blocks that were chosen */
	size_t seen_size, seen_n;
	struct choice_stream *streams;
	struct choice_row *row;
	uint32_t rows;
};

/* A file that is read in order. */
struct choice_stream {
	uint64_t ino, block, sector;	/* where its next read is expected */
	uint64_t used;
	uint32_t row;
};

static const struct judged *judged_before(const struct replica_chooser *chooser,
					  size_t at)
{
	return at > 1 || chooser->known_before ?
		&chooser->judged[at - 1] : NULL;
}

/* Does a read begin where the one before it ended? */
static bool goes_on(const struct replica_chooser *chooser, size_t at)
{
	const struct heat_read *read = &chooser->judged[at].read;
	const struct judged *before = judged_before(chooser, at);
	uint64_t end;

	if (!before || read->begin)
		return false;
	end = before->read.sector + before->read.blocks * HEAT_BLOCK_SECTORS;
	return read->sector >= end && read->sector - end <= NEAR_SECTORS;
}

/* Time that the head took to get to a read. */
static uint64_t way_ns(const struct replica_chooser *chooser, size_t at)
{
	const struct heat_read *read = &chooser->judged[at].read;
	const struct judged *before = judged_before(chooser, at);
	uint64_t end, way;

	if (!before || read->begin || chooser->judged[at].goes_on ||
	    read->wait_us < NO_WAY_US)
		return 0;
	end = before->read.sector + before->read.blocks * HEAT_BLOCK_SECTORS;
	way = chooser->cost->move_ns(chooser->cost->arg, end, read->sector);
	return way < read->wait_us * 1000ull ? way : read->wait_us * 1000ull;
}

static bool is_large(const struct replica_chooser *chooser, uint64_t sectors)
{
	return chooser->cost->transfer_ns(chooser->cost->arg, sectors) >
	       LARGE_WAYS * chooser->usual_way_ns;
}

/*
 * Does a read belong to a stream? The requests of one reader overtake each
 * other on their way here, so a read may lie some of its own lengths before or
 * behind the expected place, in the file and on the disk alike.
 */
static bool stream_has(const struct choice_stream *stream,
		       const struct heat_read *read)
{
	const uint64_t ahead = (uint64_t)read->blocks * STREAM_REQUESTS;
	const uint64_t blocks = STREAM_GAP_BLOCKS + ahead;
	const uint64_t sectors = STREAM_GAP_SECTORS +
				 ahead * HEAT_BLOCK_SECTORS;

	return stream->ino == read->ino &&
	       read->block + ahead >= stream->block &&
	       read->block <= stream->block + blocks &&
	       read->sector + ahead * HEAT_BLOCK_SECTORS >= stream->sector &&
	       read->sector <= stream->sector + sectors;
}

static struct choice_stream *stream_find(struct choice_stream *streams,
					 const struct heat_read *read)
{
	struct choice_stream *stream, *oldest;

	streams += read->ino % STREAM_SETS * STREAMS;
	oldest = streams;
	for (stream = streams; stream < streams + STREAMS; stream++) {
		if (stream_has(stream, read))
			return stream;
		if (stream->used < oldest->used)
			oldest = stream;
	}
	*oldest = (struct choice_stream){ .ino = read->ino };
	return oldest;
}

/* A read that was overtaken does not set its stream back. */
static void stream_go_on(struct choice_stream *stream,
			 const struct heat_read *read, uint64_t used)
{
	const uint64_t block = read->block + read->blocks;

	if (!stream->used || block > stream->block) {
		stream->block = block;
		stream->sector = read->sector +
				 read->blocks * HEAT_BLOCK_SECTORS;
	}
	stream->used = used;
}

/* Finds the row that a read goes on in, in its file. */
static void row_mark(struct replica_chooser *chooser, size_t at)
{
	struct judged *judged = &chooser->judged[at];
	struct choice_stream *stream;
	struct choice_row *row;

	judged->goes_on = goes_on(chooser, at);
	/* Replicas lie in a row because they were put there. */
	if (judged->read.from_copy)
		return;
	stream = stream_find(chooser->streams, &judged->read);
	if (!stream->row)
		stream->row = ++chooser->rows;
	stream_go_on(stream, &judged->read, at);
	row = &chooser->row[stream->row];
	row->sectors += judged->read.blocks * HEAT_BLOCK_SECTORS;
	row->reads += !judged->goes_on;
	judged->row = stream->row;
}

/*
 * Is a row read well where it is? It is when it is long. One of many streams
 * is not long yet when it is judged, but the head has come back to it often.
 */
static bool row_is_stream(const struct replica_chooser *chooser,
			  const struct judged *judged)
{
	const struct choice_row *row = &chooser->row[judged->row];

	return is_large(chooser, row->sectors) ||
	       (row->reads >= STREAM_READS && row->sectors >= STREAM_SECTORS);
}

static void read_judge(struct replica_chooser *chooser, size_t at)
{
	struct judged *judged = &chooser->judged[at];
	const struct judged *before = judged_before(chooser, at);
	const uint64_t sectors = judged->read.blocks * HEAT_BLOCK_SECTORS;

	judged->way_ns = way_ns(chooser, at);
	judged->price_ns = chooser->cost->transfer_ns(chooser->cost->arg,
						      sectors);
	if (is_large(chooser, sectors) || row_is_stream(chooser, judged))
		return;
	judged->first = !judged->read.copied;
	judged->another = judged->read.copied && before && judged->way_ns &&
			  heat_pairs(chooser->heat, &before->read,
				     &judged->read) >= LEAST_PAIRS;
}

static bool is_candidate(const struct replica_chooser *chooser,
			 const struct judged *judged)
{
	return judged->first || (chooser->again && judged->another);
}

/* Has a block been chosen before? If not, it counts as chosen from now on. */
static bool seen_before(struct replica_chooser *chooser, uint64_t ino,
			uint64_t block)
{
	const uint64_t tuple[2] = { ino, block };
	uint64_t hash = csum(tuple, sizeof(tuple)) | 1;
	size_t i = hash % chooser->seen_size;

	while (chooser->seen[i]) {
		if (chooser->seen[i] == hash)
			return true;
		i = (i + 1) % chooser->seen_size;
	}
	if (2 * chooser->seen_n >= chooser->seen_size)
		return true;
	chooser->seen_n++;
	chooser->seen[i] = hash;
	return false;
}

static void block_take(struct replica_chooser *chooser, uint64_t ino,
		       uint64_t block)
{
	struct replica_choice *last = chooser->n ?
		&chooser->choices[chooser->n - 1] : NULL;

	if (seen_before(chooser, ino, block))
		return;
	if (last && last->ino == ino && last->block + last->blocks == block)
		last->blocks++;
	else if (chooser->n < chooser->most)
		chooser->choices[chooser->n++] = (struct replica_choice){
			ino, block, 1,
		};
}

/* Judges reads [first, end). */
static void sequence_end(struct replica_chooser *chooser, size_t first,
			 size_t end)
{
	uint64_t before = 0, after = 0, price = 0, again = 0, n = 0;
	uint64_t comes_again = 0;
	bool candidate, copy, was_copy = false;
	struct judged *judged;
	size_t i;

	if (end - first < LEAST_READS)
		return;
	for (i = first; i < end; i++)
		again += chooser->judged[i].another;
	chooser->again = again * AGAIN_SHARE >= end - first;
	for (i = first; i < end; i++) {
		judged = &chooser->judged[i];
		candidate = is_candidate(chooser, judged);
		copy = candidate || judged->read.copied;
		before += judged->way_ns;
		if (heat_times(chooser->heat, &judged->read) >= LEAST_TIMES)
			comes_again += judged->way_ns;
		/* The head goes to and fro between replicas and blocks that
		 * stay. */
		if (copy != was_copy)
			after += chooser->usual_way_ns;
		else if (!candidate)
			after += judged->way_ns;
		was_copy = copy;
		n += candidate;
		price += candidate ? judged->price_ns : 0;
	}
	if (comes_again < before / AGAIN_WAYS || before < after + LEAST_NS ||
	    before <= after + price / USES ||
	    before - after < n * LEAST_MEAN_NS)
		return;
	chooser->saving_ns += before - after;
	for (i = first; i < end; i++)
		chooser->judged[i].taken = is_candidate(chooser,
							&chooser->judged[i]);
}

static void sequences_judge(struct replica_chooser *chooser)
{
	const size_t end = chooser->reads + 1;
	size_t from = 1, row_from = 1, i;
	const struct judged *judged;
	uint64_t row = 0;

	for (i = 1; i < end; i++) {
		judged = &chooser->judged[i];
		if (!judged->goes_on) {
			if (is_large(chooser, row)) {
				sequence_end(chooser, from, row_from);
				from = i;
			}
			row_from = i;
			row = 0;
		}
		if (judged->read.begin) {
			sequence_end(chooser, from, i);
			from = i;
		}
		/* Replicas lie in a row because they were put there. */
		if (!judged->read.from_copy)
			row += judged->read.blocks * HEAT_BLOCK_SECTORS;
	}
	sequence_end(chooser, from, is_large(chooser, row) ? row_from : end);
}

/* ---- In steps ---- */

void replica_chooser_free(struct replica_chooser *chooser)
{
	if (!chooser)
		return;
	free(chooser->judged);
	free(chooser->choices);
	free(chooser->seen);
	free(chooser->streams);
	free(chooser->row);
	free(chooser);
}

/* Copies the reads, as new ones will replace them. */
static void reads_copy(struct replica_chooser *chooser, uint64_t first)
{
	const struct heat_read *read;
	size_t i;

	read = first ? heat_at(chooser->heat, first - 1) : NULL;
	chooser->known_before = read;
	if (read)
		chooser->judged[0].read = *read;
	for (i = 0; i < chooser->reads; i++) {
		read = heat_at(chooser->heat, first + i);
		chooser->judged[i + 1].read = *read;
		chooser->seen_size += 2ul * read->blocks;
	}
	chooser->seen_size = chooser->seen_size < MOST_SEEN ?
		chooser->seen_size + 1 : MOST_SEEN;
}

struct replica_chooser *replica_chooser_new(const struct heat *heat,
					    uint64_t first, uint64_t end,
					    size_t most)
{
	struct replica_chooser *chooser = calloc(1, sizeof(*chooser));

	if (!chooser)
		return NULL;
	if (first < heat_first(heat))
		first = heat_first(heat);
	if (end > heat_end(heat))
		end = heat_end(heat);
	chooser->heat = heat;
	chooser->reads = first < end ? end - first : 0;
	chooser->most = most;
	chooser->at = 1;
	chooser->judged = calloc(chooser->reads + 1, sizeof(struct judged));
	chooser->row = calloc(chooser->reads + 1, sizeof(struct choice_row));
	chooser->streams = calloc((size_t)STREAM_SETS * STREAMS,
				  sizeof(struct choice_stream));
	chooser->choices = calloc(most, sizeof(*chooser->choices));
	if (chooser->judged)
		reads_copy(chooser, first);
	chooser->seen = calloc(chooser->seen_size + 1, sizeof(*chooser->seen));
	if (chooser->judged && chooser->row && chooser->streams &&
	    chooser->choices && chooser->seen)
		return chooser;
	replica_chooser_free(chooser);
	return NULL;
}

/* Takes blocks of the read `at`; returns their number. */
static unsigned blocks_take(struct replica_chooser *chooser)
{
	const struct judged *judged = &chooser->judged[chooser->at];
	unsigned n = 0;

	while (judged->taken && chooser->block < judged->read.blocks &&
	       n < STEP_BLOCKS) {
		block_take(chooser, judged->read.ino,
			   judged->read.block + chooser->block++);
		n++;
	}
	if (judged->taken && chooser->block < judged->read.blocks)
		return n;
	chooser->block = 0;
	chooser->at++;
	return n;
}

/* At the end of a part the next one begins. */
static void part_step(struct replica_chooser *chooser)
{
	unsigned reads, blocks = 0;

	for (reads = 0; chooser->at <= chooser->reads && reads < STEP_READS &&
	     blocks < STEP_BLOCKS; reads++) {
		if (chooser->part == CHOICE_ROWS)
			row_mark(chooser, chooser->at++);
		else if (chooser->part == CHOICE_READS)
			read_judge(chooser, chooser->at++);
		else
			blocks += blocks_take(chooser);
	}
	if (chooser->at <= chooser->reads)
		return;
	chooser->at = 1;
	chooser->part++;
}

bool replica_chooser_step(struct replica_chooser *chooser,
			  const struct replica_choice_cost *cost)
{
	chooser->cost = cost;
	if (!chooser->usual_way_ns)
		chooser->usual_way_ns = cost->move_ns(cost->arg, 0,
			heat_hot(chooser->heat) + HEAT_REGION_SECTORS);
	if (chooser->part == CHOICE_SEQUENCES) {
		sequences_judge(chooser);
		chooser->part++;
	} else if (chooser->part != CHOICE_OVER) {
		part_step(chooser);
	}
	return chooser->part == CHOICE_OVER;
}

size_t replica_chooser_get(const struct replica_chooser *chooser,
			   const struct replica_choice **choices,
			   uint64_t *saving_ns)
{
	*choices = chooser->choices;
	*saving_ns = chooser->saving_ns;
	return chooser->n;
}
