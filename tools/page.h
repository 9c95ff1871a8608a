/*
 * page.h - pages in HTML that need no other file.
 */
#ifndef TRAX_TOOLS_PAGE_H
#define TRAX_TOOLS_PAGE_H

#include <stdio.h>

/* The title is the program's own. */
void page_begin(FILE *f, const char *title);
void page_end(FILE *f);

/* Prints text that comes from a disk or a user, with what HTML needs
 * escaped. */
void page_text(FILE *f, const char *text);

#endif
