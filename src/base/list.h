/*
 * list.h - intrusive doubly linked list, iterated in insertion order.
 *
 * A node belongs to at most one list; a node that is in none points to itself
 * (list_init), so list_del of such a node is harmless.
 */
#ifndef TRAX_BASE_LIST_H
#define TRAX_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define list_entry(ptr, type, member) container_of(ptr, type, member)

#define list_first(head, type, member) \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))

#define list_for_each(pos, head) \
	for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)

/* Goes through a list; the body may remove `pos`. */
#define list_for_each_safe(pos, tmp, head)                          \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Adds at the end. */
static inline void list_add(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void list_add_front(struct list *head, struct list *l)
{
	list_add(head->next, l);
}

static inline void list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

/* Number of nodes; it goes through the list. */
static inline unsigned list_count(const struct list *head)
{
	const struct list *pos;
	unsigned n = 0;

	list_for_each(pos, head)
		n++;
	return n;
}

#endif
