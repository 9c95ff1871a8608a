/*
 * test_format.c - codecs there and back, and every rule of the verifiers with
 * something that breaks it.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "format/format.h"
#include "tests/rig/test.h"

static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
				  14, 15, 16 };

#define assert_good(why) \
	do { const char *w_ = (why); ck_assert_msg(!w_, "%s", w_); } while (0)
#define assert_why(why, text)                                       \
	do {                                                        \
		const char *w_ = (why);                             \
		ck_assert_msg(w_ && strstr(w_, (text)), "%s, not %s", \
			      w_ ? w_ : "good", (text));            \
	} while (0)

/* ---- Superblock ---- */

static struct super super_example(void)
{
	struct super s = {
		.label = "a label",
		.sectors = 1 << 20,
		.second_sector = 1 << 19,
		.logical_bytes = 512,
		.physical_bytes = 4096,
		.created_wall_ns = 1234567890,
		.version = 7,
		.hash_seed = 99,
		.area_sector = { { 16, 32 }, { 48, 64 } },
		.area_sectors = 16,
		.pseudo_track_sectors = 2048,
		.log_tracks = 3,
		.log = { { 4096, 2048 }, { 8191, 2048 }, { 40960, 519 } },
	};

	memcpy(s.uuid, uuid, 16);
	memcpy(s.shown_uuid, "shown to a user", 16);
	return s;
}

START_TEST(super_there_and_back)
{
	uint8_t buf[TRAX_BLOCK_BYTES], again[TRAX_BLOCK_BYTES];
	const struct super s = super_example();
	struct super d;

	super_encode(&s, 8, buf);
	assert_good(super_decode(buf, 8, &d));
	super_encode(&d, 8, again);
	ck_assert_mem_eq(buf, again, sizeof(buf));
	ck_assert_uint_eq(d.log[1].sector, 8191);
	ck_assert_uint_eq(d.area_sector[1][0], 48);
	ck_assert_str_eq(d.label, "a label");
	ck_assert_mem_eq(d.uuid, uuid, 16);
	ck_assert_mem_eq(d.shown_uuid, "shown to a user", 16);
	assert_why(super_decode(buf, 16, &d), "another sector");
	ck_assert_uint_eq(super_fixed_sectors(&s),
			  8 + 3 * 8 + 4 * 16 + 2048 + 2048 + 519);
}
END_TEST

START_TEST(super_every_byte_counts)
{
	uint8_t buf[TRAX_BLOCK_BYTES];
	const struct super s = super_example();
	struct super d;

	super_encode(&s, 8, buf);
	for (size_t i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 0x10;
		ck_assert_ptr_nonnull(super_decode(buf, 8, &d));
		buf[i] ^= 0x10;
	}
	assert_good(super_decode(buf, 8, &d));
}
END_TEST

static const char *super_try(const struct super *s)
{
	uint8_t buf[TRAX_BLOCK_BYTES];
	struct super d;

	super_encode(s, 8, buf);
	return super_decode(buf, 8, &d);
}

START_TEST(each_rule_of_superblocks_is_verified)
{
#define BREAK(change, text)                       \
	do {                                      \
		struct super s = super_example(); \
		change;                           \
		assert_why(super_try(&s), text);  \
	} while (0)
	BREAK(s.incompat = 2, "incompatible");
	BREAK(s.incompat = 1, "without its feature");
	BREAK(s.record_bytes = 4096, "without its feature");
	BREAK((s.incompat = 1, s.record_bytes = 512), "log records");
	BREAK((s.incompat = 1, s.physical_bytes = 512,
	       s.record_bytes = 768), "log records");
	BREAK((s.incompat = 1, s.record_bytes = 8192), "log records");
	BREAK(s.sectors = 1000, "size");
	BREAK(s.sectors = 1ull << 60, "size");
	BREAK(s.logical_bytes = 1024, "logical");
	BREAK(s.physical_bytes = 3000, "physical");
	BREAK(s.physical_bytes = 256, "physical");
	BREAK(s.physical_bytes = 1 << 20, "physical");
	BREAK(s.area_sectors = 8, "length of the root areas");
	BREAK(s.area_sectors = 20, "length of the root areas");
	BREAK(s.area_sector[1][1] = 65, "not aligned");
	BREAK(s.second_sector = 1001, "second superblock is not aligned");
	BREAK(s.second_sector = 32, "overlap");
	BREAK(s.second_sector = 1 << 20, "outside");
	BREAK(s.pseudo_track_sectors = 8, "pseudo-tracks");
	BREAK((s.geom_sector = 1001, s.geom_bytes = 9), "not aligned");
	BREAK(s.geom_sector = 1000, "geometry");
	BREAK((s.geom_sector = 1000, s.geom_bytes = 1u << 31), "geometry");
	BREAK(s.room_sector = 8, "room of the geometry is empty");
	BREAK((s.room_sector = 1000, s.room_sectors = 16), "does not begin");
	BREAK((s.room_sector = 4, s.room_sectors = 16), "not aligned");
	BREAK((s.room_sector = 8, s.room_sectors = 24), "not aligned");
	BREAK(s.room_sectors = 1u << 31, "too large");
	BREAK((s.room_sector = s.geom_sector = 1000, s.room_sectors = 16,
	       s.geom_bytes = 4097), "larger than half");
	BREAK(s.log_tracks = 1, "number of log tracks");
	BREAK(s.log_tracks = 0, "number of log tracks");
	BREAK(s.log[2].sectors = 511, "too short");
	BREAK((s.log[2].sector++, s.log[2].sectors--), "too short");
	BREAK(s.log[2].sector = s.sectors, "outside");
	BREAK(s.log[2].sector = UINT64_MAX - 7, "outside");
	BREAK(s.log[2].sectors = UINT32_MAX, "too long");
	BREAK(s.log[2].sector = s.sectors - 518, "outside");
	BREAK(s.area_sector[0][0] = 0, "outside");
	BREAK(s.area_sector[0][0] = 24, "overlap");
	BREAK(s.log[1].sector = 8190 - 2048 + 1, "overlap");
	BREAK(s.area_sector[0][0] = s.sectors / 2, "overlap");
	BREAK((s.geom_sector = 4096, s.geom_bytes = 1), "overlap");
#undef BREAK
}
END_TEST

