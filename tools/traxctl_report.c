/*
 * traxctl_report.c - writes one page in HTML with everything in it: the platter
 * with uses and heat, the requests to the disk, health and advice.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/page.h"
#include "tools/platter_picture.h"
#include "tools/samples.h"
#include "tools/traxctl.h"

#define BAR 620.0		/* width of the bar of time by class, in
				 * pixels */

static const char *const colours[SAMPLE_CLASSES] = {
	"#b03060", "#1f4e9c", "#7aa6e0", "#d2691e", "#909090",
};

struct html {
	FILE *f;
	const struct arguments *a;
	struct sample now;
};

static void row(const struct html *h, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void row(const struct html *h, const char *name, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(h->f, "<tr><th>%s</th><td>", name);
	page_text(h->f, text);
	fputs("</td></tr>\n", h->f);
}

/* ---- What it is ---- */

static void put_facts(const struct html *h)
{
	const struct sample *s = &h->now;
	struct statvfs st = { .f_frsize = 0 };
	char *full = realpath(h->a->path, NULL);
	double unit, rpm = fact_number(s->model, "rpm");

	statvfs(h->a->path, &st);
	unit = (double)st.f_frsize;
	fputs("<table>\n", h->f);
	row(h, "mounted on", "%s", full ? full : h->a->path);
	free(full);
	if (*fact_string(s->model, "profile.model"))
		row(h, "drive", "%s", fact_string(s->model, "profile.model"));
	row(h, "space", "%s of %s free",
	    size_text(unit * (double)st.f_bavail).s,
	    size_text(unit * (double)st.f_blocks).s);
	if (rpm > 0)
		row(h, "turns", "%.1f a minute", rpm);
	row(h, "tracks", "%.0f, %.2f %% of the disk known",
	    fact_number(s->model, "tracks"),
	    100 * fact_number(s->model, "profile.known_share"));
	row(h, "inodes", "%.0f", fact_number(s->stats, "tree.inodes"));
	row(h, "copies", "%s, %s by them",
	    size_text(512 * fact_number(s->stats, "replicas.sectors")).s,
	    count_text((uint64_t)fact_number(s->stats, "replicas.reads_used"),
		       "read").s);
	row(h, "log", "%s, %.0f %% full",
	    count_text((uint64_t)fact_number(s->stats, "log.commits"),
		       "commit").s,
	    fact_number(s->stats, "log.fill_percent"));
	row(h, "scrub", "%s, last ended: %s, next: %s",
	    fact_string(s->scrub, "state"),
	    date_text(fact_number(s->scrub, "ended_seconds")).s,
	    date_text(fact_number(s->scrub, "next_seconds")).s);
	fputs("</table>\n", h->f);
}

/* ---- Requests ---- */

static void put_bar(const struct html *h, const double *service_s, double all)
{
	double at = 0;
	unsigned i;

	fprintf(h->f, "<svg width=\"%.0f\" height=\"34\">\n", BAR);
	for (i = 0; i < SAMPLE_CLASSES; i++) {
		double width = BAR * service_s[i] / all;

		fprintf(h->f, "<rect x=\"%.1f\" y=\"2\" width=\"%.1f\" "
			"height=\"30\" fill=\"%s\"><title>%s</title></rect>\n",
			at, width, colours[i], sample_names[i]);
		at += width;
	}
	fputs("</svg>\n", h->f);
}

/* Shows what the disk's time went to within the last hour. */
static void put_past_hour(const struct html *h)
{
	double service_s[SAMPLE_CLASSES], all = 0;
	double seconds = sample_past_hour(&h->now, service_s);
	unsigned i;

	for (i = 0; i < SAMPLE_CLASSES; i++)
		all += service_s[i];
	fprintf(h->f, "<h2>What the head did %s</h2>\n",
		seconds >= 3600 ? "in the last hour" :
				  "since the mount, less than an hour ago");
	if (all <= 0) {
		fputs("<p>It rested.</p>\n", h->f);
		return;
	}
	put_bar(h, service_s, all);
	fputs("<table><tr><th></th><th>for</th><th class=n>time</th>"
	      "<th class=n>share of what it did</th></tr>\n", h->f);
	for (i = 0; i < SAMPLE_CLASSES; i++)
		fprintf(h->f, "<tr><td style=\"background:%s\">&nbsp;</td>"
			"<td>%s</td><td class=n>%.1f s</td><td class=n>"
			"%.0f %%</td></tr>\n", colours[i], sample_names[i],
			service_s[i], 100 * service_s[i] / all);
	fputs("</table>\n", h->f);
}

static void put_requests(const struct html *h)
{
	double all = 0;
	unsigned i;

	for (i = 0; i < SAMPLE_CLASSES; i++)
		all += h->now.class[i].service_s;
	fputs("<h2>What the disk was asked for since the mount</h2>\n", h->f);
	if (all <= 0) {
		fputs("<p>Nothing has been asked of the disk yet.</p>\n", h->f);
		return;
	}
	fputs("<table><tr><th>for</th><th class=n>requests</th>"
	      "<th class=n>data</th><th class=n>time with the disk</th>"
	      "<th class=n>wait each</th></tr>\n", h->f);
	for (i = 0; i < SAMPLE_CLASSES; i++) {
		const struct class_sample *c = &h->now.class[i];

		fprintf(h->f, "<tr><td>%s</td><td class=n>%.0f</td>"
			"<td class=n>%s</td><td class=n>%.1f s (%.0f %%)</td>"
			"<td class=n>%.2f ms</td></tr>\n", sample_names[i],
			c->requests, size_text(c->bytes).s, c->service_s,
			100 * c->service_s / all, c->requests ?
			1e3 * c->wait_s / c->requests : 0);
	}
	fputs("</table>\n", h->f);
}

/* ---- Health and advice ---- */

static void put_health(const struct html *h)
{
	json_t *s = h->now.stats;
	double errors = fact_number(s, "errors");

	fputs("<h2>Health</h2>\n<ul>\n", h->f);
	if (fact_is_set(s, "failed"))
		fputs("<li class=bad>The file system has failed: nothing more "
		      "is written. See the system's log.</li>\n", h->f);
	else if (fact_is_set(s, "read_only"))
		fputs("<li>Mounted read-only.</li>\n", h->f);
	if (errors)
		fprintf(h->f, "<li class=bad>Damage was met in %s: "
			"<code>traxctl errors</code></li>\n",
			count_text((uint64_t)errors, "place").s);
	else
		fputs("<li>No damage was met.</li>\n", h->f);
	fprintf(h->f, "<li>Retried: %s; written elsewhere: %s.</li>\n",
		count_text((uint64_t)fact_number(s, "queue.retried"),
			   "request").s,
		count_text((uint64_t)fact_number(s, "log.retries"),
			   "log record").s);
	fputs("</ul>\n", h->f);
}

static double wrong_share(const struct html *h, const char *kind)
{
	char path[64];
	double n;

	snprintf(path, sizeof(path), "head.%s.predictions", kind);
	n = fact_number(h->now.model, path);
	snprintf(path, sizeof(path), "head.%s.wrong", kind);
	return n ? fact_number(h->now.model, path) / n : 0;
}

static bool tracks_unknown(const struct html *h)
{
	return fact_number(h->now.model, "profile.known_share") < 0.99;
}

static bool doubted(const struct html *h)
{
	return fact_is_set(h->now.model, "profile.doubted");
}

static bool reads_wrong(const struct html *h)
{
	return wrong_share(h, "reads") > 0.1;
}

static bool copies_off(const struct html *h)
{
	return fact_number(h->now.stats, "replicas.most") < 1;
}

static bool many_commits(const struct html *h)
{
	double all = 0;
	unsigned i;

	for (i = 0; i < SAMPLE_CLASSES; i++)
		all += h->now.class[i].service_s;
	return all > 10 && h->now.class[0].service_s > all / 3;
}

static bool nearly_full(const struct html *h)
{
	return fact_number(h->now.stats, "space.free") <
	       0.1 * fact_number(h->now.stats, "space.sectors");
}

static bool never_scrubbed(const struct html *h)
{
	return fact_number(h->now.scrub, "ended_seconds") <= 0;
}

static const struct {
	bool (*holds)(const struct html *h);
	const char *words;
} advice[] = {
	{ tracks_unknown, "Not all tracks are known: files are laid out by "
	  "guess, and the head is not predicted there. It is measured while "
	  "the disk is idle (mount option refine=1)." },
	{ doubted, "The profile does not fit the drive and is not used: is it "
	  "another drive than it was made for? traxtract measures anew." },
	{ reads_wrong, "More than a tenth of the predictions for reads fail: "
	  "the host answers late, or the drive has changed. Gaps are used "
	  "less." },
	{ many_commits, "More than a third of the disk's time goes to commits: "
	  "some program calls fsync often. Batching its changes helps most." },
	{ nearly_full, "Less than a tenth is free: new files are cut into more "
	  "pieces, and copies give way." },
	{ copies_off, "Copies are off (replicas=0): what is read together and "
	  "lies apart stays apart, and damage cannot be healed from them." },
	{ never_scrubbed, "No scrub has ended yet: damage that nobody reads is "
	  "not known. traxctl scrub start" },
};

static void put_advice(const struct html *h)
{
	unsigned n = 0;
	size_t i;

	fputs("<h2>What would be better, and why</h2>\n<ul>\n", h->f);
	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		if (!advice[i].holds(h))
			continue;
		fprintf(h->f, "<li>%s</li>\n", advice[i].words);
		n++;
	}
	if (!n)
		fputs("<li>Nothing that these figures show.</li>\n", h->f);
	fputs("</ul>\n", h->f);
}

