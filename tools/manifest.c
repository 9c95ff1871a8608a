/*
 * manifest.c - lines of "sha256:DIGEST PATH", sorted by path.
 */
#include "tools/manifest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "sha256:"
#define DIGITS (2 * VERITY_DIGEST_BYTES)

struct manifest_line {
	char *text;		/* the digits; the path is behind them */
	bool seen;
};

struct manifest {
	int64_t begun_seconds;
	struct manifest_line *line;
	size_t n, room;
};

static const char *path_of(const struct manifest_line *line)
{
	return line->text + DIGITS + 1;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(path_of(a), path_of(b));
}

/* Takes the text over. */
static int add_line(struct manifest *manifest, char *text)
{
	struct manifest_line *more;

	if (manifest->n == manifest->room) {
		manifest->room = manifest->room ? 2 * manifest->room : 256;
		more = reallocarray(manifest->line, manifest->room,
				    sizeof(*more));
		if (!more) {
			free(text);
			return -ENOMEM;
		}
		manifest->line = more;
	}
	manifest->line[manifest->n++] = (struct manifest_line){ .text = text };
	return 0;
}

static int read_line(struct manifest *manifest, const char *text)
{
	const size_t prefix = strlen(PREFIX);
	char *copy;

	if (strncmp(text, PREFIX, prefix) ||
	    strspn(text + prefix, "0123456789abcdef") != DIGITS ||
	    text[prefix + DIGITS] != ' ')
		return -EINVAL;
	copy = strdup(text + prefix);
	return copy ? add_line(manifest, copy) : -ENOMEM;
}

static int read_lines(struct manifest *manifest, FILE *f)
{
	const size_t head = strlen(MANIFEST_HEAD);
	char *text = NULL;
	size_t room = 0;
	int rc = -EINVAL;

	if (getline(&text, &room, f) > 0 &&
	    !strncmp(text, MANIFEST_HEAD, head)) {
		manifest->begun_seconds = strtoll(text + head, NULL, 10);
		rc = 0;
	}
	while (!rc && getline(&text, &room, f) > 0) {
		text[strcspn(text, "\n")] = '\0';
		rc = read_line(manifest, text);
	}
	if (!rc && ferror(f))
		rc = -EIO;
	free(text);
	return rc;
}

int manifest_open(const char *path, struct manifest **out)
{
	struct manifest *manifest = calloc(1, sizeof(*manifest));
	FILE *f = manifest ? fopen(path, "re") : NULL;
	int rc = manifest ? -errno : -ENOMEM;

	if (f) {
		rc = read_lines(manifest, f);
		fclose(f);
	}
	if (rc) {
		manifest_close(manifest);
		return rc;
	}
	qsort(manifest->line, manifest->n, sizeof(*manifest->line),
	      compare_paths);
	*out = manifest;
	return 0;
}

void manifest_close(struct manifest *manifest)
{
	size_t i;

	if (!manifest)
		return;
	for (i = 0; i < manifest->n; i++)
		free(manifest->line[i].text);
	free(manifest->line);
	free(manifest);
}

static struct manifest_line *find_line(const struct manifest *manifest,
				       const char *path)
{
	size_t lo = 0, hi = manifest->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strcmp(path_of(&manifest->line[mid]), path);

		if (!order)
			return &manifest->line[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

enum manifest_verdict manifest_judge(struct manifest *manifest,
				     const char *path,
				     const uint8_t digest[VERITY_DIGEST_BYTES],
				     int64_t seconds)
{
	struct manifest_line *line = find_line(manifest, path);
	char digits[DIGITS + 1];
	unsigned i;

	if (!line)
		return MANIFEST_NEW;
	line->seen = true;
	for (i = 0; i < VERITY_DIGEST_BYTES; i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	if (!strncmp(digits, line->text, DIGITS))
		return MANIFEST_SAME;
	return seconds >= manifest->begun_seconds ? MANIFEST_CHANGED :
						    MANIFEST_ROTTED;
}

void manifest_print_missing(const struct manifest *manifest, FILE *out)
{
	size_t i;

	for (i = 0; i < manifest->n; i++)
		if (!manifest->line[i].seen)
			fprintf(out, "missing %s\n",
				path_of(&manifest->line[i]));
}
