/*
 * take.h - reads values out of a JSON file that has not been checked.
 *
 * The first error is reported, with file, key and reason; after it every
 * function does nothing. Optional values that are missing leave *out as it is.
 *
 * Units: angles as in geom.h.
 */
#ifndef TRAX_DISKMODEL_TAKE_H
#define TRAX_DISKMODEL_TAKE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diskmodel/geom.h"

/* The longest time that is taken, in milliseconds: 100 s, as in profile.c. */
#define TAKE_MAX_MS 1e5

/* The place in the file, and whether an error was found. */
struct take {
	const char *file;
	char where[48];		/* "zones[3]." */
	int err;
};

void take_wrong(struct take *f, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void take_no_memory(struct take *f);
/* Zeroed; NULL after an error. */
void *take_memory(struct take *f, size_t n, size_t each);

/* Refuses keys that are not in the list, which ends with NULL. */
void take_keys(struct take *f, const json_t *obj, const char *const *keys);
/* A member; when it is missing, NULL, and an error if `needed`. */
json_t *take_member(struct take *f, const json_t *obj, const char *key,
		    bool needed);

double take_value_number(struct take *f, const char *key, const json_t *v,
			 double lo, double hi);
uint64_t take_value_count(struct take *f, const char *key, const json_t *v,
			  uint64_t lo, uint64_t hi);
int64_t take_value_signed(struct take *f, const char *key, const json_t *v,
			  int64_t lo, int64_t hi);
/* Reads revolutions: a number, or a string "a/b", which is exact. */
angle take_value_angle(struct take *f, const char *key, const json_t *v);

void take_number(struct take *f, const json_t *obj, const char *key,
		 double hi, double *out);
void take_ms(struct take *f, const json_t *obj, const char *key,
	     uint64_t *out_ns);
void take_count(struct take *f, const json_t *obj, const char *key,
		uint32_t lo, uint32_t hi, uint32_t *out);
void take_signed(struct take *f, const json_t *obj, const char *key,
		 int64_t lo, int64_t hi, int64_t *out);
void take_bool(struct take *f, const json_t *obj, const char *key, bool *out);
void take_angle(struct take *f, const json_t *obj, const char *key,
		angle *out);
/* Reads a string of less than `room` bytes. */
void take_string(struct take *f, const json_t *obj, const char *key,
		 char *out, size_t room);
/* Reads one of the words of a list that ends with NULL; *out: its index. */
void take_word(struct take *f, const json_t *obj, const char *key,
	       const char *const *words, unsigned *out);

/* A member that is an object, its keys checked; NULL when absent. */
const json_t *take_object(struct take *f, const json_t *obj, const char *key,
			  const char *const *keys);
/* A member that is an array; NULL when absent. */
const json_t *take_array(struct take *f, const json_t *obj, const char *key);

/* Parses a text or file as JSON; NULL, with *err, when it is none. */
json_t *take_text(const char *text, const char *name, int *err);
json_t *take_file(const char *path, int *err);

#endif
