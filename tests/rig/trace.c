/*
 * trace.c - see trace.h.
 */
#include "tests/rig/trace.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const trace_types[FS_OP_TYPES] = {
	[FS_LOOKUP] = "lookup",	      [FS_FORGET] = "forget",
	[FS_GETATTR] = "getattr",     [FS_SETATTR] = "setattr",
	[FS_READLINK] = "readlink",   [FS_MKNOD] = "mknod",
	[FS_MKDIR] = "mkdir",	      [FS_SYMLINK] = "symlink",
	[FS_TMPFILE] = "tmpfile",     [FS_LINK] = "link",
	[FS_UNLINK] = "unlink",	      [FS_RMDIR] = "rmdir",
	[FS_RENAME] = "rename",	      [FS_OPEN] = "open",
	[FS_RELEASE] = "release",     [FS_READ] = "read",
	[FS_WRITE] = "write",	      [FS_FSYNC] = "fsync",
	[FS_SYNCFS] = "syncfs",	      [FS_READDIR] = "readdir",
	[FS_STATFS] = "statfs",	      [FS_SETXATTR] = "setxattr",
	[FS_GETXATTR] = "getxattr",   [FS_LISTXATTR] = "listxattr",
	[FS_REMOVEXATTR] = "removexattr", [FS_FALLOCATE] = "fallocate",
	[FS_COPY_RANGE] = "copy",     [FS_SEEK] = "seek",
};

static void parse_failed(const char *line)
{
	fprintf(stderr, "trace: what is this: %s\n", line);
	abort();
}

static enum fs_op_type parse_type(const char *word)
{
	for (unsigned i = 0; i < FS_OP_TYPES; i++)
		if (trace_types[i] && !strcmp(trace_types[i], word))
			return i;
	parse_failed(word);
	return FS_OP_TYPES;
}

/* %XX stands for a byte. */
static char *parse_name(const char *word)
{
	char *name = calloc(1, strlen(word) + 1);
	unsigned n = 0, byte;

	assert(name);
	for (; *word; word++) {
		if (*word == '%' && sscanf(word + 1, "%2x", &byte) == 1) {
			name[n++] = (char)byte;
			word += 2;
		} else {
			name[n++] = *word;
		}
	}
	return name;
}

static void parse_field(struct trace_event *e, char letter, const char *value)
{
	const uint64_t n = strtoull(value, NULL, 10);
	struct fs_op *op = &e->op;

	switch (letter) {
	case 't': e->ms = n; break;
	case 'i': op->ino = e->ino = n; break;
	case 'I': op->ino2 = n; break;
	case 'n': op->name = parse_name(value); break;
	case 'N': op->name2 = parse_name(value); break;
	case 'u': op->uid = (uint32_t)n; break;
	case 'g': op->gid = (uint32_t)n; break;
	case 'm': op->mode = e->mode = (uint32_t)n; break;
	case 'k': op->umask = (uint32_t)n; break;
	case 'd': op->rdev = (uint32_t)n; break;
	case 'O': op->opens = true; break;
	case 'f': op->flags = (uint32_t)n; break;
	case 'h': op->handle = e->handle = n; break;
	case 'o': op->offset = n; break;
	case 'p': op->offset2 = n; break;
	case 's': op->size = n; break;
	case 'x': op->data = parse_name(value); break;
	case 'P': op->plus = true; break;
	case 'M': op->attr.mode = (uint32_t)n; break;
	case 'U': op->attr.uid = (uint32_t)n; break;
	case 'G': op->attr.gid = (uint32_t)n; break;
	case 'S': op->attr.size = n; break;
	case 'c': op->rc = -(int)n; break;
	case 'r': op->result = n; break;
	default: parse_failed(value - 1);
	}
}

static void parse_line(struct trace *trace, char *line)
{
	struct trace_event *e;
	char *word, *rest;

	trace->event = realloc(trace->event,
			       (trace->events + 1) * sizeof(*e));
	assert(trace->event);
	e = &trace->event[trace->events++];
	*e = (struct trace_event){ .kind = (unsigned char)line[0] };
	if (!strchr("><+@", line[0]) || line[1] != ' ')
		parse_failed(line);
	word = strtok_r(line + 2, " \n", &rest);
	for (; word; word = strtok_r(NULL, " \n", &rest)) {
		if (isdigit((unsigned char)word[0]))
			e->number = (unsigned)strtoul(word, NULL, 10);
		else if (word[0] == '=')
			e->op.type = parse_type(word + 1);
		else
			parse_field(e, word[0], word + 1);
	}
}

/* What an operation ended with is known when it is submitted again. */
static void join_ends(struct trace *trace)
{
	unsigned *at = calloc(trace->events + 1, sizeof(*at));

	assert(at);
	for (unsigned i = 0; i < trace->events; i++) {
		struct trace_event *e = &trace->event[i];

		if (e->kind == TRACE_SUBMIT) {
			assert(e->number < trace->events);
			at[e->number] = i;
			e->op.rc = -EINPROGRESS;
			trace->ops++;
		} else if (e->kind == TRACE_END) {
			struct trace_event *begun;

			assert(e->number < trace->events);
			begun = &trace->event[at[e->number]];
			assert(begun->number == e->number);
			begun->op.rc = e->op.rc;
			begun->op.result = e->op.result;
			begun->ino = e->ino;
			begun->mode = e->mode;
		}
	}
	free(at);
}

struct trace *trace_read(const char *path)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;

	if (!file || !trace) {
		perror(path);
		abort();
	}
	while (getline(&line, &room, file) > 0)
		parse_line(trace, line);
	free(line);
	fclose(file);
	join_ends(trace);
	return trace;
}

void trace_free(struct trace *trace)
{
	for (unsigned i = 0; i < trace->events; i++) {
		free((char *)trace->event[i].op.name);
		free((char *)trace->event[i].op.name2);
		free((void *)trace->event[i].op.data);
	}
	free(trace->event);
	free(trace);
}
