/*
 * notify_ready.h - tells the service manager that the mount stands, so that
 * units ordered after it find the files: the protocol of sd_notify(3).
 */
#ifndef TRAX_TOOLS_NOTIFY_READY_H
#define TRAX_TOOLS_NOTIFY_READY_H

/* Does nothing when no service manager waits for it ($NOTIFY_SOCKET), and warns
 * when it cannot be told. */
void notify_ready(void);

#endif
