/*
 * facts.h - reads values from the JSON objects of the trax.* attributes.
 */
#ifndef TRAX_TOOLS_FACTS_H
#define TRAX_TOOLS_FACTS_H

#include <jansson.h>
#include <stdbool.h>

/* The value at "outer.inner"; NULL: there is none. */
json_t *fact_at(json_t *object, const char *path);

/* The same as a number, a text or a boolean; 0, empty or false when there is
 * none. */
double fact_number(json_t *object, const char *path);
const char *fact_string(json_t *object, const char *path);
bool fact_is_set(json_t *object, const char *path);

/* The number at a place of an array; 0: there is none. */
double sample_number(json_t *array, size_t i);

/* Returns what makes the text that is printed next "bold" or "bad"; "" ends
 * that.  It is empty where the output is no terminal, or NO_COLOR
 * (no-color.org) is set. */
const char *mark(const char *how);

#endif
