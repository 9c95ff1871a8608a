/*
 * named.h - the drives that programs take by name.
 */
#ifndef TRAX_SIM_NAMED_H
#define TRAX_SIM_NAMED_H

#include "diskmodel/spec.h"

/*
 * The specification at a path; "random:SEED[,KEY=VALUE...]", one made up
 * (specgen.h); or the name of one that comes with traxfs: "modern".
 * spec_free.  The errors of spec_read and specgen_make, said through msg.
 */
int named_spec(const char *name, struct spec **spec);

#endif
