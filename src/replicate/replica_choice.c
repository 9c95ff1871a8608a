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

#define BLOCK_SECTORS 8u
#define NEAR_SECTORS 64u	/* distance up to which the head just goes on */
#define LEAST_READS 4u		/* least number of reads in a sequence */
#define STREAM_SETS 64u		/* sets of readers, by the number of the file */
#define STREAMS 16u		/* readers that are told apart in a set */
#define STREAM_READS 4u		/* a row to which the head came so often, */
#define STREAM_SECTORS 2048u	/* and so long (1 MiB), is a stream */
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
#define LEAST_PAIRS 2u
#define AGAIN_SHARE 4u		/* one read in this many of a sequence must
				 * gain */
#define LEAST_NS 50000000u	/* least saving of a sequence */
#define MOST_SEEN (1u << 20)	/* size of the table: twice the blocks of all
				 * sequences */

/* Reads of a file that go on in order. */
struct choice_row {
	uint64_t sectors;
	uint32_t reads;		/* how often the head came to them */
};

struct replica_chooser {
	const struct heat *heat;
	const struct replica_choice_cost *cost;
	struct replica_choice *choices;
	size_t n, most;
	uint64_t saving_ns;
	uint64_t usual_way_ns;
	bool again;		/* blocks that have a replica may get another
				 * one */
	uint64_t *seen;		/* hashes of the blocks that were chosen */
	size_t seen_size, seen_n;
	uint64_t first;		/* number of the first read that is judged */
	uint32_t *row_of;	/* row that each read belongs to, from 1 on */
	struct choice_row *row;
};

/* A file that is read in order. */
struct choice_stream {
	uint64_t ino, block, sector;	/* where its next read is expected */
	uint64_t used;
	uint32_t row;
};

/* Does a read begin where the one before it ended? */
static bool goes_on(const struct replica_chooser *chooser, uint64_t number)
{
	const struct heat_read *read = heat_at(chooser->heat, number);
	const struct heat_read *before = heat_at(chooser->heat, number - 1);
	uint64_t end;

	if (!number || !before || read->begin)
		return false;
	end = before->sector + before->blocks * BLOCK_SECTORS;
	return read->sector >= end && read->sector - end <= NEAR_SECTORS;
}

/* Time that the head took to get to a read. */
static uint64_t way_ns(const struct replica_chooser *chooser, uint64_t number)
{
	const struct heat_read *read = heat_at(chooser->heat, number);
	const struct heat_read *before = heat_at(chooser->heat, number - 1);
	uint64_t end, way;

	if (!number || !before || read->begin)
		return 0;
	if (goes_on(chooser, number))
		return 0;
	end = before->sector + before->blocks * BLOCK_SECTORS;
	way = chooser->cost->move_ns(chooser->cost->arg, end, read->sector);
	if (read->wait_us < NO_WAY_US)
		return 0;
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
	const uint64_t sectors = STREAM_GAP_SECTORS + ahead * BLOCK_SECTORS;

	return stream->ino == read->ino &&
	       read->block + ahead >= stream->block &&
	       read->block <= stream->block + blocks &&
	       read->sector + ahead * BLOCK_SECTORS >= stream->sector &&
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
		stream->sector = read->sector + read->blocks * BLOCK_SECTORS;
	}
	stream->used = used;
}

/* Finds the reads that go on in a row, each in its file, and the lengths of the
 * rows. */
static bool rows_mark(struct replica_chooser *chooser, uint64_t first,
		      uint64_t end)
{
	struct choice_stream *streams, *stream;
	const struct heat_read *read;
	uint32_t rows = 0;
	uint64_t i;

	streams = calloc((size_t)STREAM_SETS * STREAMS, sizeof(*streams));
	chooser->first = first;
	chooser->row_of = calloc(end - first, sizeof(*chooser->row_of));
	chooser->row = calloc(end - first + 1, sizeof(*chooser->row));
	if (!streams || !chooser->row_of || !chooser->row) {
		free(streams);
		return false;
	}
	for (i = first; i < end; i++) {
		read = heat_at(chooser->heat, i);
		/* Replicas lie in a row because they were put there. */
		if (read->from_copy)
			continue;
		stream = stream_find(streams, read);
		if (!stream->row)
			stream->row = ++rows;
		stream_go_on(stream, read, i + 1);
		chooser->row[stream->row].sectors +=
			read->blocks * BLOCK_SECTORS;
		chooser->row[stream->row].reads += !goes_on(chooser, i);
		chooser->row_of[i - first] = stream->row;
	}
	free(streams);
	return true;
}

/*
 * Is a row read well where it is? It is when it is long. One of many streams
 * is not long yet when it is judged, but the head has come back to it often.
 */