START_TEST(super_log_tracks_beyond_the_table)
{
	uint8_t buf[TRAX_BLOCK_BYTES];
	const struct super s = super_example();
	const le32 many = le32_put(65);
	struct super d;
	le64 sum;

	super_encode(&s, 8, buf);
	memcpy(buf + 220, &many, sizeof(many));
	sum = le64_put(csum(buf, 4088));
	memcpy(buf + 4088, &sum, sizeof(sum));
	assert_why(super_decode(buf, 8, &d), "number of log tracks");
}
END_TEST

START_TEST(super_has_three_places)
{
	uint64_t p[3];

	super_usual_places(32768, p);
	ck_assert_uint_eq(p[0], 8);
	ck_assert_uint_eq(p[1], 16384);
	ck_assert_uint_eq(p[2], 32760);
	super_usual_places(1000003, p);
	ck_assert_uint_eq(p[1], 500000);
	ck_assert_uint_eq(p[2], 999992);
}
END_TEST

/* ---- Root ---- */

static struct root root_example(void)
{
	return (struct root){
		.gen = 12,
		.epoch = 0xabcdef,
		.clean = true,
		.tree = { .addr = 4096, .addr2 = 8192, .csum = 1, .gen = 12 },
		.level = 2,
		.cut_seq = 77,
		.cut_chain = 5,
		.tail_seq = 70,
		.next_ino_seq = 1000,
		.next_dirgroup = 3,
		.inodes = 55,
		.wall_ns = -4,
		.slotmap_bytes = 130,
		.group_bytes = 16,
		.payload_csum = 9,
	};
}

START_TEST(root_there_and_back)
{
	uint8_t buf[TRAX_BLOCK_BYTES], again[TRAX_BLOCK_BYTES];
	const struct root r = root_example();
	struct root d;

	root_encode(&r, uuid, 16, buf);
	assert_good(root_decode(buf, uuid, 16, &d));
	root_encode(&d, uuid, 16, again);
	ck_assert_mem_eq(buf, again, sizeof(buf));
	ck_assert_int_eq(d.wall_ns, -4);
	ck_assert(d.clean);
	for (size_t i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 1;
		ck_assert_ptr_nonnull(root_decode(buf, uuid, 16, &d));
		buf[i] ^= 1;
	}
}
END_TEST

START_TEST(each_rule_of_roots_is_verified)
{
	uint8_t buf[TRAX_BLOCK_BYTES];
	uint8_t other[16] = { 0 };
	struct root d;
#define BREAK(change, text)                                        \
	do {                                                       \
		struct root r = root_example();                    \
		change;                                            \
		root_encode(&r, uuid, 16, buf);                    \
		assert_why(root_decode(buf, uuid, 16, &d), text);  \
	} while (0)
	BREAK(r.gen = 0, "no generation");
	BREAK(r.level = 9, "too high");
	BREAK(r.tree.addr = 0, "nowhere");
	BREAK(r.tree.addr = addr_make(1, 4), "nowhere");
	BREAK(r.tree.addr2 = r.tree.addr, "mirror");
	BREAK(r.tree.gen = 13, "younger");
	BREAK(r.tail_seq = 79, "tail");
	BREAK(r.next_ino_seq = TRAX_INO_SEQS + 1, "inode numbers");
	BREAK(r.group_bytes = 9, "group table");
#undef BREAK
	struct root r = root_example();

	root_encode(&r, uuid, 16, buf);
	assert_why(root_decode(buf, other, 16, &d), "another file system");
	assert_why(root_decode(buf, uuid, 24, &d), "another sector");
}
END_TEST

