/*
 * ends.c - rounds laid upon the one that zones have begun with.
 */
#include "extract/track/ends.h"

#include <string.h>

/* Units, and a share of a track as a divisor, by which sizes of the same head
 * may differ, laid upon those of another zone: they are whole numbers, and the
 * last track of a cylinder has less. */
#define SAME_UNITS 2u
#define SAME_DIVISOR 100u
/* Likewise of the same track upwards and downwards. */
#define TURN_DIVISOR 32u
/* Of the tracks of a round, so few may be like the first, as a divisor. */
#define HEADS_APART 2u
/* Zones that must have begun with the same head. */
#define ZONES_ENOUGH 2u

static uint64_t sum_of(const uint32_t *size, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += size[i];
	return sum;
}

static uint32_t apart(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/* Do the heads of a round, from track `from` on, have the sizes of those that
 * zones begin with, but for how dense they are? */
static bool lies_upon(const struct ends *e, const uint32_t *size, unsigned n,
		      unsigned from)
{
	double ratio = (double)sum_of(size, n) /
		       (double)sum_of(e->first, e->first_n);

	for (unsigned i = 0; i < n; i++) {
		uint32_t is = size[(from + i) % n];
		uint32_t was = (uint32_t)(e->first[i] * ratio + 0.5);

		if (apart(is, was) > SAME_UNITS + is / SAME_DIVISOR)
			return false;
	}
	return true;
}

/* From which tracks on it does; returns how many there are. */
static unsigned lay(const struct ends *e, const uint32_t *size, unsigned n,
		    bool *from)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++) {
		from[i] = n == e->first_n && lies_upon(e, size, n, i);
		found += from[i];
	}
	return found;
}

unsigned ends_least(const uint32_t *size, unsigned n)
{
	for (unsigned d = 1; d < n; d++) {
		unsigned i = 0;

		while (n % d == 0 && i < n && size[i] == size[(i + d) % n])
			i++;
		if (i == n)
			return d;
	}
	return n;
}

/* Does the second half of a round, from a track on, go back over the first?
 * Where it turns the tracks may be of any size: one of them has spares. */
static bool turns_back(const uint32_t *size, unsigned n, uint32_t from)
{
	if (n % 2)
		return false;
	for (unsigned i = 1; i + 1 < n / 2; i++) {
		uint32_t up = size[(from + i) % n];
		uint32_t down = size[(from + n - 1 - i) % n];

		if (apart(up, down) > SAME_UNITS + up / TURN_DIVISOR)
			return false;
	}
	return true;
}

/* A cylinder begins with that track. */
static void mark(struct ends *e, uint32_t from)
{
	e->last[(from + e->n - 1) % e->n] = true;
	if (turns_back(e->size, e->n, from))
		e->last[(from + e->n / 2 - 1) % e->n] = true;
}

/* That zones begin so has been seen once more, or not. */
static void count(struct ends *e, const uint32_t *size, unsigned n,
		  uint32_t begin, bool so)
{
	if (so) {
		e->zones++;
	} else if (e->zones > ZONES_ENOUGH) {
		e->zones--;
		return;
	} else {
		e->zones = 1;
		e->first_n = n;
	}
	for (unsigned i = 0; i < n; i++)
		e->first[i] = size[(begin + i) % n];
}

void ends_leave(struct ends *ends)
{
	ends->n = 0;
	ends->known = false;
}

void ends_see(struct ends *ends, const uint32_t *size, unsigned n,
	      uint32_t begin)
{
	bool from[ENDS_MOST] = { false };
	unsigned found = lay(ends, size, n, from);

	if (begin != ENDS_NONE && found <= n / HEADS_APART)
		count(ends, size, n, begin, from[begin]);
	ends->n = n;
	memcpy(ends->size, size, n * sizeof(*size));
	memset(ends->last, 0, sizeof(ends->last));
	ends->known = ends->zones >= ZONES_ENOUGH && found &&
		      found <= n / HEADS_APART;
	if (!ends->known)
		return;
	if (begin != ENDS_NONE)
		mark(ends, begin);
	for (unsigned i = 0; i < n; i++) {
		if (from[i])
			mark(ends, i);
	}
}

bool ends_may_be_last(const struct ends *ends, uint32_t size)
{
	for (unsigned i = 0; ends->known && i < ends->n; i++) {
		if (ends->last[i] && ends->size[i] == size)
			return true;
	}
	return !ends->known;
}
