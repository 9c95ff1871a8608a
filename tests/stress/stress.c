#include "tests/stress/stress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

uint64_t stress_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t stress_below(uint64_t *state, uint64_t n)
{
	return stress_random(state) % n;
}

uint8_t stress_byte(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed * 0x9e3779b97f4a7c15 ^ i >> 3) *
		     0xbf58476d1ce4e5b9;

	return (uint8_t)((z ^ z >> 29) >> (i & 7) * 4) | 1;
}

void stress_fill(void *to, uint64_t seed, uint64_t from, size_t bytes)
{
	uint8_t *p = to;
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = stress_byte(seed, from + i);
}

size_t stress_compare(const void *is, uint64_t seed, uint64_t from,
		      size_t bytes)
{
	const uint8_t *p = is;
	size_t i;

	for (i = 0; i < bytes; i++)
		if (p[i] != stress_byte(seed, from + i))
			break;
	return i;
}

void *stress_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		stress_die("no memory to share");
	return p;
}

double stress_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void stress_die(const char *format, ...)
{
	int error = errno;
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}
