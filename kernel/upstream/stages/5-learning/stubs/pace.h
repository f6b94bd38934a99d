/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* There is no pace of background writes yet. */
#ifndef K2_PACE_H
#define K2_PACE_H

#include "types.h"

struct k2_pace {
};

static inline void k2_pace_rt_write(struct k2_pace *pace, u64 now_ns)
{
}

static inline void k2_pace_rt_read(struct k2_pace *pace, bool is_late, u64 now_ns)
{
}

static inline u64 k2_pace_until_ns(struct k2_pace *pace, u64 now_ns)
{
	return 0;
}

static inline bool k2_pace_one_is_enough(struct k2_pace *pace, u32 bytes, u64 needs_ns, u64 now_ns)
{
	return false;
}

static inline void k2_pace_begin(struct k2_pace *pace, u32 bytes, u64 now_ns)
{
}

static inline void k2_pace_end(struct k2_pace *pace, u32 bytes, u64 stalled_ns, u64 now_ns)
{
}

static inline void k2_pace_cancel(struct k2_pace *pace)
{
}

static inline void k2_pace_untold(struct k2_pace *pace)
{
}

#endif /* K2_PACE_H */
