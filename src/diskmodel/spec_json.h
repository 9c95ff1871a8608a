/*
 * spec_json.h - the functions with which specifications and profiles are read
 * and written. For spec.h and profile.h only.
 */
#ifndef TRAX_DISKMODEL_SPEC_JSON_H
#define TRAX_DISKMODEL_SPEC_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "diskmodel/spec.h"
#include "diskmodel/take.h"

/* `partial`: a profile, in which what was not measured is missing and becomes
 * 0. */
int spec_take(const json_t *root, const char *name, bool partial,
	      struct spec **spec);

/* Reads the key "geometry": tracks as they were found; see geom_build.h. */
struct geom *spec_take_geom(struct take *f, const json_t *obj,
			    uint64_t period_ns);

/* Writes all keys of a specification, for the middle of an object: no braces,
 * and no comma at the end. */
void spec_write_keys(const struct spec *spec, FILE *f);
void spec_write_geom(const struct geom *geom, FILE *f);
void spec_write_string(FILE *f, const char *s);

#endif
