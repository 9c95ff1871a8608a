/*
 * extract_state.h - what traxtract must not lose: the settings it has changed
 * and what it has measured so far.
 *
 * One file, replaced as a whole and synced: lines of text, then the record of
 * the profile (diskmodel/profile.h), then the state of the map
 * (extract/track/map.h).
 */
#ifndef TRAX_TOOLS_EXTRACT_STATE_H
#define TRAX_TOOLS_EXTRACT_STATE_H

#include <jansson.h>

#include "diskmodel/profile.h"
#include "extract/drive/settings.h"

struct extract_state {
	struct settings settings;
	struct profile *profile;	/* owned; NULL: nothing measured */
	json_t *map;			/* map_save's; NULL: none */
};

/* The default path of the state of a device; the caller frees it. */
char *extract_state_path(const struct identity *identity);

/* -ENOENT: there is none.  -EPERM: others could have written it.  -EUCLEAN:
 * it is no such file.  The last two are reported. */
int extract_state_read(const char *path, struct extract_state *state);

/* Reported through msg. */
int extract_state_write(const char *path, const struct extract_state *state);

/* What was measured is forgotten, the settings are not. */
void extract_state_forget(struct extract_state *state);
void extract_state_free(struct extract_state *state);

#endif
