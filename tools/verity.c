/*
 * verity.c - a Merkle tree: the hashes of all blocks are kept in memory (32
 * bytes for 4 KiB), the upper levels are computed at the end.
 */
#include "tools/verity.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define FAN_OUT (VERITY_BLOCK_BYTES / VERITY_DIGEST_BYTES)

typedef uint8_t digest[VERITY_DIGEST_BYTES];

/* struct fsverity_descriptor of the kernel's documentation. */
struct descriptor {
	uint8_t version, hash_algorithm, log_blocksize, salt_size;
	uint32_t reserved;
	uint64_t data_size;
	uint8_t root_hash[64];
	uint8_t salt[32];
	uint8_t more_reserved[144];
};
_Static_assert(sizeof(struct descriptor) == 256, "descriptor");

struct verity {
	uint64_t blocks;	/* number of hashes */
	uint64_t room;		/* hashes that fit into `hash` */
	EVP_MD_CTX *context;
	int failed;
	digest zero;		/* digest of a block of zeros */
	digest *hash;
};

static void hash_block(struct verity *verity, const void *data, digest out)
{
	if (!EVP_DigestInit_ex(verity->context, EVP_sha256(), NULL) ||
	    !EVP_DigestUpdate(verity->context, data, VERITY_BLOCK_BYTES) ||
	    !EVP_DigestFinal_ex(verity->context, out, NULL))
		verity->failed = -EIO;
}

struct verity *verity_new(void)
{
	static const uint8_t zeros[VERITY_BLOCK_BYTES];
	struct verity *verity = calloc(1, sizeof(*verity));

	if (!verity)
		return NULL;
	verity->context = EVP_MD_CTX_new();
	if (!verity->context) {
		free(verity);
		return NULL;
	}
	hash_block(verity, zeros, verity->zero);
	return verity;
}

/* Makes room for this many hashes.  Blocks of which no data has come count as
 * zeros. */
static int grow(struct verity *verity, uint64_t blocks)
{
	uint64_t room = verity->room ? verity->room : 16;
	digest *more;

	while (room < blocks)
		room *= 2;
	if (room > verity->room) {
		more = reallocarray(verity->hash, room, sizeof(digest));
		if (!more)
			return -ENOMEM;
		verity->hash = more;
		verity->room = room;
	}
	for (; verity->blocks < blocks; verity->blocks++)
		memcpy(verity->hash[verity->blocks], verity->zero,
		       sizeof(digest));
	return 0;
}

void verity_free(struct verity *verity)
{
	if (!verity)
		return;
	EVP_MD_CTX_free(verity->context);
	free(verity->hash);
	free(verity);
}

int verity_add(struct verity *verity, uint64_t offset, const void *data,
	       uint64_t bytes)
{
	uint8_t block[VERITY_BLOCK_BYTES];
	const uint8_t *from = data;
	uint64_t i = offset / VERITY_BLOCK_BYTES;

	uint64_t end = (offset + bytes + VERITY_BLOCK_BYTES - 1) /
		       VERITY_BLOCK_BYTES;

	if (offset % VERITY_BLOCK_BYTES || offset > INT64_MAX ||
	    bytes > INT64_MAX)
		return -EINVAL;
	if (grow(verity, end))
		return -ENOMEM;
	for (; bytes >= VERITY_BLOCK_BYTES; bytes -= VERITY_BLOCK_BYTES) {
		hash_block(verity, from, verity->hash[i++]);
		from += VERITY_BLOCK_BYTES;
	}
	if (!bytes)
		return 0;
	memcpy(block, from, bytes);
	memset(block + bytes, 0, sizeof(block) - bytes);
	hash_block(verity, block, verity->hash[i]);
	return 0;
}

int verity_end(struct verity *verity, uint64_t size,
	       uint8_t out[VERITY_DIGEST_BYTES])
{
	struct descriptor d = {
		.version = 1, .hash_algorithm = 1, .log_blocksize = 12,
		.data_size = htole64(size),
	};
	uint64_t n = (size + VERITY_BLOCK_BYTES - 1) / VERITY_BLOCK_BYTES, i, k;

	if (n < verity->blocks)
		return -EINVAL;
	if (grow(verity, n))
		return -ENOMEM;
	while (n > 1) {
		for (i = k = 0; i < n; i += FAN_OUT, k++) {
			uint8_t block[VERITY_BLOCK_BYTES] = { 0 };
			uint64_t m = n - i < FAN_OUT ? n - i : FAN_OUT;

			memcpy(block, verity->hash[i], m * sizeof(digest));
			hash_block(verity, block, verity->hash[k]);
		}
		n = k;
	}
	if (n)
		memcpy(d.root_hash, verity->hash[0], sizeof(digest));
	if (!EVP_Digest(&d, sizeof(d), out, NULL, EVP_sha256(), NULL))
		verity->failed = -EIO;
	return verity->failed;
}
