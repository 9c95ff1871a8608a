/*
 * named.h - the drives that programs take by name.
 */
#ifndef TRAX_SIM_NAMED_H
#define TRAX_SIM_NAMED_H

#include "diskmodel/spec.h"

/*
 * The specification in a file; "random:SEED[,KEY=VALUE...]", a drive that is
 * made up (specgen.h); or the name of one that comes with traxfs, as "modern".
 * Free it with spec_free. The errors are those of spec_read and specgen_make,
 * with a message.
 */
int named_spec(const char *name, struct spec **spec);

#endif
