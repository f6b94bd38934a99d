/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claims a block device exclusively, as mount does. 6.1: blkdev_get_by_dev() with FMODE_EXCL. 6.12,
 * which has BLK_OPEN_READ: bdev_file_open_by_dev() with a holder, which returns a file.
 */
#ifndef CHARIO_COMPAT_CLAIM_DISK_H
#define CHARIO_COMPAT_CLAIM_DISK_H

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>

#ifdef BLK_OPEN_READ

struct chario_claim {
	struct file *held; /* or an ERR_PTR() */
};

static inline struct chario_claim chario_claim_disk(dev_t devt, void *holder)
{
	return (struct chario_claim){bdev_file_open_by_dev(devt, BLK_OPEN_READ, holder, NULL)};
}

static inline struct block_device *chario_claimed(struct chario_claim claim)
{
	return file_bdev(claim.held);
}

static inline void chario_unclaim_disk(struct chario_claim claim)
{
	fput(claim.held);
}

#else

struct chario_claim {
	struct block_device *held; /* or an ERR_PTR() */
};

static inline struct chario_claim chario_claim_disk(dev_t devt, void *holder)
{
	return (struct chario_claim){blkdev_get_by_dev(devt, FMODE_READ | FMODE_EXCL, holder)};
}

static inline struct block_device *chario_claimed(struct chario_claim claim)
{
	return claim.held;
}

static inline void chario_unclaim_disk(struct chario_claim claim)
{
	blkdev_put(claim.held, FMODE_READ | FMODE_EXCL);
}

#endif

#endif /* CHARIO_COMPAT_CLAIM_DISK_H */
