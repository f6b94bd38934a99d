/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a scheduler allocates and frees. 6.1 and 6.12: in init_sched and exit_sched, with the queue
 * frozen. 7.3: in alloc_sched_data and free_sched_data, before the queue is frozen and after, so
 * that reclaim can write to the very device. Between them the block layer keeps the data in the
 * elevator_queue, also while readers of its files may still be there.
 */
#ifndef K2_COMPAT_SCHED_DATA_H
#define K2_COMPAT_SCHED_DATA_H

#include "elevator.h"
#include "linux_7_3.h"

#ifdef COMPAT_LINUX_7_3

#define K2_SCHED_DATA_OPS(alloc, free) .alloc_sched_data = (alloc), .free_sched_data = (free),

static inline void *k2_sched_data_get(struct elevator_queue *eq, struct request_queue *q,
				      void *(*alloc)(struct request_queue *))
{
	return eq->elevator_data;
}

static inline void k2_sched_data_put(struct elevator_queue *eq, void (*free)(void *))
{
}

#else

#define K2_SCHED_DATA_OPS(alloc, free)

static inline void *k2_sched_data_get(struct elevator_queue *eq, struct request_queue *q,
				      void *(*alloc)(struct request_queue *))
{
	eq->elevator_data = alloc(q);
	return eq->elevator_data;
}

static inline void k2_sched_data_put(struct elevator_queue *eq, void (*free)(void *))
{
	free(eq->elevator_data);
}

#endif

#endif /* K2_COMPAT_SCHED_DATA_H */
