/*
 * test_node.c - operations on one node against a plain array.
 */
#include <string.h>

#include "tests/rig/test.h"
#include "tree/node.h"

#define MODEL_MAX 800
#define FSID 77u

struct model_item {
	struct key key;
	size_t bytes;
	uint8_t value[600];
};

struct model {
	struct model_item item[MODEL_MAX];
	unsigned n;
};

/* XATTR pieces carry any bytes: off's low byte is the piece's number. */
static struct key some_key(uint64_t *rng)
{
	return key_make(5, ITEM_XATTR, (test_random(rng) % 300) << 8 | 1);
}

static unsigned model_find(const struct model *m, struct key key, bool *found)
{
	unsigned i = 0;

	while (i < m->n && key_cmp(m->item[i].key, key) < 0)
		i++;
	*found = i < m->n && key_cmp(m->item[i].key, key) == 0;
	return i;
}

static void compare(const struct model *m, const void *node, unsigned from)
{
	for (unsigned i = 0; i < node_count(node); i++) {
		const struct model_item *it = &m->item[from + i];
		size_t bytes;
		const void *value = node_value(node, i, &bytes);

		ck_assert_int_eq(key_cmp(node_key(node, i), it->key), 0);
		ck_assert_uint_eq(bytes, it->bytes);
		ck_assert_mem_eq(value, it->value, bytes);
	}
}

static void verify(const void *node, struct key low, struct key high)
{
	const struct node_ptr ptr = { .addr = 64, .gen = 3 };
	const char *why = node_verify(node, FSID, &ptr, node_level(node), low,
				      high);

	ck_assert_msg(!why, "%s", why);
}

static void model_put(struct model *m, unsigned i, const struct model_item *it)
{
	memmove(&m->item[i + 1], &m->item[i], (m->n - i) * sizeof(*it));
	m->item[i] = *it;
	m->n++;
}

static void model_remove(struct model *m, unsigned i, unsigned n)
{
	memmove(&m->item[i], &m->item[i + n],
		(m->n - i - n) * sizeof(m->item[0]));
	m->n -= n;
}

static void step(struct model *m, void *node, uint64_t *rng)
{
	struct model_item it = { .key = some_key(rng) };
	bool found, in_model;
	const unsigned i = node_find(node, it.key, &found);

	ck_assert_uint_eq(i, model_find(m, it.key, &in_model));
	ck_assert_int_eq(found, in_model);
	if (found) {
		unsigned n = 1;

		if (test_random(rng) % 50 == 0)
			n = node_count(node) - i;
		node_remove_run(node, i, n);
		model_remove(m, i, n);
		return;
	}
	it.bytes = 1 + test_random(rng) % 599;
	for (size_t k = 0; k < it.bytes; k++)
		it.value[k] = (uint8_t)test_random(rng);
	if (!node_fits(node, it.bytes))
		return;
	node_insert(node, i, it.key, it.value, it.bytes);
	model_put(m, i, &it);
}

START_TEST(a_leaf_agrees_with_the_model)
{
	static struct model m;
	uint64_t rng = (uint64_t)_i + 1;
	uint8_t *node = aligned_alloc(4096, TRAX_NODE_BYTES);
	uint8_t *right = aligned_alloc(4096, TRAX_NODE_BYTES);

	m.n = 0;
	node_init(node, FSID, 0, KEY_MIN, KEY_MAX);
	node_set_place(node, 64, 0, 3);
	for (unsigned k = 0; k < 3000; k++) {
		step(&m, node, &rng);
		ck_assert_uint_eq(node_count(node), m.n);
		if (k % 100 == 0) {
			compare(&m, node, 0);
			verify(node, KEY_MIN, KEY_MAX);
		}
	}
	if (m.n > 1) {
		bool to_right;
		const unsigned at = node_split_point(node, 0, 500, &to_right);

		ck_assert_uint_gt(at, 0);
		ck_assert_uint_lt(at, m.n);
		node_init(right, FSID, 0, KEY_MIN, KEY_MAX);
		node_move(node, at, right);
		ck_assert_uint_eq(node_count(node), at);
		ck_assert_uint_eq(node_count(right), m.n - at);
		compare(&m, node, 0);
		compare(&m, right, at);
	}
	free(node);
	free(right);
}
END_TEST