static int put_page(struct html *h)
{
	char date[32];
	time_t t = time(NULL);

	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", localtime(&t));
	page_begin(h->f, "traxfs report");
	fprintf(h->f, "<h1>traxfs, %s</h1>\n<div class=row>", date);
	put_facts(h);
	platter_svg(h->f, h->now.platter, h->now.heat);
	fputs("</div>\n", h->f);
	put_health(h);
	put_advice(h);
	put_past_hour(h);
	put_requests(h);
	if (h->now.heat) {
		fputs("<h2>The last accesses</h2>\n", h->f);
		heat_svg(h->f, h->now.heat);
	}
	page_end(h->f);
	return ferror(h->f) ? -1 : 0;
}

int run_report(const struct arguments *a)
{
	struct html h = { .a = a };
	int rc;

	if (sample_take(a->path, &h.now))
		return complain(a, "trax.stats");
	json_decref(h.now.heat);
	h.now.heat = read_heat(a->path);
	h.f = a->output ? fopen(a->output, "w") : stdout;
	rc = h.f ? put_page(&h) : -1;
	if (h.f && h.f != stdout && fclose(h.f))
		rc = -1;
	sample_drop(&h.now);
	return rc ? complain(a, a->output ? a->output : "output") :
		    EXIT_SUCCESS;
}
