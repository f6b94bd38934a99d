/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where blk-mq wants requests inserted: on 6.12 in flags; on 6.1 in a bool, "at the head", which is
 * translated here to that flag.
 */
#ifndef K2_COMPAT_INSERT_FLAGS_H
#define K2_COMPAT_INSERT_FLAGS_H

#include "blk-mq.h"

#ifndef BLK_MQ_INSERT_AT_HEAD
#define BLK_MQ_INSERT_AT_HEAD true
#define blk_insert_t	      bool
#endif

#endif /* K2_COMPAT_INSERT_FLAGS_H */