static bool row_is_stream(const struct replica_chooser *chooser,
			  uint64_t number)
{
	const struct choice_row *row =
		&chooser->row[chooser->row_of[number - chooser->first]];

	return is_large(chooser, row->sectors) ||
	       (row->reads >= STREAM_READS && row->sectors >= STREAM_SECTORS);
}

static bool is_candidate(const struct replica_chooser *chooser, uint64_t number,
			 uint64_t way)
{
	const struct heat_read *read = heat_at(chooser->heat, number);
	const struct heat_read *before = heat_at(chooser->heat, number - 1);

	if (is_large(chooser, read->blocks * BLOCK_SECTORS) ||
	    row_is_stream(chooser, number))
		return false;
	if (!read->copied)
		return true;
	return chooser->again && number && before && way &&
	       heat_pairs(chooser->heat, before, read) >= LEAST_PAIRS;
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

static void sequence_take(struct replica_chooser *chooser, uint64_t first,
			  uint64_t end)
{
	const struct heat_read *read;
	uint64_t i, k;

	for (i = first; i < end; i++) {
		read = heat_at(chooser->heat, i);
		if (!is_candidate(chooser, i, way_ns(chooser, i)))
			continue;
		for (k = 0; k < read->blocks; k++)
			block_take(chooser, read->ino, read->block + k);
	}
}

static void sequence_end(struct replica_chooser *chooser, uint64_t first,
			 uint64_t end)
{
	uint64_t i, way, before = 0, after = 0, price = 0, again = 0, n = 0;
	bool candidate, copy, was_copy = false;

	if (end - first < LEAST_READS)
		return;
	chooser->again = true;
	for (i = first; i < end; i++)
		again += heat_at(chooser->heat, i)->copied &&
			 is_candidate(chooser, i, way_ns(chooser, i));
	chooser->again = again * AGAIN_SHARE >= end - first;
	for (i = first; i < end; i++) {
		way = way_ns(chooser, i);
		candidate = is_candidate(chooser, i, way);
		copy = candidate || heat_at(chooser->heat, i)->copied;
		before += way;
		/* The head goes to and fro between replicas and blocks that
		 * stay. */
		if (copy != was_copy)
			after += chooser->usual_way_ns;
		else if (!candidate)
			after += way;
		was_copy = copy;
		n += candidate;
		if (candidate)
			price += chooser->cost->transfer_ns(
				chooser->cost->arg,
				heat_at(chooser->heat, i)->blocks *
					BLOCK_SECTORS);
	}
	if (before < after + LEAST_NS || before <= after + price / USES ||
	    before - after < n * LEAST_MEAN_NS)
		return;
	chooser->saving_ns += before - after;
	sequence_take(chooser, first, end);
}

static void choose_all(struct replica_chooser *chooser, uint64_t first,
		       uint64_t end)
{
	const struct heat_read *read;
	uint64_t from = first, row_from = first, row = 0, i;

	for (i = first; i < end; i++) {
		read = heat_at(chooser->heat, i);
		if (!goes_on(chooser, i)) {
			if (is_large(chooser, row)) {
				sequence_end(chooser, from, row_from);
				from = i;
			}
			row_from = i;
			row = 0;
		}
		if (read->begin) {
			sequence_end(chooser, from, i);
			from = i;
		}
		/* Replicas lie in a row because they were put there. */
		if (!read->from_copy)
			row += read->blocks * BLOCK_SECTORS;
	}
	sequence_end(chooser, from, is_large(chooser, row) ? row_from : end);
}

size_t replica_choose(const struct heat *heat, uint64_t first, uint64_t end,
		      const struct replica_choice_cost *cost,
		      struct replica_choice *choices, size_t most,
		      uint64_t *saving_ns)
{
	struct replica_chooser chooser = {
		.heat = heat, .cost = cost, .choices = choices, .most = most,
	};
	uint64_t i;

	*saving_ns = 0;
	chooser.usual_way_ns = cost->move_ns(cost->arg, 0, heat_hot(heat) +
					     HEAT_REGION_SECTORS);
	if (first < heat_first(heat))
		first = heat_first(heat);
	if (end > heat_end(heat))
		end = heat_end(heat);
	if (first >= end)
		return 0;
	for (i = first; i < end; i++)
		chooser.seen_size += 2ul * heat_at(heat, i)->blocks;
	chooser.seen_size = chooser.seen_size < MOST_SEEN ?
		chooser.seen_size + 1 : MOST_SEEN;
	chooser.seen = calloc(chooser.seen_size, sizeof(*chooser.seen));
	if (chooser.seen && rows_mark(&chooser, first, end))
		choose_all(&chooser, first, end);
	free(chooser.seen);
	free(chooser.row_of);
	free(chooser.row);
	*saving_ns = chooser.saving_ns;
	return chooser.n;
}
