/*
 * text.h - names from an image, made fit for a terminal or a log.
 */
#ifndef TRAX_BASE_TEXT_H
#define TRAX_BASE_TEXT_H

/*
 * A copy in which control characters (U+0000 to U+001F, U+007F to U+009F), line
 * and paragraph separators, backslashes, and bytes that are not UTF-8 are
 * written \ooo, byte by byte in octal.  It is UTF-8 and has one line.  The
 * caller frees it; NULL: out of memory.
 */
char *text_escape(const char *name);

/* The same in place, without memory: each such byte becomes '?'.  Backslashes
 * stay, so that what has been escaped already is not changed. */
void text_tame(char *line);

#endif
