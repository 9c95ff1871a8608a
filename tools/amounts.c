/*
 * amounts.c - see amounts.h.
 */
#include "tools/amounts.h"

#include <stdio.h>
#include <time.h>

struct text size_text(double bytes)
{
	static const char *const units[] = {
		"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
	};
	struct text t;
	unsigned unit = 0;

	while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(*units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(t.s, sizeof(t.s), "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
	return t;
}

struct text date_text(double seconds)
{
	time_t when = (time_t)seconds;
	struct tm tm;
	struct text t = { "never" };

	if (when > 0 && localtime_r(&when, &tm))
		strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M", &tm);
	return t;
}

struct text duration_text(double seconds)
{
	static const struct {
		const char *name;
		long seconds;
	} units[] = {
		{ "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 },
	};
	struct text t = { "not known" };
	long left = (long)(seconds + 0.5);
	unsigned i = 0;

	if (seconds < 0)
		return t;
	while (units[i].seconds > 1 && left < units[i].seconds)
		i++;
	if (units[i].seconds == 1)
		snprintf(t.s, sizeof(t.s), "%ld s", left);
	else
		snprintf(t.s, sizeof(t.s), "%ld %s %ld %s",
			 left / units[i].seconds, units[i].name,
			 left % units[i].seconds / units[i + 1].seconds,
			 units[i + 1].name);
	return t;
}