/* ---- Keys ---- */

START_TEST(keys_are_ordered)
{
	const struct key top = { 5, 255, UINT64_MAX };
	char text[64];

	ck_assert_int_eq(key_cmp(KEY_MIN, KEY_MAX), -1);
	ck_assert_uint_eq(key_after(key_make(1, ITEM_NAME, 3)).off, 4);
	ck_assert_int_eq(key_cmp(key_after(top), (struct key){ 6, 0, 0 }), 0);
	ck_assert_uint_eq(key_after((struct key){ 1, 4, UINT64_MAX }).type, 5);
	ck_assert_int_eq(key_cmp(key_after(KEY_MAX), KEY_MAX), 0);
	ck_assert_str_eq(key_text(key_make(7, ITEM_EXTENT, 9), text, 64),
			 "7/extent/9");
	ck_assert_str_eq(key_text((struct key){ 7, 99, 9 }, text, 64),
			 "7/99/9");
}
END_TEST

/* ---- Items ---- */

static struct inode_item inode_example(void)
{
	return (struct inode_item){
		.mode = le32_put(S_IFDIR | 0755),
		.nlink = le32_put(2),
		.next_seq = le64_put(10),
		.entries = le64_put(3),
		.generation = le32_put(1),
	};
}

START_TEST(each_rule_of_inode_items_is_verified)
{
	struct inode_item i = inode_example();
	const struct key k = key_make(1, ITEM_INODE, 0);
#define BREAK(change, text)                                         \
	do {                                                        \
		i = inode_example();                                \
		change;                                             \
		assert_why(item_verify(k, &i, sizeof(i)), text);    \
	} while (0)

	assert_good(item_verify(k, &i, sizeof(i)));
	assert_why(item_verify(k, &i, sizeof(i) - 1), "length");
	assert_why(item_verify(key_make(1, ITEM_INODE, 1), &i, sizeof(i)),
		   "offset 0");
	assert_why(item_verify(key_make(0, ITEM_INODE, 0), &i, sizeof(i)),
		   "inode number");
	assert_why(item_verify(key_make(1ull << 63, ITEM_INODE, 0), &i,
			       sizeof(i)), "inode number");
	BREAK(i.mode = le32_put(0755), "mode");
	BREAK(i.mode = le32_put(S_IFREG | 1u << 20), "mode");
	BREAK(i.size = le64_put(UINT64_MAX), "size");
	BREAK(i.flags = le32_put(1u << 30), "flags");
	BREAK(i.dirgroup = le64_put(TRAX_DIRGROUPS), "group");
	BREAK(i.entries = le64_put(11), "entries");
	BREAK(i.generation = le32_put(2), "generation");
	BREAK(i.mtime.ns = le32_put(1000000000), "nanoseconds");
#undef BREAK
}
END_TEST

static size_t name_make(void *buf, uint64_t ino, uint64_t seq, uint8_t type,
			const char *name, size_t bytes)
{
	struct name_record *r = buf;

	r->ino = le64_put(ino);
	r->seq = le64_put(seq);
	r->type = type;
	r->bytes = (uint8_t)bytes;
	memcpy(r + 1, name, bytes);
	return sizeof(*r) + bytes;
}

START_TEST(each_rule_of_names_is_verified)
{
	const struct key kn = key_make(1, ITEM_NAME, 0xabc);
	const struct key ke = key_make(1, ITEM_ENTRY, 5);
	uint8_t b[400];
	size_t n = name_make(b, 9, 5, DT_REG, "one", 3), two;

	assert_good(item_verify(kn, b, n));
	assert_good(item_verify(ke, b, n));
	two = n + name_make(b + n, 10, 6, DT_DIR, "tw\no", 4);
	assert_good(item_verify(kn, b, two));
	assert_why(item_verify(ke, b, two), "length");
	assert_why(item_verify(kn, b, two - 1), "cut off");
	assert_why(item_verify(kn, b, 17), "cut off");
	assert_why(item_verify(kn, b, 0), "length");
	name_make(b, 9, 6, DT_REG, "one", 3);
	assert_why(item_verify(ke, b, n), "sequence");
#define BREAK(ino, type, name, len, text)                           \
	do {                                                        \
		n = name_make(b, ino, 5, type, name, len);          \
		assert_why(item_verify(ke, b, n), text);            \
	} while (0)
	BREAK(0, DT_REG, "a", 1, "inode number");
	BREAK(1ull << 63, DT_REG, "a", 1, "inode number");
	BREAK(9, 3, "a", 1, "file type");
	BREAK(9, DT_REG, "", 0, "empty");
	BREAK(9, DT_REG, "a/b", 3, "slash");
	BREAK(9, DT_REG, "a\0b", 3, "zero");
	BREAK(9, DT_REG, ".", 1, "dots");
	BREAK(9, DT_REG, "..", 2, "dots");
#undef BREAK
	n = name_make(b, 9, 5, DT_REG, "...", 3);
	assert_good(item_verify(ke, b, n));
}
END_TEST

