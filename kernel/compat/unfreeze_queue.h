/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of what blk_freeze_queue_start() began: blk_mq_unfreeze_queue() on 6.1 and 6.12. On 7.3
 * that also ends a scope of memory allocation, which blk_freeze_queue_start() does not begin; there
 * blk_mq_unfreeze_queue_nomemrestore() is its end.
 */
#ifndef CHARIO_COMPAT_UNFREEZE_QUEUE_H
#define CHARIO_COMPAT_UNFREEZE_QUEUE_H

#include <linux/blk-mq.h>

#include "linux_7_3.h"

static inline void chario_unfreeze_queue(struct request_queue *q)
{
#ifdef COMPAT_LINUX_7_3
	blk_mq_unfreeze_queue_nomemrestore(q);
#else
	blk_mq_unfreeze_queue(q);
#endif
}

#endif /* CHARIO_COMPAT_UNFREEZE_QUEUE_H */
