// SPDX-License-Identifier: GPL-2.0-only
/* Dispatches a request in pieces, see blk-mq-split.h. */
#include <linux/bio.h>
#include <linux/blk-crypto.h>
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/export.h>

#include "blk-mq.h"
#include "blk-mq-split.h"