static size_t xattr_make(uint8_t *b, uint32_t value, uint8_t pieces,
			 const char *name, size_t first)
{
	struct xattr_head head = { le32_put(value), (uint8_t)strlen(name),
				   pieces };

	memcpy(b, &head, sizeof(head));
	memcpy(b + sizeof(head), name, strlen(name));
	memset(b + sizeof(head) + strlen(name), 'v', first);
	return sizeof(head) + strlen(name) + first;
}

START_TEST(each_rule_of_xattrs_is_verified)
{
	const struct key k = key_make(1, ITEM_XATTR, 77 << 8);
	uint8_t b[5000];
	size_t n = xattr_make(b, 10, 1, "user.a", 10);

	assert_good(item_verify(k, b, n));
	assert_why(item_verify(k, b, n - 1), "first piece");
	assert_why(item_verify(k, b, 11), "shorter");
	assert_why(item_verify(k, b, 5), "shorter");
	n = xattr_make(b, 65536, 18, "user.b", 3800);
	assert_good(item_verify(k, b, n));
	n = xattr_make(b, 65537, 18, "user.b", 3800);
	assert_why(item_verify(k, b, n), "too long");
	n = xattr_make(b, 100, 0, "user.b", 100);
	assert_why(item_verify(k, b, n), "pieces");
	n = xattr_make(b, 100, 2, "user.b", 101);
	assert_why(item_verify(k, b, n), "first piece");
	n = xattr_make(b, 0, 1, "", 0);
	assert_why(item_verify(k, b, n), "shorter");
	assert_good(item_verify(key_after(k), b, 3));
	assert_why(item_verify(key_make(1, ITEM_XATTR, 255), b, 3), "pieces");
}
END_TEST

START_TEST(item_extent_and_owner)
{
	struct extent_item e = { le64_put(100), le64_put(8), le32_put(1) };
	struct owner_item o = { le64_put(8), OWNER_DATA, le64_put(5),
				le64_put(16) };
	const struct key ke = key_make(5, ITEM_EXTENT, 16);
	const struct key ko = key_make(0, ITEM_OWNER, 100);

	assert_good(item_verify(ke, &e, sizeof(e)));
	assert_good(item_verify(ko, &o, sizeof(o)));
	assert_why(item_verify(ke, &e, 19), "length");
	assert_why(item_verify(ko, &o, 24), "length");
	assert_why(item_verify(key_make(5, ITEM_OWNER, 100), &o, sizeof(o)),
		   "inode number");
	assert_why(item_verify(key_make(5, ITEM_EXTENT, 1ull << 54), &e,
			       sizeof(e)), "outside any file");
	assert_why(item_verify(key_make(5, ITEM_EXTENT, (1ull << 54) - 7), &e,
			       sizeof(e)), "outside any file");
	e.addr = le64_put((1ull << 56) - 7);
	assert_why(item_verify(ke, &e, sizeof(e)), "outside the device");
	e.addr = le64_put(addr_make(1, 100));
	assert_why(item_verify(ke, &e, sizeof(e)), "outside the device");
	e.addr = le64_put(100);
	e.sectors = le64_put(0);
	assert_why(item_verify(ke, &e, sizeof(e)), "outside the device");
	e.sectors = le64_put(8);
	e.flags = le32_put(4);
	assert_why(item_verify(ke, &e, sizeof(e)), "flags");

	o.ino = le64_put(0);
	assert_why(item_verify(ko, &o, sizeof(o)), "part of a file");
	o.kind = 9;
	assert_why(item_verify(ko, &o, sizeof(o)), "kind");
	o.kind = OWNER_NODES;
	assert_why(item_verify(ko, &o, sizeof(o)), "node track");
	o.sectors = le64_put(2048);
	assert_good(item_verify(ko, &o, sizeof(o)));
	o.sectors = le64_put(UINT64_MAX);
	assert_why(item_verify(ko, &o, sizeof(o)), "outside the device");
}
END_TEST

