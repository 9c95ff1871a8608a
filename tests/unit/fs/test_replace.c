/*
 * test_replace.c - files that are replaced without an fsync, by truncating and
 * rewriting them or by renaming another over them, and a power cut at every
 * write that follows: the old content is there, or the new one, whole.
 *
 * The operations are those that src/fuse makes of open(2), write(2), close(2)
 * and rename(2), in their order.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/op/fs_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define ROOT 1u
#define MOST_BYTES (1u << 20)
#define MOST_MOMENTS 600u
#define WATCH_NS 15000000000ull		/* behind the last close */
#define STEP_NS 250000000ull
#define OLD 'o'
#define NEW 'n'

struct scene {
	size_t old_bytes, new_bytes;
	bool by_rename;
	bool others_sync;	/* somebody fsyncs another file meanwhile */
	uint64_t late_ns;	/* after the last commit */
	uint64_t slow_ns;	/* between truncation and write */
};

static struct rig rig;
static struct sim_moment *moment[MOST_MOMENTS];
static unsigned moments;
static char content[MOST_BYTES];

static void take(struct sim *sim, const struct disk_request *req, void *arg)
{
	(void)arg;
	if (req->op == DISK_READ)
		return;
	ck_assert_uint_lt(moments + 1, MOST_MOMENTS);
	moment[moments++] = sim_moment_take(sim);
}

/* ---- What the front end sends ---- */

static void send_write(uint64_t ino, char what, size_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .data = content,
			    .size = bytes };

	memset(content, what, bytes);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
}

/* The times, which the kernel hands over at close. */
static void send_close(uint64_t ino)
{
	struct fs_op op = {
		.type = FS_SETATTR, .ino = ino,
		.flags = FS_SET_MTIME | FS_SET_CTIME,
	};

	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_int_eq(rig_release(&rig, ino), 0);
}

static uint64_t send_create(const char *name)
{
	struct fs_op op = {
		.type = FS_MKNOD, .ino = ROOT, .name = name,
		.mode = S_IFREG | 0644, .opens = true,
	};

	ck_assert_int_eq(rig_do(&rig, &op), 0);
	return op.attr.ino;
}

static void pass(uint64_t ns)
{
	uint64_t end = sim_now_ns(rig.sim) + ns;

	while (sim_now_ns(rig.sim) < end) {
		sim_advance(rig.sim, STEP_NS);
		fs_run(rig.fs, 0);
		rig_settle(&rig);
	}
}

static void send_truncate(uint64_t ino, uint64_t slow_ns)
{
	struct fs_op op = { .type = FS_SETATTR, .ino = ino,
			    .flags = FS_SET_SIZE };

	ck_assert_int_eq(rig_open_file(&rig, ino, O_WRONLY), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	if (slow_ns)
		sim_advance(rig.sim, slow_ns);
}

static void others_sync(uint64_t ino)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino };

	send_write(ino, 'x', 100);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
}

static void play(const struct scene *scene)
{
	uint64_t ino = send_create("file"), other = send_create("other");

	send_write(ino, OLD, scene->old_bytes);
	send_close(ino);
	ck_assert_int_eq(rig_sync(&rig), 0);
	pass(WATCH_NS);
	sim_set_hook(rig.sim, take, NULL);
	/* Something that is committed by age. */
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", NULL), 0);
	sim_advance(rig.sim, scene->late_ns);
	if (scene->by_rename)
		ino = send_create("new");
	else
		send_truncate(ino, scene->slow_ns);
	send_write(ino, NEW, scene->new_bytes);
	send_close(ino);
	if (scene->by_rename)
		ck_assert_int_eq(rig_rename(&rig, ROOT, "new", ROOT, "file", 0),
				 0);
	if (scene->others_sync)
		others_sync(other);
	pass(WATCH_NS);
	sim_set_hook(rig.sim, NULL, NULL);
	moment[moments++] = sim_moment_take(rig.sim);
}

/* ---- What is there after a cut ---- */

