/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ends a freeze by blk_freeze_queue_start(): blk_mq_unfreeze_queue() on 6.1 and 6.12. Since 6.17
 * that also ends a scope of memory allocation, which blk_freeze_queue_start() does not begin, so
 * blk_mq_unfreeze_queue_nomemrestore() is used.
 */
#ifndef CHARIO_COMPAT_UNFREEZE_QUEUE_H
#define CHARIO_COMPAT_UNFREEZE_QUEUE_H

#include <linux/blk-mq.h>

#include "linux_6_17.h"

static inline void chario_unfreeze_queue(struct request_queue *q)
{
#ifdef COMPAT_LINUX_6_17
	blk_mq_unfreeze_queue_nomemrestore(q);
#else
	blk_mq_unfreeze_queue(q);
#endif
}

#endif /* CHARIO_COMPAT_UNFREEZE_QUEUE_H */
