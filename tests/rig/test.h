/*
 * test.h - what every unit test program needs: runs a suite, random numbers.
 */
#ifndef TRAX_RIG_TEST_H
#define TRAX_RIG_TEST_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

/* Runs the suite; returns the exit status of main(). */
static inline int test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Repeatable random numbers: splitmix64. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#endif
