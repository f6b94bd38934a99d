/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address of the memory of a read or write, and how much of it is contiguous in the caller's
 * address space. An iov_iter has the members iov and ubuf on 6.1; on 6.12 iter_iov_addr() and
 * iter_iov_len() cover both.
 */
#ifndef CHARIO_COMPAT_ITER_SEGMENT_H
#define CHARIO_COMPAT_ITER_SEGMENT_H

#include <linux/uio.h>

#ifdef iter_iov_addr
#define CHARIO_ITER_HAS_ACCESSORS
#endif

static inline size_t chario_iter_segment(const struct iov_iter *iter, unsigned long *address)
{
#ifdef CHARIO_ITER_HAS_ACCESSORS
	*address = (unsigned long)iter_iov_addr(iter);
	return min_t(size_t, iter_iov_len(iter), iov_iter_count(iter));
#else
	if (iter_is_ubuf(iter)) {
		*address = (unsigned long)iter->ubuf + iter->iov_offset;
		return iov_iter_count(iter);
	}
	*address = (unsigned long)iter->iov->iov_base + iter->iov_offset;
	return min_t(size_t, iter->iov->iov_len - iter->iov_offset, iov_iter_count(iter));
#endif
}

#endif /* CHARIO_COMPAT_ITER_SEGMENT_H */
