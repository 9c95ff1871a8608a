/*
 * platter_picture.h - a platter in SVG: zones, what lies where, what is hot.
 */
#ifndef TRAX_TOOLS_PLATTER_PICTURE_H
#define TRAX_TOOLS_PLATTER_PICTURE_H

#include <jansson.h>
#include <stdio.h>

/* Of the values of trax.platter and trax.heat; heat NULL: it is left out. */
void platter_svg(FILE *f, json_t *platter, json_t *heat);

#endif
