/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claiming a block device for oneself, as mount does. 6.1: blkdev_get_by_dev() with FMODE_EXCL.
 * 6.12: bdev_file_open_by_dev() with a holder, which returns a file.
 */
#ifndef CHARIO_COMPAT_CLAIM_DISK_H
#define CHARIO_COMPAT_CLAIM_DISK_H

#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)

typedef struct file chario_claim;

static inline chario_claim *chario_claim_disk(dev_t devt, void *holder)
{
	return bdev_file_open_by_dev(devt, BLK_OPEN_READ, holder, NULL);
}

static inline struct block_device *chario_claimed(chario_claim *claim)
{
	return file_bdev(claim);
}

static inline void chario_unclaim_disk(chario_claim *claim)
{
	fput(claim);
}

#else

typedef struct block_device chario_claim;

static inline chario_claim *chario_claim_disk(dev_t devt, void *holder)
{
	return blkdev_get_by_dev(devt, FMODE_READ | FMODE_EXCL, holder);
}

static inline struct block_device *chario_claimed(chario_claim *claim)
{
	return claim;
}

static inline void chario_unclaim_disk(chario_claim *claim)
{
	blkdev_put(claim, FMODE_READ | FMODE_EXCL);
}

#endif

#endif /* CHARIO_COMPAT_CLAIM_DISK_H */