/* OLD or NEW: all of the file is that. */
static char read_back(struct fs *fs, const struct scene *scene)
{
	struct rig other = { .sim = rig.sim, .fs = fs };
	struct fs_attr attr;
	struct fs_op op = { .type = FS_READ, .buffer = content,
			    .size = MOST_BYTES };
	size_t i;

	ck_assert_int_eq(rig_lookup(&other, ROOT, "file", &attr), 0);
	op.ino = attr.ino;
	ck_assert_int_eq(rig_do(&other, &op), 0);
	ck_assert_uint_eq(op.result, attr.size);
	if (!op.result)
		return 0;
	for (i = 1; i < op.result; i++)
		if (content[i] != content[0])
			return 0;
	if (op.result != (content[0] == OLD ? scene->old_bytes :
					      scene->new_bytes))
		return 0;
	return content[0];
}

static char after_cut(const struct scene *scene, unsigned n, enum sim_cut cut)
{
	struct media *media = sim_moment_cut(moment[n], cut, n);
	struct sim_options options = { .seed = n, .content = media };
	struct rig then = { .options = rig.options };
	struct sim *now = rig.sim;
	char found;

	then.sim = sim_new(NULL, 256 << 11, &options);
	ck_assert_ptr_nonnull(then.sim);
	ck_assert_int_eq(fs_open(sim_env(then.sim), sim_disk(then.sim),
				 &then.options, &then.fs), 0);
	rig.sim = then.sim;
	found = read_back(then.fs, scene);
	rig.sim = now;
	fs_abandon(then.fs);
	sim_free(then.sim);
	media_free(media);
	return found;
}

static void check_scene(const struct scene *scene)
{
	char found = 0;
	unsigned n;

	rig_open(&rig, 256, 5);
	play(scene);
	for (n = 0; n < moments; n++) {
		found = after_cut(scene, n, SIM_CUT_DROP);
		ck_assert_msg(found, "%zu over %zu bytes%s: neither after a "
			      "cut at write %u of %u", scene->new_bytes,
			      scene->old_bytes,
			      scene->by_rename ? " by rename" : "", n + 1,
			      moments);
		ck_assert(after_cut(scene, n, SIM_CUT_RANDOM));
	}
	ck_assert_int_eq(found, NEW);
	while (moments)
		sim_moment_free(moment[--moments]);
	rig_close(&rig);
}

static const size_t sizes[] = { 100, 20000, 60000, 200000, MOST_BYTES };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The log is committed when its oldest change is five seconds old: the scenes
 * begin before that, some just before. */
static const uint64_t lates[] = { 0, 4000000000ull, 4999900000ull };
#define LATES (sizeof(lates) / sizeof(lates[0]))

static void check_all(struct scene scene)
{
	size_t i, j;

	for (i = 0; i < SIZES; i++) {
		for (j = 0; j < LATES; j++) {
			scene.new_bytes = sizes[i];
			scene.old_bytes = sizes[(i + j) % SIZES];
			scene.late_ns = lates[j];
			check_scene(&scene);
		}
	}
}

START_TEST(truncated_and_rewritten)
{
	check_all((struct scene){ 0 });
}
END_TEST

START_TEST(rewritten_slowly)
{
	check_all((struct scene){ .slow_ns = 500000000 });
}
END_TEST

START_TEST(renamed_over)
{
	check_all((struct scene){ .by_rename = true });
}
END_TEST

START_TEST(others_sync_meanwhile)
{
	check_all((struct scene){ .others_sync = true });
	check_all((struct scene){ .others_sync = true, .by_rename = true });
}
END_TEST

int main(void)
{
	Suite *s = suite_create("replace");
	TCase *tc = tcase_create("replace");

	tcase_add_test(tc, truncated_and_rewritten);
	tcase_add_test(tc, rewritten_slowly);
	tcase_add_test(tc, renamed_over);
	tcase_add_test(tc, others_sync_meanwhile);
	suite_add_tcase(s, tc);
	return test_run(s);
}
