/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * start_time_ns: when a request came. 6.1 and 6.12 set it for each request that a scheduler sees;
 * 6.17 sets it only for requests counted as I/O. With queue/iostats off, it then belongs to an
 * earlier request with the same tag.
 */
#ifndef K2_COMPAT_START_TIME_H
#define K2_COMPAT_START_TIME_H

#include <linux/blk-mq.h>

#include "blk.h"
#include "linux_6_17.h"

/* Called when @rq is allocated; since 6.17 this is before the block layer may set it. */
static inline void k2_start_time_set(struct request *rq)
{
#ifdef COMPAT_LINUX_6_17
	rq->start_time_ns = blk_time_get_ns();
#endif
}

#endif /* K2_COMPAT_START_TIME_H */
