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
struct files;			/* file.c's state of the whole file system */
struct file;			/* the data state of one inode; NULL: it has
				 * none */
struct replicas;		/* replica.c: the copies */
struct errors;			/* errors.c: NULL until there is one */
struct replica_ra;		/* replica_readahead.c: copies read together */
struct access_trace;			/* access_trace.c: what is learned */
struct node_replicas; /* node_replicas.c: copies of tree nodes */
struct profile_save;  /* profile_save.c: what is known of the drive */
struct trim;	      /* trim.c: free sectors are discarded */
struct super_edit;   /* super_edit.c: label or UUID */
struct relocate;      /* relocate.c: log tracks that move */
struct content_watch; /* content_watch.h */
struct read_watch;		/* data/read_events.h */

struct fs {
	struct env *env;
	struct disk *disk;
	struct queue *queue;
	struct tree *tree;
	struct alloc *alloc;
	struct profile *profile;
	const struct geom *geom;	/* the profile's */
	struct head *head;	/* NULL: nothing is known of it */
	struct head *own_head;	/* made from the profile */
	struct fs_options options;
	struct pool_budget budget;
	bool shut_down;			/* by FS_SHUTDOWN: memory may have what
					 * the disk will never have */
	struct hashmap *vnodes;		/* all vnodes, by inode number */
	struct files *files;
	const struct vnode_data_ops *data_ops; /* how vnodes reach the state of
					        * files */
	struct list allocated;		/* see abandon_alloc.h */
	/* Ended by NULL, see data/read_events.h. */
	const struct read_events *const *read_events;
	/* how files choose when and where to write */
	const struct writeback_policy *writeback_policy;
	/* fs_run: it stands above everything that waits by it. */
	uint64_t (*run)(struct fs *fs, int timeout_ms);
	struct replicas *replicas;	/* NULL until they are known */
	struct errors *errors;
	struct replica_ra *replica_ra;		/* exists while replicas are
						 * kept */
	struct access_trace *access_trace;	/* NULL: nothing is learned */
	struct node_replicas
		*node_replicas;		   /* NULL: none are learned nor read */
	struct profile_save *profile_save; /* NULL: nothing is written back */
	struct relocate *relocate;		/* NULL: no track moves */
	struct content_watch *content_watch; /* NULL: nobody watches */
	struct read_watch *read_watch;	/* NULL: nobody watches */
	struct trim *trim;		/* NULL: nothing is discarded */
	struct super_edit *super_edit; /* NULL: nobody changes label or UUID */
	bool closing;
	struct list ops;		/* outstanding, in order of arrival */
	uint64_t op_count;
	uint64_t stat_ops[FS_OP_TYPES];
	uint64_t orphans_pending;	/* deletes under way */
	struct list all_txns;	/* all transactions that have not finished */
	uint64_t txn_count;		/* how many these are */
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
	struct waiter node_waiter;	/* a group load for a node track */
	bool node_waiting;
	uint64_t node_near;		/* sector where the last node track was
					 * made */
	uint64_t name_mask;		/* bits of name hashes that count: all,
					 * but in tests of collisions */
};

/*
 * Another belief of the disk's tracks, for new data and the head, from now on;
 * takes it over, frees the old one, and writes it back by and by.  Old data
 * stays where it is.  -EBUSY: the queue is not idle; -ENOMEM: nothing has
 * changed.
 */
int fs_adopt_profile(struct fs *fs, struct profile *profile);

/* The profile that was doubted fits the disk after all.  -EBUSY, -ENOMEM: as
 * above. */
int fs_trust_profile(struct fs *fs);

#endif
