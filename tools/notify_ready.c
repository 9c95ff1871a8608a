/*
 * notify_ready.c - see notify_ready.h.
 */
#include "tools/notify_ready.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/msg.h"

#define READY "READY=1"

/* Returns 0 or a negative errno. */
static int send_ready(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t bytes = strlen(name);
	int fd, rc = 0;

	if (bytes < 2 || bytes > sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, name, bytes);
	/* A name of the abstract kind begins with a zero byte. */
	if (*name == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, READY, strlen(READY), MSG_NOSIGNAL,
		   (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			       bytes)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

void notify_ready(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int rc = name ? send_ready(name) : 0;

	if (rc)
		msg_warn("the service manager is not told that the mount "
			 "stands: %s: %s", name, strerror(-rc));
}
