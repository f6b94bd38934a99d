/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long the debugfs files of an elevator can be read. 6.1 and 6.12 remove them before
 * exit_sched, 6.17 after it. Meanwhile the queue has no elevator, or the next one already. A reader
 * holds elevator_lock, which protects that, and checks which elevator the queue has.
 */
#ifndef K2_COMPAT_ELEVATOR_FILES_H
#define K2_COMPAT_ELEVATOR_FILES_H

#include "elevator.h"
#include "linux_6_17.h"

#ifdef COMPAT_LINUX_6_17

static inline void k2_files_lock(struct request_queue *q)
{
	mutex_lock(&q->elevator_lock);
}

static inline void k2_files_unlock(struct request_queue *q)
{
	mutex_unlock(&q->elevator_lock);
}

#else

static inline void k2_files_lock(struct request_queue *q)
{
}

static inline void k2_files_unlock(struct request_queue *q)
{
}

#endif

#endif /* K2_COMPAT_ELEVATOR_FILES_H */
