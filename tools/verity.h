/*
 * verity.h - the digest that fs-verity has of a file (fsverity_digest of the
 * kernel's Documentation/filesystems/fsverity.rst, SHA-256, blocks of 4 KiB, no
 * salt), from data that comes in any order: what `fsverity digest` prints.
 */
#ifndef TRAX_TOOLS_VERITY_H
#define TRAX_TOOLS_VERITY_H

#include <stdint.h>

#define VERITY_BLOCK_BYTES 4096u
#define VERITY_DIGEST_BYTES 32u

struct verity;

/* Begins the digest of a file, which at first is of zeros only.  NULL: out of
 * memory. */
struct verity *verity_new(void);
void verity_free(struct verity *verity);

/* Data from `offset`, a multiple of VERITY_BLOCK_BYTES, on; it ends with a
 * block or with the file.  -EINVAL, -ENOMEM. */
int verity_add(struct verity *verity, uint64_t offset, const void *data,
	       uint64_t bytes);

/* Gives the digest if the file has this many bytes. -EIO: the library failed;
 * -EINVAL: there were more; -ENOMEM. */
int verity_end(struct verity *verity, uint64_t size,
	       uint8_t digest[VERITY_DIGEST_BYTES]);

#endif
