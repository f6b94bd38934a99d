/* SPDX-License-Identifier: GPL-2.0-only */
/* Declared tasks and their owners, see k2_tasks.c. The policy's part is in k2_declared.h. */
#ifndef K2_TASKS_H
#define K2_TASKS_H

#include <linux/list.h>
#include <linux/wait.h>

#include "k2_declared.h"
#include "k2_owner.h"

struct k2_data;
struct request;

/* Counts since the declaration, over all schedulers of the device since then. */
struct k2_task_counts {
	u64 jobs, early, late;
	u64 waited_ns_max;
	u64 waited_over[K2_CAUSES];
	u64 foreign; /* requests of other owners on its level */
	u64 interrupted; /* times that k2 was replaced while the task was armed */
};

/* A declaration. It lives while the file that it was written to is open. */
struct k2_task {
	/* Set before the task is added, and constant. */
	dev_t devt;
	struct k2_declaration stated;
	struct k2_owner owner;
	wait_queue_head_t *changed; /* woken when a count changes */

	/* Protected by k2_tasks_lock. */
	struct list_head in_file;
	struct list_head in_all;
	struct k2_data *k2; /* where it is armed, or was until its owner exited */

	/* Protected by k2->lock while @k2 is set, else by k2_tasks_lock. */
	bool is_armed;
	int error; /* why it is not armed: an error of k2_tasks_add(), or -ESRCH */
	u32 number; /* its number in the policy */
	struct k2_task_counts counts; /* while armed, without the policy's counts */
};

/*
 * Adds a task to the list of a file, and arms it. Errors:
 * -ENODEV: the scheduler of the device is not k2.
 * -ENODATA: the device has no limits.
 * -ERANGE: a smallest command may take @least_ns, which is longer than block_us.
 * -EBUSY: the owner has a task on this level, or there are too many tasks.
 */
int k2_tasks_add(struct k2_task *task, struct list_head *file, u64 *least_ns);
/* Removes, disarms and frees all tasks of a file. */
void k2_tasks_remove(struct list_head *file);
void k2_task_free(struct k2_task *task);

/* Prints a line per task of a file to @size bytes of memory; returns the length. */
size_t k2_tasks_print_file(struct list_head *file, char *text, size_t size);
/* The sum of all counts that grow only when something fails. */
u64 k2_tasks_faults(struct list_head *file);

/* For a device: k2 begins; ends; got limits; prints its tasks. */
void k2_tasks_begin(struct k2_data *k2);
void k2_tasks_end(struct k2_data *k2);
void k2_tasks_arm(struct k2_data *k2);
size_t k2_tasks_print(struct k2_data *k2, char *text, size_t size);

/* The functions below are called with k2->lock held. */

/*
 * The queue for a request of the current thread on real-time level @level: the first level from
 * there that it owns or that has no owner, or else best effort.
 */
unsigned int k2_tasks_queue(struct k2_data *k2, unsigned int level);
/* The current thread's task on a level that it may use; NULL: it declared none. */
struct k2_task *k2_tasks_current(struct k2_data *k2, unsigned int level);
void k2_tasks_arrival(struct k2_data *k2, struct request *rq, const struct k2_task *task,
		      u64 now_ns);
/* @rq, or the rest of it, is queued again. */
void k2_tasks_back(struct k2_data *k2, struct request *rq);
/* The last part of @rq has ended. May be called more than once. */
void k2_tasks_ended(struct k2_data *k2, struct request *rq, u64 now_ns);
/*
 * A real-time request has ended that k2 did not see before. Its thread is unknown, so it may belong
 * to any task of its level. Returns whether the level has a task.
 */
bool k2_tasks_bypassed(struct k2_data *k2, struct request *rq, unsigned int level, u64 now_ns);
/* Wakes the owners if the policy has counted faults. */
void k2_tasks_wake(struct k2_data *k2);
/* Disarms tasks whose owner has exited. */
void k2_tasks_look(struct k2_data *k2);

/* k2_file.c */
int k2_file_register(void);
void k2_file_unregister(void);

#endif /* K2_TASKS_H */
