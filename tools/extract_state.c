/*
 * extract_state.c - a new file beside the old, synced, then renamed over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"
#include "tools/extract_state.h"

#define HEAD "traxtract-state 1\n"
#define FOLDER "/var/lib/traxfs"
/* A larger file is none of ours. */
#define MOST_BYTES (256u << 20)
#define TEXT_BYTES 8192u	/* settings as text, at most */

char *extract_state_path(const struct identity *identity)
{
	const char *folder = ".";
	char *path;

	if (!geteuid() && (!mkdir(FOLDER, 0700) || errno == EEXIST))
		folder = FOLDER;
	if (asprintf(&path, "%s/traxtract-%s-%s.state", folder, identity->name,
		     identity->serial[0] ? identity->serial : "0") < 0)
		return NULL;
	for (char *c = path + strlen(folder) + 1; *c; c++) {
		if (*c == '/' || *c == ' ')
			*c = '_';
	}
	return path;
}

/* ---- Reading ---- */

static void *take_bytes(FILE *f, size_t bytes)
{
	void *buf = bytes <= MOST_BYTES ? malloc(bytes + 1) : NULL;

	if (buf && fread(buf, 1, bytes, f) == bytes)
		return buf;
	free(buf);
	return NULL;
}

static int take_record(FILE *f, size_t bytes, struct profile **profile)
{
	void *buf = take_bytes(f, bytes);
	int err = buf ? profile_decode(buf, bytes, profile) : -EUCLEAN;

	free(buf);
	return err;
}

static int take_lines(FILE *f, const char *path, struct extract_state *state)
{
	char line[512];
	size_t bytes;
	int err = 0;

	if (!fgets(line, sizeof(line), f) || strcmp(line, HEAD)) {
		msg_error("%s: not a state of traxtract", path);
		return -EUCLEAN;
	}
	while (!err && fgets(line, sizeof(line), f)) {
		if (settings_parse(&state->settings, line))
			continue;
		if (!state->profile && sscanf(line, "profile %zu", &bytes) == 1)
			err = take_record(f, bytes, &state->profile);
		else if (!state->map && !strcmp(line, "map\n"))
			state->map = json_loadf(f, 0, NULL);
	}
	return err;
}

int extract_state_read(const char *path, struct extract_state *state)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), err;
	struct stat st;
	FILE *f;

	*state = (struct extract_state){ 0 };
	if (fd < 0)
		return -errno;
	/* The state says what is to be written where, so only a file of our own
	 * counts. */
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 022)) {
		msg_error("%s: written by somebody else, not used", path);
		close(fd);
		return -EPERM;
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	err = take_lines(f, path, state);
	fclose(f);
	return err;
}

/* ---- Writing ---- */

static int put(FILE *f, const struct extract_state *state)
{
	char text[TEXT_BYTES];
	size_t bytes = 0;
	void *record = NULL;
	int err = 0;

	settings_text(&state->settings, text, sizeof(text));
	fprintf(f, HEAD "%s", text);
	if (state->profile) {
		err = profile_encode(state->profile, &record, &bytes);
		if (err)
			return err;
		fprintf(f, "profile %zu\n", bytes);
		fwrite(record, 1, bytes, f);
		free(record);
	}
	if (state->map) {
		fprintf(f, "map\n");
		if (json_dumpf(state->map, f, JSON_COMPACT))
			return -EIO;
	}
	if (fflush(f) || fsync(fileno(f)))
		return -errno;
	/* What did not fit before may be forgotten by now. */
	return ferror(f) ? -EIO : 0;
}

static void sync_folder(const char *path)
{
	char *folder = strdup(path), *slash;
	int fd;

	if (!folder)
		return;
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(folder);
}

int extract_state_write(const char *path, const struct extract_state *state)
{
	char *fresh = NULL;
	FILE *f = NULL;
	int fd = -1, err = 0;

	if (asprintf(&fresh, "%s.new", path) < 0)
		return -ENOMEM;
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd >= 0)
		f = fdopen(fd, "w");
	err = f ? put(f, state) : -errno;
	if (f && fclose(f) && !err)
		err = -EIO;
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		msg_error("%s: %s", path, strerror(-err));
	else
		sync_folder(path);
	free(fresh);
	return err;
}

void extract_state_forget(struct extract_state *state)
{
	profile_free(state->profile);
	json_decref(state->map);
	state->profile = NULL;
	state->map = NULL;
}

void extract_state_free(struct extract_state *state)
{
	extract_state_forget(state);
	*state = (struct extract_state){ 0 };
}