START_TEST(each_rule_of_other_items_is_verified)
{
	struct orphan_item o = { ORPHAN_TRUNCATE, le64_put(5) };
	const struct key k = key_make(0, ITEM_ORPHAN, 7);
	char data[3000] = "x";

	assert_good(item_verify(k, &o, sizeof(o)));
	assert_why(item_verify(k, &o, 8), "length");
	assert_why(item_verify(key_make(0, ITEM_ORPHAN, 0), &o, sizeof(o)),
		   "inode number");
	o.what = 3;
	assert_why(item_verify(k, &o, sizeof(o)), "kind");
	o = (struct orphan_item){ ORPHAN_DELETE, le64_put(UINT64_MAX) };
	assert_why(item_verify(k, &o, sizeof(o)), "size");

	assert_good(item_verify(key_make(3, ITEM_INLINE, 0), data, 3000));
	assert_why(item_verify(key_make(3, ITEM_INLINE, 1), data, 1),
		   "offset 0");
	assert_why(item_verify(key_make(3, ITEM_INLINE, 0), data, 4097),
		   "length");
	assert_why(item_verify((struct key){ 3, 9, 0 }, data, 1), "type");
	assert_why(item_verify((struct key){ 3, 255, 0 }, data, 1), "type");
	assert_why(item_verify((struct key){ 3, 0, 0 }, data, 1), "type");
	assert_good(item_verify(key_make(0, ITEM_SCRUB, 0), data, 9));
}
END_TEST

START_TEST(each_rule_of_replica_items_is_verified)
{
	struct replica_item r = { le64_put(1000), le64_put(904),
				  le64_put(7), le16_put(4) };
	struct region_item g = { .number = le64_put(7),
				 .sectors = le32_put(512) };
	struct copy_entry c[2] = { { le64_put(3), le64_put(12), le16_put(4) } };
	struct error_item e = { .what = ERROR_CSUM };
	const struct key kr = key_make(3, ITEM_REPLICA, replica_off(12, 1));
	const struct key kg = key_make(0, ITEM_REGION, 904);
	const struct key kc = key_make(0, ITEM_COPIES, 904);
	const struct key ke = key_make(0, ITEM_ERROR, 1);

	assert_good(item_verify(kr, &r, sizeof(r)));
	assert_why(item_verify(kr, &r, 8), "length");
	r.blocks = le16_put(5);
	assert_why(item_verify(kr, &r, sizeof(r)), "chunk");
	r.blocks = le16_put(1);
	r.region = le64_put(1001);
	assert_why(item_verify(kr, &r, sizeof(r)), "region");
	assert_good(item_verify(kg, &g, sizeof(g)));
	g.sectors = le32_put(511);
	assert_why(item_verify(kg, &g, sizeof(g)), "place");
	g.sectors = le32_put(512);
	g.number = le64_put(0);
	assert_why(item_verify(kg, &g, sizeof(g)), "number");
	assert_good(item_verify(kc, c, sizeof(c[0])));
	assert_why(item_verify(kc, c, sizeof(c)), "chunk");
	assert_why(item_verify(kc, c, 10), "length");
	assert_good(item_verify(ke, &e, sizeof(e)));
	e.what = 0;
	assert_why(item_verify(ke, &e, sizeof(e)), "kind");
	e.what = ERROR_READ;
	e.healed = 2;
	assert_why(item_verify(ke, &e, sizeof(e)), "healed");
}
END_TEST

/* ---- Checksum windows ---- */

static void window_random(struct csum_window *w, uint64_t *rng)
{
	const unsigned present = (unsigned)test_random(rng);

	memset(w, 0, sizeof(*w));
	for (unsigned p = 0; p < TRAX_CSUM_CHUNKS; p++) {
		if (!(present >> p & 1))
			continue;
		w->mask[p] = (uint16_t)(test_random(rng) | 1);
		for (unsigned b = 0; b < TRAX_CSUM_CHUNK_BLOCKS; b++)
			if (w->mask[p] >> b & 1)
				w->sum[p][b] = (uint32_t)test_random(rng);
	}
}

START_TEST(csum_window_there_and_back)
{
	uint8_t buf[TRAX_MAX_ITEM_BYTES];
	struct csum_window w, d;
	uint64_t rng = 1;

	for (unsigned i = 0; i < 1000; i++) {
		size_t n;

		window_random(&w, &rng);
		n = csum_window_encode(&w, buf);
		if (!n)
			continue;
		assert_good(csum_window_decode(buf, n, &d));
		ck_assert_mem_eq(&w, &d, sizeof(w));
		for (size_t cut = 0; cut < n; cut += 1 + n / 16)
			ck_assert_ptr_nonnull(csum_window_decode(buf, cut,
								 &d));
		assert_why(csum_window_decode(buf, n + 1, &d), "length");
	}
}
END_TEST

