/*
 * peers_page.h - what `traxbench peers` measured, as a page in HTML.
 */
#ifndef TRAX_TOOLS_PEERS_PAGE_H
#define TRAX_TOOLS_PEERS_PAGE_H

#include <jansson.h>

/* Writes the page of a report as bench/peers_report.h describes it.  0 or a
 * negative errno, printed. */
int peers_page_write(json_t *report, const char *path);

#endif
