/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bio_split() reports a lack of memory by NULL on 6.1 and 6.12, and by an ERR_PTR() since 6.17. The
 * compiler sees no difference.
 */
#ifndef K2_COMPAT_BIO_SPLIT_H
#define K2_COMPAT_BIO_SPLIT_H

#include <linux/bio.h>
#include <linux/err.h>

/* NULL: no memory now. */
static inline struct bio *k2_bio_split(struct bio *bio, unsigned int sectors, struct bio_set *set)
{
	struct bio *front = bio_split(bio, sectors, GFP_NOWAIT, set);

	return IS_ERR(front) ? NULL : front;
}

#endif /* K2_COMPAT_BIO_SPLIT_H */
