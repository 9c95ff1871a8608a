/*
 * page.c - see page.h.
 */
#include "tools/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<style>\n"
	"body{font:15px/1.5 sans-serif;max-width:1120px;margin:2em auto;"
	"padding:0 1em;color:#222}\n"
	"h1{font-size:1.6em}h2{font-size:1.2em;margin-top:1.6em}\n"
	"table{border-collapse:collapse}td,th{padding:.15em .9em .15em 0;"
	"text-align:left}td.n,th.n{text-align:right}\n"
	"tr:nth-child(even){background:#f4f4f4}\n"
	".bad{color:#b00020;font-weight:bold}.row{display:flex;gap:3em;"
	"flex-wrap:wrap}svg{max-width:100%;height:auto}\n"
	"</style>\n";

void page_begin(FILE *f, const char *title)
{
	fprintf(f, "%s<title>%s</title></head><body>\n", head, title);
}

void page_end(FILE *f)
{
	fputs("</body></html>\n", f);
}

void page_text(FILE *f, const char *text)
{
	char *tame = strdup(text);
	const char *p;

	if (!tame)
		return;
	text_tame(tame);
	for (p = tame; *p; p++) {
		if (*p == '<' || *p == '>' || *p == '&' || *p == '"')
			fprintf(f, "&#%d;", *p);
		else
			putc(*p, f);
	}
	free(tame);
}
