/*
 * fs_internal.h - what the parts of src/fs share.
 */
#ifndef TRAX_OP_FS_INTERNAL_H
#define TRAX_OP_FS_INTERNAL_H

#include "fs/op/abandon_alloc.h"
#include "fs/op/fs_txn.h"
#include "fs/op/inode_item.h"
#include "fs/op/op.h"
#include "fs/op/vnode.h"

#endif
