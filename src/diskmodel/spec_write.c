/*
 * spec_write.c - writes a specification as JSON, with every key.
 *
 * Angles have ten decimals and times six of a millisecond (nine for the
 * revolution): finer than what is stored, so that nothing is lost when it is
 * read back.
 */
#include <errno.h>
#include <inttypes.h>

#include "diskmodel/spec_json.h"

static const char *const orders[] = { "cylinder", "cylinder-serpentine",
				      "serpentine" };
static const char *const policies[] = { "fcfs", "sstf", "sptf" };

static const char *const directions[] = { "alternate", "alternate-outwards",
					  "inwards", "outwards" };

static double revs(angle a)
{
	return a / 4294967296.0;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static const char *yes(bool b)
{
	return b ? "true" : "false";
}

void spec_write_string(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			fprintf(f, "\\u%04x", (unsigned)*s);
		else
			putc(*s, f);
	}
	putc('"', f);
}

static void write_list(FILE *f, const char *key, const struct spec_list *list)
{
	if (!list->n)
		return;
	fprintf(f, ",\n      \"%s\": [", key);
	for (size_t i = 0; i < list->n; i++)
		fprintf(f, "%s%" PRIu64, i ? ", " : "", list->v[i]);
	putc(']', f);
}

static void write_around(FILE *f, const struct spec *s,
			 const struct spec_zone *z)
{
	uint32_t i = 1;

	while (i < s->surfaces && z->around[i] == z->around[0])
		i++;
	if (i == s->surfaces) {
		fprintf(f, "%u", z->around[0]);
		return;
	}
	for (i = 0; i < s->surfaces; i++)
		fprintf(f, "%s%u", i ? ", " : "[", z->around[i]);
	putc(']', f);
}

static void write_zone(FILE *f, const struct spec *s,
		       const struct spec_zone *z)
{
	fprintf(f, "    { \"cylinders\": [%u, %u], \"sectors_per_track\": ",
		z->first_cylinder, z->last_cylinder);
	write_around(f, s, z);
	for (uint32_t i = 0; z->surface_order && i < s->surfaces; i++)
		fprintf(f, "%s%u%s", i ? ", " : ",\n      \"surface_order\": [",
			z->surface_order[i], i + 1 < s->surfaces ? "" : "]");
	fprintf(f, ",\n      \"track_skew\": %.10f, \"cylinder_skew\": %.10f",
		revs(z->track_skew), revs(z->cylinder_skew));
	if (s->order == SPEC_SERPENTINE)
		fprintf(f, ", \"group_skew\": %.10f", revs(z->group_skew));
	if (z->start_given)
		fprintf(f, ",\n      \"start\": %.10f", revs(z->start));
	if (z->reserved)
		fprintf(f, ",\n      \"reserved\": %u", z->reserved);
	if (z->spares_zone || z->spares_cylinder || z->spares_track)
		fprintf(f, ",\n      \"spares\": { \"zone\": %u, "
			"\"cylinder\": %u, \"track\": %u }",
			z->spares_zone, z->spares_cylinder, z->spares_track);
	write_list(f, "slips", &z->slips);
	write_list(f, "slipped_tracks", &z->slipped_tracks);
	fprintf(f, " }");
}

static void write_noise(FILE *f, const struct spec_noise *n)
{
	if (!n->normal_ns && !n->exponential_ns && n->late <= 0)
		return;
	fprintf(f, "  \"noise\": { \"normal_ms\": %.6f, "
		"\"exponential_ms\": %.6f, \"late\": %.6f, "
		"\"late_min_ms\": %.6f, \"late_max_ms\": %.6f },\n",
		ms(n->normal_ns), ms(n->exponential_ns), n->late,
		ms(n->late_min_ns), ms(n->late_max_ns));
}

