/*
 * print.c - structures as text: for chkfs, for messages, for failed tests.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format/format.h"

/* A buffer that text is appended to; what does not fit is cut off. */
struct text {
	char *at;
	size_t left;
};

static void text_add(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!t->left)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n;
	t->left -= (size_t)n;
}

static void text_add_bytes(struct text *t, const char *s, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c < ' ' || c == 0x7f || c == '\\')
			text_add(t, "\\%03o", c);
		else
			text_add(t, "%c", c);
	}
}

void super_print(const struct super *super, char *buf, size_t bytes)
{
	struct text t = { buf, bytes };

	text_add(&t, "uuid ");
	for (unsigned i = 0; i < 16; i++)
		text_add(&t, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ?
			 "-" : "", super->shown_uuid[i]);
	text_add(&t, "\nlabel \"");
	text_add_bytes(&t, super->label, strnlen(super->label,
						 sizeof(super->label)));
	text_add(&t, "\"\nsectors %" PRIu64 ", blocks of %u/%u bytes"
		 ", second superblock at %" PRIu64 "\n", super->sectors,
		 super->logical_bytes, super->physical_bytes,
		 super->second_sector);
	text_add(&t, "features %#" PRIx64 " %#" PRIx64 " %#" PRIx64
		 ", version %" PRIu64 "\n", super->compat, super->ro_compat,
		 super->incompat, super->version);
	text_add(&t, "root areas of %u sectors at %" PRIu64 " %" PRIu64
		 ", %" PRIu64 " %" PRIu64 "\n", super->area_sectors,
		 super->area_sector[0][0], super->area_sector[0][1],
		 super->area_sector[1][0], super->area_sector[1][1]);
	if (super->geom_sector)
		text_add(&t, "geometry of %u bytes at %" PRIu64
			 ", room for it %" PRIu64 "+%u\n",
			 super->geom_bytes, super->geom_sector,
			 super->room_sector, super->room_sectors);
	else
		text_add(&t, "pseudo-tracks of %u sectors\n",
			 super->pseudo_track_sectors);
	text_add(&t, "%u log tracks:", super->log_tracks);
	for (unsigned i = 0; i < super->log_tracks; i++)
		text_add(&t, " %" PRIu64 "+%u", super->log[i].sector,
			 super->log[i].sectors);
	text_add(&t, "\n");
}

void root_print(const struct root *root, char *buf, size_t bytes)
{
	struct text t = { buf, bytes };

	text_add(&t, "gen %" PRIu64 ", epoch %016" PRIx64 ", %s\n", root->gen,
		 root->epoch, root->clean ? "clean" : "in use");
	text_add(&t, "node %" PRIu64 " mirror %" PRIu64 " level %u gen %" PRIu64
		 " csum %016" PRIx64 "\n", root->tree.addr, root->tree.addr2,
		 root->level, root->tree.gen, root->tree.csum);
	text_add(&t, "log cut %" PRIu64 " chain %016" PRIx64 " tail %" PRIu64
		 "\n", root->cut_seq, root->cut_chain, root->tail_seq);
	text_add(&t, "inodes %" PRIu64 ", next %" PRIu64 ", next group %" PRIu64
		 "\n", root->inodes, root->next_ino_seq, root->next_dirgroup);
	text_add(&t, "slot map of %u bytes, group table of %u bytes, csum %016"
		 PRIx64 "\n", root->slotmap_bytes, root->group_bytes,
		 root->payload_csum);
}

/* ---- Items: of verified values ------------------------------------------ */

static void print_inode(struct text *t, const struct inode_item *i)
{
	text_add(t, "mode %o uid %u gid %u nlink %u size %" PRIu64
		 " sectors %" PRIu64 " parent %" PRIu64, le32_get(i->mode),
		 le32_get(i->uid), le32_get(i->gid), le32_get(i->nlink),
		 le64_get(i->size), le64_get(i->sectors),
		 le64_get(i->parent));
	text_add(t, " entries %" PRIu64 " next %" PRIu64 " group %" PRIu64
		 " flags %#x xattrs %u", le64_get(i->entries),
		 le64_get(i->next_seq), le64_get(i->dirgroup),
		 le32_get(i->flags), le32_get(i->xattrs));
}

static void print_names(struct text *t, const void *value, size_t n)
{
	for (size_t at = 0; at < n; ) {
		const struct name_record *r =
			(const void *)((const char *)value + at);

		text_add(t, "%sino %" PRIu64 " seq %" PRIu64 " type %u \"",
			 at ? ", " : "", le64_get(r->ino), le64_get(r->seq),
			 r->type);
		text_add_bytes(t, (const char *)(r + 1), r->bytes);
		text_add(t, "\"");
		at += sizeof(*r) + r->bytes;
	}
}

