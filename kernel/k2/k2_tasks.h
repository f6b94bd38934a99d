/* SPDX-License-Identifier: GPL-2.0-only */
/* Declared tasks and their owners, see k2_tasks.c. The policy's part is k2_declared.h. */
#ifndef K2_TASKS_H
#define K2_TASKS_H

#include <linux/list.h>
#include <linux/wait.h>

#include "k2_declared.h"
#include "k2_owner.h"

struct k2_data;
struct request;

/* Since it was declared, on all schedulers that the device has had. */
struct k2_task_counts {
	u64 jobs, early, late;
	u64 waited_ns_max;
	u64 waited_over[K2_CAUSES];
	u64 foreign; /* requests of others on its level */
	u64 interrupted; /* times that k2 went while the task was armed */
};

/* One declaration. It lives as long as the file that it was written to is open. */
struct k2_task {
	/* Set before it is added, and not changed. */
	dev_t devt;
	struct k2_declaration stated;
	struct k2_owner owner;
	wait_queue_head_t *changed; /* woken when a count changes */

	/* Protected by k2_tasks_lock. */
	struct list_head in_file;
	struct list_head in_all;
	struct k2_data *k2; /* where it is armed, or was until its owner went */

	/* Protected by k2->lock while @k2 is set, else by k2_tasks_lock. */
	bool is_armed;
	int error; /* why it is not: one of k2_tasks_add() */
	u32 number; /* for the policy */
	struct k2_task_counts counts; /* without those of the policy while it is armed */
};

/*
 * Adds a task to the list of a file, and arms it. Errors:
 * -ENODEV: k2 is not the scheduler of its device.
 * -ENODATA: no limits are set for it.
 * -ERANGE: any smallest command may take longer than block_us, namely @least_ns.
 * -EBUSY: its owner has a task on this level, or there are too many tasks.
 */
int k2_tasks_add(struct k2_task *task, struct list_head *file, u64 *least_ns);
/* Removes, disarms and frees all tasks of a file. */
void k2_tasks_remove(struct list_head *file);
void k2_task_free(struct k2_task *task);

/* One line for each task of a file, in memory of @size bytes; returns the length. */
size_t k2_tasks_print_file(struct list_head *file, char *text, size_t size);
/* The sum of all counts that only grow when something goes wrong. */
u64 k2_tasks_faults(struct list_head *file);

/* For a device: k2 begins, ends, has got limits, is asked for its tasks. */
void k2_tasks_begin(struct k2_data *k2);
void k2_tasks_end(struct k2_data *k2);
void k2_tasks_arm(struct k2_data *k2);
size_t k2_tasks_print(struct k2_data *k2, char *text, size_t size);

/* All below are called with k2->lock held. */

/*
 * The queue for a request of the current thread on real-time level @level: a level that it owns or
 * nobody does, or best effort.
 */
unsigned int k2_tasks_queue(struct k2_data *k2, unsigned int level);
/* The current thread's task on a level that it may use; NULL: it has declared none. */
struct k2_task *k2_tasks_current(struct k2_data *k2, unsigned int level);
void k2_tasks_arrival(struct k2_data *k2, struct request *rq, const struct k2_task *task,
		      u64 now_ns);
/* @rq, or the rest of it, is queued again. */
void k2_tasks_back(struct k2_data *k2, struct request *rq);
/* The last of @rq has ended. May be called again. */
void k2_tasks_ended(struct k2_data *k2, struct request *rq, u64 now_ns);
/*
 * k2 learns of a real-time request only now that it has ended. Its thread is not known: it may be
 * of any task of its level. Returns whether there is one.
 */
bool k2_tasks_bypassed(struct k2_data *k2, struct request *rq, unsigned int level, u64 now_ns);
/* Called where the policy may have counted something. */
void k2_tasks_wake(struct k2_data *k2);
/* Disarms the tasks whose owner has gone. */
void k2_tasks_look(struct k2_data *k2);

/* k2_file.c */
int k2_file_register(void);
void k2_file_unregister(void);

#endif /* K2_TASKS_H */
