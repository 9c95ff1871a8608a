/*
 * oracle_model.h - the model in memory of one client's directory, with its
 * history.  Used by oracle.c only.
 */
#ifndef TRAX_RIG_ORACLE_MODEL_H
#define TRAX_RIG_ORACLE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/fs.h"
#include "tests/rig/world.h"

#define TRAX_ROOT 1u
#define MODEL_XATTRS 4u

struct versions;

struct mentry {
	char *name;
	struct mnode *node;
};

struct mnode {
	uint64_t ino;
	uint32_t mode, nlink;
	bool root;
	char *target;
	uint64_t xattr[MODEL_XATTRS];	/* 0: none */
	struct mnode *parent;		/* of a directory */
	struct mentry *entry;		/* of a directory, by name */
	unsigned entries;
	uint64_t size;
	uint8_t *bytes;			/* `blocks` of 4096, zeros behind the
					 * end */
	uint64_t blocks;		/* as many as it ever had */
	struct versions *versions;	/* of each block */
	struct versions *sizes;
	unsigned made;			/* by this operation */
};

struct model {
	struct mnode *root;
	char *name;
	unsigned op;			/* the one that runs or ran last */
	bool open;			/* begun, not yet issued */
	struct mnode **nodes;		/* all that ever were */
	unsigned count;
	uint64_t *hash, *event;		/* by op: name space after it, when
					   it was issued */
	unsigned room;
	struct mark *durable, *order;
	unsigned durables, orders;
	bool same_names;		/* nothing of them changes by the one
					   that is issued */
	bool loses;			/* data that is not durable may be
					   given up: unreadable */
};

struct model *model_new(void);
void model_free(struct model *m);
void model_root(struct model *m, uint64_t ino, const char *name);

/* An operation begins (versions get its number) and has been issued. */
void model_begin(struct model *m);
void model_issued(struct model *m, uint64_t event);
/* All (or this node's data) up to op is durable since event. */
void model_durable(struct model *m, uint64_t event, unsigned op,
		   struct mnode *node);

struct mnode *model_pick(const struct model *m, uint32_t type,
			 uint64_t random);
struct mnode *model_find(const struct mnode *dir, const char *name);
unsigned model_depth(const struct mnode *dir);
/* Is `node` dir itself or above it? */
bool model_above(const struct mnode *node, const struct mnode *dir);

struct mnode *model_make(struct model *m, uint32_t mode, const char *target);
void model_set_ino(struct model *m, struct mnode *node, uint64_t ino);
void model_link(struct mnode *dir, const char *name, struct mnode *node);
void model_unlink(struct mnode *dir, const char *name);
void model_rename(struct model *m, struct mnode *from, const char *name,
		  struct mnode *to, const char *name2, bool exchange);

void model_write(struct model *m, struct mnode *node, uint64_t offset,
		 const uint8_t *bytes, uint64_t n);
void model_zero(struct model *m, struct mnode *node, uint64_t offset,
		uint64_t n);
void model_truncate(struct model *m, struct mnode *node, uint64_t size);

/* See oracle_verify. */
const char *model_verify(struct model *m, struct fs *fs, struct world *world,
			 uint64_t event);

#endif