static void write_mechanics(FILE *f, const struct spec *s)
{
	const struct service_mech *m = &s->mech;

	if (m->period_ps)
		fprintf(f, "  \"revolution_ms\": %.9f,\n",
			(double)m->period_ps / 1e9);
	fprintf(f, "  \"head_switch_ms\": %.6f,\n", ms(m->head_switch_ns));
	fprintf(f, "  \"write_settle_ms\": %.6f,\n", ms(m->write_settle_ns));
	fprintf(f, "  \"overhead\": { \"read_ms\": %.6f, \"write_ms\": %.6f, "
		"\"hit_ms\": %.6f },\n",
		ms(s->read_overhead_ns), ms(s->write_overhead_ns),
		ms(s->hit_overhead_ns));
	fprintf(f, "  \"zero_latency\": { \"read\": %s, \"write\": %s },\n",
		yes(m->zero_latency_read), yes(m->zero_latency_write));
	fprintf(f, "  \"bus_mb_per_s\": %.6f,\n",
		(double)m->bus_bytes_per_s / 1e6);
	fprintf(f, "  \"jitter\": { \"seek_ms\": %.6f, "
		"\"overhead_ms\": %.6f },\n",
		ms(s->seek_jitter_ns), ms(s->overhead_jitter_ns));
	write_noise(f, &s->noise);
	if (!m->seek_n)
		return;
	fprintf(f, "  \"seek\": [");
	for (uint32_t i = 0; i < m->seek_n; i++)
		fprintf(f, "%s[%u, %.6f]", !i ? "\n    " :
			i % 5 ? ", " : ",\n    ", m->seek[i].cylinders,
			ms(m->seek[i].ns));
	fprintf(f, "\n  ],\n");
}

static void write_electronics(FILE *f, const struct spec *s)
{
	fprintf(f, "  \"cache\": { \"segments\": %u", s->cache_segments);
	if (s->segment_lbns)
		fprintf(f, ", \"segment_lbns\": %u", s->segment_lbns);
	fprintf(f, ", \"read_ahead_lbns\": %u, \"read_ahead_moves\": %s, "
		"\"write_lbns\": %u },\n", s->read_ahead_lbns,
		s->read_ahead_moves ? "true" : "false", s->write_cache_lbns);
	fprintf(f, "  \"queue\": { \"policy\": \"%s\", \"depth\": %u },\n",
		policies[s->policy], s->depth);
	fprintf(f, "  \"power\": { \"idle_w\": %.3f, \"active_w\": %.3f, "
		"\"seek_w\": %.3f },\n", s->idle_w, s->active_w, s->seek_w);
}

static void write_zones(FILE *f, const struct spec *spec)
{
	fprintf(f, "  \"zones\": [\n");
	for (size_t i = 0; i < spec->zones_n; i++) {
		write_zone(f, spec, &spec->zones[i]);
		fprintf(f, i + 1 < spec->zones_n ? ",\n" : "\n  ]");
	}
	for (size_t i = 0; i < spec->remaps_n; i++) {
		const struct spec_remap *r = &spec->remaps[i];

		fprintf(f, "%s    { \"lbn\": %" PRIu64 ", \"lbns\": %u, "
			"\"cylinder\": %u, \"surface\": %u, \"sector\": %u }",
			i ? ",\n" : ",\n  \"remaps\": [\n", r->lbn, r->lbns,
			r->cylinder, r->surface, r->sector);
	}
	fprintf(f, "%s", spec->remaps_n ? "\n  ]" : "");
}

void spec_write_keys(const struct spec *spec, FILE *f)
{
	fprintf(f, "  \"name\": ");
	spec_write_string(f, spec->name);
	fprintf(f, ",\n  \"logical_bytes\": %u, \"physical_bytes\": %u,\n",
		spec->logical_bytes, spec->physical_bytes);
	if (spec->lbns)
		fprintf(f, "  \"lbns\": %" PRIu64 ",\n", spec->lbns);
	if (!spec->geom)
		fprintf(f, "  \"surfaces\": %u, \"order\": \"%s\",\n",
			spec->surfaces, orders[spec->order]);
	if (!spec->geom && spec->order == SPEC_SERPENTINE)
		fprintf(f, "  \"group_cylinders\": %u, "
			"\"alternate_surfaces\": %s, \"direction\": \"%s\",\n",
			spec->group_cylinders, yes(spec->alternate_surfaces),
			directions[spec->direction]);
	write_mechanics(f, spec);
	write_electronics(f, spec);
	if (spec->geom)
		spec_write_geom(spec->geom, f);
	else
		write_zones(f, spec);
}

int spec_write(const struct spec *spec, FILE *f)
{
	fprintf(f, "{\n");
	spec_write_keys(spec, f);
	fprintf(f, "\n}\n");
	return ferror(f) ? -EIO : 0;
}
