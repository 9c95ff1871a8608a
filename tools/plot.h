/*
 * plot.h - a profile as a picture (SVG).
 */
#ifndef TRAX_TOOLS_PLOT_H
#define TRAX_TOOLS_PLOT_H

#include <stdio.h>

#include "diskmodel/profile.h"

/* Sectors per track and skew over LBN, the seek curve, and access time against
 * distance as the profile predicts it.  -EIO, -ENOMEM. */
int plot_write(const struct profile *profile, FILE *f);

#endif
