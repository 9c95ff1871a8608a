/*
 * scsi_around.h - how many sectors there are around tracks, of which
 * translations tell only how many blocks they hold.
 *
 * The last track of a zone may be short, and the first ones of the next zone
 * are taken for odd ones of the last while they are mapped.  Their neighbours
 * along the surface tell: what many hold alike is the zone's size, and a track
 * like none of them has as many sectors around it as those before it.
 * Boundaries do not depend on it; where a track's end passes under the head
 * does.
 */
#ifndef TRAX_SCSI_SCSI_AROUND_H
#define TRAX_SCSI_SCSI_AROUND_H

#include "diskmodel/geom.h"

/* The caller's geometry is replaced if there is something to mend.  -ENOMEM */
int scsi_around(struct geom **geom);

#endif