/* Whatever the sizes, after a split the new item fits on its side. */
START_TEST(after_a_split_the_item_fits)
{
	static uint8_t value[TRAX_MAX_ITEM_BYTES];
	uint64_t rng = (uint64_t)_i + 100;
	uint8_t *node = aligned_alloc(4096, TRAX_NODE_BYTES);
	uint8_t *right = aligned_alloc(4096, TRAX_NODE_BYTES);

	for (unsigned round = 0; round < 2000; round++) {
		const size_t most = 1 + test_random(&rng) % 4096;
		const size_t bytes = 1 + test_random(&rng) % 4096;
		unsigned i, at, n = 0;
		bool to_right;

		node_init(node, FSID, 0, KEY_MIN, KEY_MAX);
		for (;;) {
			const size_t b = 1 + test_random(&rng) % most;

			if (!node_fits(node, b))
				break;
			node_insert(node, n, key_make(1, ITEM_XATTR, n), value,
				    b);
			n++;
		}
		if (node_fits(node, bytes))
			continue;
		i = (unsigned)(test_random(&rng) % (n + 1));
		at = node_split_point(node, i, bytes, &to_right);
		node_init(right, FSID, 0, KEY_MIN, KEY_MAX);
		node_move(node, at, right);
		ck_assert(node_fits(to_right ? right : node, bytes));
		ck_assert(to_right ? i >= at : i <= at);
		ck_assert(at > 0);
	}
	free(node);
	free(right);
}
END_TEST

START_TEST(an_interior_node_agrees_with_the_model)
{
	uint8_t *node = aligned_alloc(4096, TRAX_NODE_BYTES);
	unsigned n = 0;

	node_init(node, FSID, 1, KEY_MIN, KEY_MAX);
	node_set_place(node, 64, 0, 3);
	while (!node_child_full(node)) {
		const struct node_ptr ptr = { 1024 + 32 * n, 0, n, 1 };

		node_child_insert(node, n, n ? key_make(n, 1, 0) : KEY_MIN,
				  &ptr);
		n++;
	}
	ck_assert_uint_eq(n, NODE_MAX_CHILDREN);
	verify(node, KEY_MIN, KEY_MAX);
	ck_assert_uint_eq(node_child_find(node, KEY_MIN), 0);
	ck_assert_uint_eq(node_child_find(node, KEY_MAX), n - 1);
	for (unsigned i = 1; i < n; i++) {
		const struct key key = key_make(i, 1, 0);

		ck_assert_uint_eq(node_child_find(node, key), i);
		ck_assert_uint_eq(node_child_find(node, key_before(key)),
				  i - 1);
		ck_assert_int_eq(key_cmp(node_child_high(node, i - 1),
					 key_before(key)), 0);
	}
	node_child_remove(node, 5);
	ck_assert_uint_eq(node_child(node, 5).csum, 6);
	ck_assert_uint_eq(node_child_find(node, key_make(5, 1, 0)), 4);
	free(node);
}
END_TEST

START_TEST(the_key_before_is_found)
{
	struct key k = key_make(7, ITEM_NAME, 0);

	ck_assert_int_eq(key_cmp(key_after(key_before(k)), k), 0);
	k = (struct key){ 7, 0, 0 };
	ck_assert_int_eq(key_cmp(key_after(key_before(k)), k), 0);
	ck_assert_int_eq(key_cmp(key_before(KEY_MIN), KEY_MIN), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("node");
	TCase *tc = tcase_create("node");

	tcase_add_loop_test(tc, a_leaf_agrees_with_the_model, 0, 10);
	tcase_add_loop_test(tc, after_a_split_the_item_fits, 0, 5);
	tcase_add_test(tc, an_interior_node_agrees_with_the_model);
	tcase_add_test(tc, the_key_before_is_found);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