static void print_xattr(struct text *t, struct key key, const void *value,
			size_t n)
{
	const struct xattr_head *head = value;

	if (key.off & 0xff) {
		text_add(t, "piece of %zu bytes", n);
		return;
	}
	text_add(t, "\"");
	text_add_bytes(t, (const char *)(head + 1), head->name_bytes);
	text_add(t, "\" %u bytes in %u pieces", le32_get(head->value_bytes),
		 head->pieces);
}

static void print_extent(struct text *t, const struct extent_item *e)
{
	const uint32_t flags = le32_get(e->flags);

	text_add(t, "%" PRIu64 "+%" PRIu64 "%s%s", le64_get(e->addr),
		 le64_get(e->sectors),
		 flags & EXTENT_UNWRITTEN ? " unwritten" : "",
		 flags & EXTENT_KNOWN ? " known" : "");
}

static void print_owner(struct text *t, const struct owner_item *o)
{
	static const char *const kinds[] = {
		"", "data", "nodes", "log", "super", "area", "geometry",
		"replica", "bad",
	};

	text_add(t, "+%" PRIu64 " %s", le64_get(o->sectors), kinds[o->kind]);
	if (o->kind == OWNER_DATA)
		text_add(t, " ino %" PRIu64 " at %" PRIu64, le64_get(o->ino),
			 le64_get(o->off));
}

static void print_csum(struct text *t, const void *value, size_t n)
{
	unsigned blocks = 0, i;
	struct csum_window w;

	csum_window_decode(value, n, &w);
	for (i = 0; i < TRAX_CSUM_PIECES; i++)
		blocks += (unsigned)__builtin_popcount(w.mask[i]);
	text_add(t, "%u blocks", blocks);
}

static void print_orphan(struct text *t, const struct orphan_item *o)
{
	if (o->what == ORPHAN_DELETE)
		text_add(t, "delete");
	else
		text_add(t, "truncate to %" PRIu64, le64_get(o->size));
}

static void print_replica(struct text *t, const struct replica_item *r)
{
	text_add(t, "%u blocks at %" PRIu64 " in region %" PRIu64
		 " number %" PRIx64, le16_get(r->blocks), le64_get(r->addr),
		 le64_get(r->region), le64_get(r->number));
}

static void print_region(struct text *t, const struct region_item *r)
{
	text_add(t, "+%u number %" PRIx64 ", %u copies, %u uses",
		 le32_get(r->sectors), le64_get(r->number),
		 le32_get(r->copies), le32_get(r->uses));
}

static void print_copies(struct text *t, const struct copy_entry *e, size_t n)
{
	text_add(t, "%zu copies, the first of ino %" PRIu64 " block %" PRIu64,
		 n / sizeof(*e), le64_get(e->ino), le64_get(e->block));
}

static void print_error(struct text *t, const struct error_item *e)
{
	static const char *const what[] = {
		[0] = "unknown",
		[ERROR_READ] = "cannot be read",
		[ERROR_CSUM] = "wrong checksum",
		[ERROR_LOST] = "could not be written",
	};

	text_add(t, "ino %" PRIu64 " offset %" PRIu64 " at %" PRIu64 "+%u %s%s",
		 le64_get(e->ino), le64_get(e->off), le64_get(e->addr),
		 le32_get(e->sectors),
		 e->what <= ERROR_LOST ? what[e->what] : what[0],
		 e->healed ? ", healed" : "");
}

void item_print(struct key key, const void *value, size_t n, char *buf,
		size_t bytes)
{
	struct text t = { buf, bytes };
	const char *why = item_verify(key, value, n);
	char name[64];

	text_add(&t, "%s: ", key_text(key, name, sizeof(name)));
	if (why)
		text_add(&t, "%zu bytes, %s", n, why);
	else if (key.type == ITEM_INODE)
		print_inode(&t, value);
	else if (key.type == ITEM_NAME || key.type == ITEM_ENTRY)
		print_names(&t, value, n);
	else if (key.type == ITEM_XATTR)
		print_xattr(&t, key, value, n);
	else if (key.type == ITEM_EXTENT)
		print_extent(&t, value);
	else if (key.type == ITEM_OWNER)
		print_owner(&t, value);
	else if (key.type == ITEM_CSUM)
		print_csum(&t, value, n);
	else if (key.type == ITEM_ORPHAN)
		print_orphan(&t, value);
	else if (key.type == ITEM_REPLICA)
		print_replica(&t, value);
	else if (key.type == ITEM_REGION)
		print_region(&t, value);
	else if (key.type == ITEM_COPIES)
		print_copies(&t, value, n);
	else if (key.type == ITEM_ERROR)
		print_error(&t, value);
	else
		text_add(&t, "%zu bytes", n);
}
