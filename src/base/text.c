/*
 * text.c - decodes UTF-8 strictly (RFC 3629) and escapes the rest; counts with
 * their nouns.
 */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of bytes of the character at p, and its code in *c; 0: it is not UTF-8
 * (RFC 3629). */
static unsigned utf8_next(const unsigned char *p, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 :
			   p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 :
			   p[0] < 0xf5 ? 4 : 0;

	*c = n > 1 ? p[0] & (0x7fu >> n) : p[0];
	/* The zero at the end of the string is no continuation byte either. */
	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	if (*c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
		return 0;
	return n;
}

static bool is_obeyed(uint32_t c)
{
	return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
	       c == 0x2029;
}

char *text_escape(const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	char *out = malloc(4 * strlen(name) + 1), *to = out;

	while (out && *p) {
		uint32_t c;
		unsigned n = utf8_next(p, &c);
		const bool keep = n && !is_obeyed(c) && c != '\\';

		for (n = n ? n : 1; n; n--, p++) {
			if (keep)
				*to++ = (char)*p;
			else
				to += sprintf(to, "\\%03o", *p);
		}
	}
	if (out)
		*to = '\0';
	return out;
}

void text_tame(char *line)
{
	unsigned char *p = (unsigned char *)line;

	while (*p) {
		uint32_t c;
		unsigned n = utf8_next(p, &c);
		const bool keep = n && !is_obeyed(c);

		for (n = n ? n : 1; n; n--, p++)
			if (!keep)
				*p = '?';
	}
}

struct count_text count_text(uint64_t n, const char *one)
{
	struct count_text text;
	size_t bytes = strlen(one);
	bool ies = n != 1 && bytes && one[bytes - 1] == 'y';

	snprintf(text.s, sizeof(text.s), "%llu %.*s%s", (unsigned long long)n,
		 (int)(bytes - ies), one, ies ? "ies" : n != 1 ? "s" : "");
	return text;
}
