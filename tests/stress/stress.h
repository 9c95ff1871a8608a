/*
 * stress.h - what the stress programs share: repeatable random numbers,
 * content that can be told from any other, and shared memory.
 */
#ifndef TRAX_STRESS_STRESS_H
#define TRAX_STRESS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* splitmix64 */
uint64_t stress_random(uint64_t *state);

/* From 0 to n - 1; n > 0. */
uint64_t stress_below(uint64_t *state, uint64_t n);

/*
 * Byte i of the content `seed`.  Never 0, so it differs from a hole; two seeds
 * differ in most places.
 */
uint8_t stress_byte(uint64_t seed, uint64_t i);
void stress_fill(void *to, uint64_t seed, uint64_t from, size_t bytes);

/* First byte that is not of the content, `bytes` when all are. */
size_t stress_compare(const void *is, uint64_t seed, uint64_t from,
		      size_t bytes);

/* Zeroed memory that children share; never fails. */
void *stress_shared(size_t bytes);

/* Seconds of the monotonic clock. */
double stress_now(void);

/* Prints the message with the errno of now, and exits with 1. */
void stress_die(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif
