/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where blk-mq wants requests inserted: given by flags on 6.12, and on 6.1 by a bool, "at the
 * head", which is translated to that flag here.
 */
#ifndef K2_COMPAT_INSERT_FLAGS_H
#define K2_COMPAT_INSERT_FLAGS_H

#include "blk-mq.h"

#ifndef BLK_MQ_INSERT_AT_HEAD
#define BLK_MQ_INSERT_AT_HEAD true
#define blk_insert_t	      bool
#endif

#endif /* K2_COMPAT_INSERT_FLAGS_H */
