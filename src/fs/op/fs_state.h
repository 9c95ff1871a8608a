/*
 * fs_state.h - the state of a mounted file system, shared by all of src/fs.
 *
 * Each part below has its own structure and its own file; struct fs holds the
 * pointers to them and what more than one part counts.
 */
#ifndef TRAX_OP_FS_STATE_H
#define TRAX_OP_FS_STATE_H

#include "alloc/alloc.h"
#include "base/hashmap.h"
#include "base/list.h"
#include "cache/pool.h"
#include "diskmodel/profile.h"
#include "fs/fs.h"
#include "tree/tree.h"

struct vnode_data_ops;		/* vnode.h */
struct read_events;		/* read_events.h */
struct writeback_policy;	/* writeback_policy.h */
struct files;			/* data/file_data.h: data of all files */
struct file;			/* data/file_data.h: data of one inode */
struct replicas;		/* table/replica.h: replicas of file blocks */
struct errors;			/* errors.h: damage that was met */
struct replica_ra;		/* replica_readahead.c: replicas that are read
				 * together */
struct access_trace;		/* access_trace.c: what was read of late */
struct node_replicas;		/* node_replicas.c: replicas of tree nodes */
struct profile_save;		/* profile_save.c: stores the drive's profile */
struct trim;			/* fs_trim.c: discards free sectors */
struct super_edit;		/* super_edit.c: changes label or UUID */
struct content_watch;		/* content_watch.h */
struct read_watch;		/* data/read_events.h */

struct fs {
	struct env *env;
	struct disk *disk;
	struct queue *queue;
	struct tree *tree;
	struct alloc *alloc;
	struct profile *profile;
	const struct geom *geom;	/* geometry of the profile */
	struct head *head;		/* predicts the head; NULL: nothing is
					 * known of it */
	struct head *own_head;		/* head made from the profile, to be
					 * freed; NULL: there is none */
	struct fs_options options;
	struct pool_budget budget;	/* shares of the memory */
	bool shut_down;			/* FS_SHUTDOWN was called: changes in
					 * memory will never reach the disk */
	struct hashmap *vnodes;		/* all vnodes, by inode number */
	struct files *files;
	const struct vnode_data_ops *data_ops; /* how vnodes reach the state of
					        * files */
	struct list allocated;		/* see abandon_alloc.h */
	/* Tables of events, ended by NULL; see data/read_events.h. */
	const struct read_events *const *read_events;
	/* Chooses when and where files are written. */
	const struct writeback_policy *writeback_policy;
	/* fs_run, by which code waits that stands below it. */
	uint64_t (*run)(struct fs *fs, int timeout_ms);
	struct replicas *replicas;	/* NULL until they are known */
	struct errors *errors;
	struct replica_ra *replica_ra;	/* NULL: no replicas are kept */
	struct access_trace *access_trace; /* NULL: nothing is learned */
	struct node_replicas *node_replicas; /* NULL: replicas of nodes are
					      * neither made nor read */
	struct profile_save *profile_save; /* NULL: the profile is not stored */
	struct content_watch *content_watch; /* NULL: nobody watches */
	struct read_watch *read_watch;	/* NULL: nobody watches */
	struct trim *trim;		/* NULL: nothing is discarded */
	struct super_edit *super_edit;	/* NULL: nobody changes label or UUID */
	bool closing;
	struct list ops;		/* operations that are not answered, in
					 * order of arrival */
	uint64_t op_count;		/* number of these */
	uint64_t stat_ops[FS_OP_TYPES];	/* operations so far, by type */
	uint64_t orphans_pending;	/* number of deletes under way */
	struct list all_txns;		/* transactions that have not ended */
	uint64_t txn_count;		/* number of these */
	uint64_t answers;		/* operations answered so far */
	uint64_t answer_ns;		/* time of the last answer */
	uint64_t handles;		/* open file descriptions */
	bool disk_gone;			/* the disk does not answer any more */
	uint64_t reruns_max;		/* most runs that one transaction has
					 * needed */
	uint64_t overruns;		/* runs beyond a transaction's bound */
	struct fs_txn *rename_locker;	/* has the right to move a directory */
	struct list rename_lock_waits;		/* transactions that want it */
	struct list resume;		/* vnode.c: orphans found at mount */
	struct waiter node_waiter;	/* waits for the free set of a group in
					 * which a node track is to be made */
	bool node_waiting;		/* node_waiter waits */
	unsigned node_loads;		/* groups that were loaded for the next
					 * node track */
	uint64_t node_near;		/* sector where the last node track was
					 * made */
	uint64_t name_mask;		/* bits of name hashes that count: all,
					 * but in tests of collisions */
};

/*
 * Places new data and predicts the head by another profile from now on.  The
 * file system owns the profile then, frees the old one, and stores the new one
 * in the background.  Data stays where it is.  -EBUSY: the queue is not idle;
 * -ENOMEM; after either the caller still owns the profile.
 */
int fs_adopt_profile(struct fs *fs, struct profile *profile);

/* The profile that was doubted at the mount fits the disk after all, and is
 * used from now on.  -EBUSY, -ENOMEM: as above. */
int fs_trust_profile(struct fs *fs);

#endif
