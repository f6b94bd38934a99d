/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The creator of the elevator_queue. 6.1 and 6.12: init_sched creates it, and frees it if it fails.
 * 6.17: the caller of init_sched creates and frees it.
 */
#ifndef K2_COMPAT_ELEVATOR_QUEUE_H
#define K2_COMPAT_ELEVATOR_QUEUE_H

#include "elevator.h"
#include "linux_6_17.h"

#ifdef COMPAT_LINUX_6_17

#define k2_init_sched_t struct elevator_queue

static inline struct elevator_queue *k2_elevator_queue_get(struct request_queue *q,
							   k2_init_sched_t *given)
{
	return given;
}

static inline void k2_elevator_queue_put(struct elevator_queue *eq)
{
}

#else

#define k2_init_sched_t struct elevator_type

static inline struct elevator_queue *k2_elevator_queue_get(struct request_queue *q,
							   k2_init_sched_t *given)
{
	return elevator_alloc(q, given);
}

static inline void k2_elevator_queue_put(struct elevator_queue *eq)
{
	kobject_put(&eq->kobj);
}

#endif

#endif /* K2_COMPAT_ELEVATOR_QUEUE_H */
