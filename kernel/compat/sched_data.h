/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a scheduler allocates and frees its data. Up to 6.17: in init_sched and exit_sched, with the
 * queue frozen. Since 6.19 and 6.18.y: in alloc_sched_data before the queue is frozen, and in
 * free_sched_data after, so that reclaim can write to that device. In between, the elevator_queue
 * has the data, even while its files may still be read.
 */
#ifndef K2_COMPAT_SCHED_DATA_H
#define K2_COMPAT_SCHED_DATA_H

#include "elevator.h"

#ifdef COMPAT_HAS_SCHED_DATA

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
