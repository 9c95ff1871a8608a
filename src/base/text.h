/*
 * text.h - text for a terminal or a log: names from an image, counts.
 */
#ifndef TRAX_BASE_TEXT_H
#define TRAX_BASE_TEXT_H

#include <stdint.h>

struct count_text {
	char s[48];
};

/* "1 error", "2 errors", "0 copies": a number and a regular noun, which is
 * given in the singular. */
struct count_text count_text(uint64_t n, const char *one);

/*
 * Returns a copy in which control characters (U+0000 to U+001F, U+007F to
 * U+009F), line and paragraph separators, backslashes, and bytes that are not
 * UTF-8 are written \ooo, byte by byte in octal.  It is UTF-8 and has one line.
 * The caller frees it; NULL: out of memory.
 */
char *text_escape(const char *name);

/* Makes a line fit in place, without memory: each such byte becomes '?'.
 * Backslashes stay, so that text which was escaped before does not change. */
void text_tame(char *line);

#endif
