/*
 * scan_clamd.c - has clamd look at all files below a directory, in the time in
 * which the disk's platter would turn for nothing:
 *
 *	cc scan_clamd.c $(pkg-config --cflags --libs libtrax) -o scan_clamd
 *	scan_clamd /run/clamav/clamd.ctl /srv
 *
 * Each file is an INSTREAM command (clamd(8)) on a connection of its own, as
 * files come beside each other.  Prints what clamd found; exits with 1 if it
 * found something, 2 if a file could not be looked at.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <trax.h>

/* What a file needs while it comes. */
struct stream {
	int fd;			/* -1: clamd has given it up */
	uint64_t end;		/* bytes sent */
};

static const char *socket_path;
static int found, failed;

static int send_all(int fd, const void *data, size_t bytes)
{
	const char *from = data;
	ssize_t n;

	for (; bytes; from += n, bytes -= (size_t)n) {
		n = send(fd, from, bytes, MSG_NOSIGNAL);
		if (n <= 0)
			return -1;
	}
	return 0;
}

static int send_chunk(int fd, const void *data, uint32_t bytes)
{
	uint32_t length = htonl(bytes);

	return send_all(fd, &length, sizeof(length)) ||
	       send_all(fd, data, bytes) ? -1 : 0;
}

static int connect_to_clamd(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(to.sun_path, socket_path, sizeof(to.sun_path) - 1);
	if (fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
			send_all(fd, "zINSTREAM", sizeof("zINSTREAM")))) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct stream *stream_of(const struct trax_record *r)
{
	struct stream *stream = *r->user;

	if (stream)
		return stream;
	*r->user = stream = calloc(1, sizeof(*stream));
	if (stream)
		stream->fd = connect_to_clamd();
	return stream;
}

static void drop(const struct trax_record *r)
{
	struct stream *stream = *r->user;

	if (stream && stream->fd >= 0)
		close(stream->fd);
	free(stream);
	*r->user = NULL;
}

/* Holes are zeros to clamd. */
static int send_hole(struct stream *stream, uint64_t to)
{
	static const char zeros[65536];
	uint64_t n;

	for (; stream->end < to; stream->end += n) {
		n = to - stream->end;
		n = n < sizeof(zeros) ? n : sizeof(zeros);
		if (send_chunk(stream->fd, zeros, (uint32_t)n))
			return -1;
	}
	return 0;
}

static void take_data(const struct trax_record *r)
{
	struct stream *stream = stream_of(r);

	if (!stream || stream->fd < 0)
		return;
	if (send_hole(stream, r->offset) ||
	    send_chunk(stream->fd, r->data, (uint32_t)r->bytes)) {
		close(stream->fd);
		stream->fd = -1;
	}
	stream->end = r->offset + r->bytes;
}

/* All of the file has been sent: what does clamd say? */
static void take_answer(const struct trax_record *r)
{
	struct stream *stream = stream_of(r);
	char answer[1024];
	ssize_t n = -1;

	if (stream && stream->fd >= 0 && !send_hole(stream, r->offset) &&
	    !send_chunk(stream->fd, "", 0))
		n = read(stream->fd, answer, sizeof(answer) - 1);
	if (n <= 0) {
		fprintf(stderr, "%s: clamd did not answer\n", r->path);
		failed = 1;
	} else {
		answer[n] = '\0';
		if (strstr(answer, "FOUND")) {
			printf("%s: %s\n", r->path, answer);
			found = 1;
		}
	}
	drop(r);
}

int main(int argc, char **argv)
{
	const struct trax_scan_options options = { .flags = TRAX_FILE_ORDER };
	struct trax_scan *scan;
	struct trax_record r;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: scan_clamd SOCKET PATH\n");
		return 2;
	}
	socket_path = argv[1];
	rc = trax_scan_new(argv[2], &options, &scan);
	if (rc) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-rc));
		return 2;
	}
	while ((rc = trax_scan_next(scan, &r)) == 1) {
		switch (r.type) {
		case TRAX_DATA:
			take_data(&r);
			break;
		case TRAX_WHOLE:
			take_answer(&r);
			break;
		case TRAX_BUSY:
		case TRAX_ERROR:
			fprintf(stderr, "%s: %s\n", r.path,
				strerror(-r.error));
			failed = 1;
			if (r.type == TRAX_BUSY)
				drop(&r);
			break;
		case TRAX_VOID:
		case TRAX_GONE:
			drop(&r);
			break;
		case TRAX_STATUS:
			break;
		}
	}
	trax_scan_free(scan);
	return rc || failed ? 2 : found;
}