START_TEST(csum_window_rules)
{
	const uint8_t full[] = { 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4 };
	const uint8_t empty[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
	struct csum_window w;

	assert_good(csum_window_decode(full, 12, &w));
	ck_assert_uint_eq(w.sum[0][0], 0x04030201);
	assert_why(csum_window_decode(empty, 8, &w), "no block");
	memset(&w, 0, sizeof(w));
	ck_assert_uint_eq(csum_window_encode(&w, (uint8_t[64]){ 0 }), 0);
	assert_why(item_verify(key_make(1, ITEM_CSUM, 63), full, 12),
		   "at a window");
}
END_TEST

/* ---- Nodes ---- */

#define FSID 0x1234u

struct node {
	struct node_header h;
	uint8_t body[TRAX_NODE_BYTES - sizeof(struct node_header)];
};

static const struct node_ptr node_at = { .addr = 640, .addr2 = 0, .csum = 0,
					 .gen = 5 };

static struct leaf_slot *leaf_slots(struct node *n)
{
	return (struct leaf_slot *)n->body;
}

static struct child_slot *child_slots(struct node *n)
{
	return (struct child_slot *)n->body;
}

static void node_init(struct node *n, unsigned level)
{
	memset(n, 0, sizeof(*n));
	n->h.magic = le32_put(TRAX_NODE_MAGIC);
	n->h.level = (uint8_t)level;
	n->h.fsid = le64_put(FSID);
	n->h.addr = le64_put(node_at.addr);
	n->h.gen = le64_put(node_at.gen);
	n->h.heap = le16_put(TRAX_NODE_BYTES);
	n->h.low = key_put(KEY_MIN);
	n->h.high = key_put(KEY_MAX);
}

/* A leaf with three inline items of 10, 20 and 30 bytes. */
static void leaf_example(struct node *n)
{
	unsigned heap = TRAX_NODE_BYTES;

	node_init(n, 0);
	for (unsigned i = 0; i < 3; i++) {
		heap -= 10 * (i + 1);
		leaf_slots(n)[i] = (struct leaf_slot){
			key_put(key_make(10 + i, ITEM_INLINE, 0)),
			le16_put((uint16_t)heap),
			le16_put((uint16_t)(10 * (i + 1))),
		};
	}
	n->h.n = le16_put(3);
	n->h.heap = le16_put((uint16_t)heap);
	n->h.used = le16_put(60);
}

static void interior_example(struct node *n)
{
	node_init(n, 1);
	for (unsigned i = 0; i < 4; i++)
		child_slots(n)[i] = (struct child_slot){
			key_put(i ? key_make(i, ITEM_INODE, 0) : KEY_MIN),
			le64_put(1000 + 32 * i), le64_put(0), le64_put(i),
			le64_put(i + 1),
		};
	n->h.n = le16_put(4);
}

static const char *node_try(const struct node *n, unsigned level)
{
	return node_verify(n, FSID, &node_at, level, KEY_MIN, KEY_MAX);
}

START_TEST(node_header_rules)
{
	static struct node n;
	struct node_ptr other = node_at;
#define BREAK(change, text)                           \
	do {                                          \
		leaf_example(&n);                     \
		change;                               \
		assert_why(node_try(&n, 0), text);    \
	} while (0)

	leaf_example(&n);
	assert_good(node_try(&n, 0));
	assert_why(node_try(&n, 1), "level");
	other.gen++;
	assert_why(node_verify(&n, FSID, &other, 0, KEY_MIN, KEY_MAX),
		   "generation");
	BREAK(n.h.magic = le32_put(1), "magic");
	BREAK(n.h.fsid = le64_put(1), "file system");
	BREAK(n.h.pad = 1, "padding");
	BREAK(n.h.addr = le64_put(1), "address");
	BREAK(n.h.addr2 = le64_put(1), "address");
	BREAK(n.h.high = key_put(KEY_MIN); n.h.low = key_put(KEY_MAX),
	      "empty");
	leaf_example(&n);
	assert_why(node_verify(&n, FSID, &node_at, 0, key_make(1, 1, 0),
			       KEY_MAX), "parent");
	assert_why(node_verify(&n, FSID, &node_at, 0, KEY_MIN,
			       key_make(100, 1, 0)), "parent");
#undef BREAK
}
END_TEST

START_TEST(node_leaf_rules)
{
	static struct node n;
#define BREAK(change, text)                           \
	do {                                          \
		leaf_example(&n);                     \
		struct leaf_slot *s = leaf_slots(&n); \
		change;                               \
		(void)s;                              \
		assert_why(node_try(&n, 0), text);    \
	} while (0)

	node_init(&n, 0);
	assert_good(node_try(&n, 0));
	BREAK(n.h.n = le16_put(60000), "too many");
	BREAK(n.h.heap = le16_put(100), "heap is out of range");
	BREAK(n.h.heap = le16_put(TRAX_NODE_BYTES + 1),
	      "heap is out of range");
	BREAK(n.h.heap = le16_put(TRAX_NODE_BYTES - 59), "outside the heap");
	BREAK(s[0].off = le16_put(TRAX_NODE_BYTES - 9), "outside the heap");
	BREAK(s[0].off = le16_put(65535), "outside the heap");
	BREAK(s[0].off = le16_put(TRAX_NODE_BYTES - 11), "overlap");
	BREAK(s[1].off = s[2].off, "overlap");
	BREAK(s[1].key = s[0].key, "order");
	BREAK(s[1].key.ino = le64_put(1), "order");
	BREAK(n.h.low = s[1].key, "outside the node");
	BREAK(n.h.high = s[1].key, "outside the node");
	BREAK(n.h.used = le16_put(61), "used bytes");
	BREAK((s[0].bytes = le16_put(0), n.h.used = le16_put(50)), "length");
	BREAK(s[2].key.type = 200, "unknown type");
#undef BREAK
}
END_TEST

START_TEST(node_interior_rules)
{
	static struct node n;
#define BREAK(change, text)                             \
	do {                                            \
		interior_example(&n);                   \
		struct child_slot *s = child_slots(&n); \
		change;                                 \
		(void)s;                                \
		assert_why(node_try(&n, 1), text);      \
	} while (0)

	interior_example(&n);
	assert_good(node_try(&n, 1));
	BREAK(n.h.n = le16_put(0), "number of children");
	BREAK(n.h.n = le16_put(500), "number of children");
	BREAK(s[2].key = s[1].key, "order");
	BREAK(n.h.low = key_put(key_make(1, 0, 0)), "outside the node");
	BREAK(s[1].addr = le64_put(0), "outside the device");
	BREAK(s[1].addr = le64_put(addr_make(3, 9)), "outside the device");
	BREAK(s[1].addr2 = s[1].addr, "mirror");
	BREAK(s[1].addr = n.h.addr, "parent");
	BREAK(s[1].gen = le64_put(6), "younger");
#undef BREAK
}
END_TEST

START_TEST(node_survives_anything)
{
	static struct node n;
	uint64_t rng = 3;

	for (unsigned i = 0; i < 20000; i++) {
		const unsigned level = i & 1;

		if (level)
			interior_example(&n);
		else
			leaf_example(&n);
		for (unsigned k = 0; k < 4; k++)
			((uint8_t *)&n)[test_random(&rng) % 300] =
				(uint8_t)test_random(&rng);
		node_try(&n, level);
	}
}
END_TEST

/* ---- Log records ---- */

static size_t entries_example(uint8_t *p)
{
	const struct key k = key_make(5, ITEM_INLINE, 0);
	static const uint8_t block[TRAX_BLOCK_BYTES] = { 42 };
	const uint64_t sum = 17;
	size_t n = log_entry_put(p, k, "value", 5);

	n += log_entry_del(p + n, key_make(6, ITEM_INODE, 0));
	n += log_entry_del_range(p + n, k, key_make(5, ITEM_CSUM, 9));
	n += log_entry_data(p + n, 5, 100, 1, &sum);
	memcpy(p + n, block, sizeof(block));
	return n + sizeof(block);
}

START_TEST(log_entries_there_and_back)
{
	static uint8_t p[8192];
	const size_t n = entries_example(p);
	struct log_entry e;
	size_t off = 0;

	assert_good(log_entry_next(p, n, &off, &e));
	ck_assert_int_eq(e.type, LOG_PUT);
	ck_assert_uint_eq(e.key.ino, 5);
	ck_assert_mem_eq(e.value, "value", 5);
	assert_good(log_entry_next(p, n, &off, &e));
	ck_assert_int_eq(e.type, LOG_DEL);
	ck_assert_uint_eq(e.key.ino, 6);
	assert_good(log_entry_next(p, n, &off, &e));
	ck_assert_int_eq(e.type, LOG_DEL_RANGE);
	ck_assert_uint_eq(e.last.off, 9);
	assert_good(log_entry_next(p, n, &off, &e));
	ck_assert_int_eq(e.type, LOG_DATA);
	ck_assert_uint_eq(e.block, 100);
	ck_assert_uint_eq(e.n, 1);
	ck_assert_uint_eq(le64_get(e.sums[0]), 17);
	ck_assert_uint_eq(*(const uint8_t *)e.value, 42);
	ck_assert_uint_eq(e.bytes, TRAX_BLOCK_BYTES);
	assert_good(log_entry_next(p, n, &off, &e));
	ck_assert_int_eq(e.type, 0);
	ck_assert_uint_eq(off, n);
}
END_TEST

/* Walks to the end or to what is wrong. */
static const char *entries_try(const uint8_t *p, size_t n)
{
	struct log_entry e;
	const char *why;
	size_t off = 0;

	do {
		why = log_entry_next(p, n, &off, &e);
	} while (!why && e.type);
	return why;
}

START_TEST(log_entry_rules)
{
	static uint8_t p[8192];
	const struct key a = key_make(5, ITEM_INLINE, 0);
	const struct key b = key_make(6, ITEM_INLINE, 0);
	const uint64_t sum = 1;
	size_t n = entries_example(p);

	for (size_t cut = 1; cut < n; cut++) {
		struct log_entry e;
		size_t off = 0;

		while (!log_entry_next(p, cut, &off, &e) && e.type)
			ck_assert_uint_le(off, cut);
	}
	assert_why(entries_try(p, n - 1), "cut off");
	n = log_entry_put(p, key_make(5, ITEM_INODE, 0), "x", 1);
	assert_why(entries_try(p, n), "inode");
	n = log_entry_del_range(p, b, a);
	assert_why(entries_try(p, n), "empty range");
	n = log_entry_data(p, 0, 1, 1, &sum);
	assert_why(entries_try(p, n + 4096), "inode number");
	n = log_entry_data(p, 1, 1ull << 51, 1, &sum);
	assert_why(entries_try(p, n + 4096), "outside any file");
	p[0] = 77;
	assert_why(entries_try(p, 1), "unknown type");
}
END_TEST

static void record_example(uint8_t *r, uint32_t flags)
{
	struct log_header h = {
		.magic = le32_put(TRAX_LOG_MAGIC),
		.bytes = le32_put(8192),
		.flags = le32_put(flags),
		.epoch = le64_put(3),
		.gen = le64_put(4),
		.seq = le64_put(9),
		.addr = le64_put(4096),
		.acked = le64_put(8),
		.prev = le64_put(1),
	};
	const size_t n = entries_example(r + sizeof(h));

	memcpy(h.uuid, uuid, 16);
	h.payload = le32_put((uint32_t)n);
	h.chain = le64_put(log_chain(3, 9, 1, r + sizeof(h), n));
	log_header_seal(&h);
	memcpy(r, &h, sizeof(h));
}

START_TEST(record_every_byte_counts)
{
	static uint8_t r[8192];
	const uint8_t other[16] = { 0 };
	const struct log_header *h = (const void *)r;
	size_t n;

	record_example(r, 0);
	assert_good(log_header_verify(r, sizeof(r), uuid, 4096));
	n = sizeof(*h) + le32_get(h->payload);
	for (size_t i = 0; i < n; i++) {
		r[i] ^= 0x80;
		ck_assert_ptr_nonnull(log_header_verify(r, sizeof(r), uuid,
							4096));
		r[i] ^= 0x80;
	}
	assert_why(log_header_verify(r, 4096, uuid, 4096), "cut off");
	assert_why(log_header_verify(r, 95, uuid, 4096), "cut off");
	assert_why(log_header_verify(r, 8192, uuid, 4104), "another address");
	assert_why(log_header_verify(r, 8192, other, 4096),
		   "another file system");
}
END_TEST

START_TEST(each_rule_of_log_records_is_verified)
{
	static uint8_t r[8192];
	struct log_header *h = (void *)r;
#define BREAK(change, text)                                                \
	do {                                                               \
		record_example(r, 0);                                      \
		change;                                                    \
		log_header_seal(h);                                        \
		assert_why(log_header_verify(r, 8192, uuid, 4096), text);  \
	} while (0)
	BREAK(h->bytes = le32_put(0), "length");
	BREAK(h->bytes = le32_put(5000), "length");
	BREAK(h->bytes = le32_put(512 << 10), "length");
	BREAK(h->bytes = le32_put(12288), "cut off");
	BREAK(h->payload = le32_put(8192), "payload is longer");
	BREAK(h->payload = le32_put(UINT32_MAX), "payload is longer");
	BREAK(h->flags = le32_put(4), "flags");
	BREAK(h->seq = le64_put(0), "sequence");
	BREAK(h->acked = le64_put(9), "acknowledges itself");
	BREAK(h->epoch = le64_put(2), "payload checksum");
	BREAK(h->prev = le64_put(2), "payload checksum");
	BREAK(h->chain = le64_put(2), "payload checksum");
#undef BREAK
	record_example(r, LOG_MIRROR);
	h->acked = le64_put(20);
	log_header_seal(h);
	assert_good(log_header_verify(r, 8192, uuid, 4096));
}
END_TEST

static Suite *suite(void)
{
	const TTest *const tests[] = {
		super_there_and_back, super_every_byte_counts,
		each_rule_of_superblocks_is_verified,
		super_log_tracks_beyond_the_table, super_has_three_places,
		root_there_and_back, each_rule_of_roots_is_verified,
		keys_are_ordered, each_rule_of_inode_items_is_verified,
		each_rule_of_names_is_verified,
		each_rule_of_xattrs_is_verified, item_extent_and_owner,
		each_rule_of_other_items_is_verified,
		each_rule_of_replica_items_is_verified,
		csum_window_there_and_back, csum_window_rules,
		node_header_rules, node_leaf_rules, node_interior_rules,
		node_survives_anything, log_entries_there_and_back,
		log_entry_rules, record_every_byte_counts,
		each_rule_of_log_records_is_verified,
	};
	Suite *s = suite_create("format");
	TCase *tc = tcase_create("format");

	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}
