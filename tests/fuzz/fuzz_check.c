/*
 * fuzz_check.c - any bytes as damage (tests/rig/mutate.c) to a small file
 * system: the check ends, writes nothing unasked, and what a repair calls good
 * is silent afterwards.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/msg.h"
#include "tests/rig/mutate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct media *content;

static void say_nothing(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct lab lab;

	(void)argc;
	(void)argv;
	msg_set_sink(say_nothing, NULL);
	lab_init(&lab);
	content = sim_content(lab.sim);
	lab_fini(&lab);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct lab lab;
	const char *why;

	lab_init_from(&lab, content);
	mutate(&lab, data, bytes, 8);
	why = mutate_check(&lab);
	lab_fini(&lab);
	if (why) {
		fprintf(stderr, "fuzz_check: %s\n", why);
		abort();
	}
	return 0;
}
