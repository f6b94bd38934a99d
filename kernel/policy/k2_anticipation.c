// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_anticipation.h"

#define CREDIT_NS_MAX K2_IDLE_NS_MAX
/* Bytes in so many ns; more than the largest counts as that. */
#define RATE_SHIFT 16
#define RATE_MAX   0x1000000U

static u32 clamp_u32(u64 value, u32 most)
{
	if (!value)
		return 1;
	return value < most ? (u32)value : most;
}

/* Without the reserve: most commands do not need it. */
static u64 mostly_ns(const struct k2_device *device, u32 op, u32 bytes)
{
	return k2_device_time_ns(device, op, bytes) - k2_device_reserve_ns(device, op);
}

static u32 rate(const struct k2_device *device, u32 op, u32 bytes)
{
	u32 ns = clamp_u32(mostly_ns(device, op, bytes), ~0U);

	return clamp_u32(k2_div((u64)bytes << RATE_SHIFT, ns), RATE_MAX);
}

static void earn(struct k2_anticipation *anticipation, u64 now_ns)
{
	u64 since_ns = anticipation->credit_since_ns;
	u64 earned_ns = now_ns > since_ns ? (now_ns - since_ns) / K2_LOSS_PARTS_TOTAL : 0;
	u64 room_ns = CREDIT_NS_MAX - anticipation->credit_ns;

	anticipation->credit_ns += earned_ns < room_ns ? earned_ns : room_ns;
	anticipation->credit_since_ns = now_ns;
}

static bool decide(struct k2_anticipation *anticipation, const struct k2_device *device, u32 op,
		   u64 bound_ns, const struct k2_expected *expected, u64 now_ns)
{
	u32 bytes = anticipation->bytes;
	u32 piece_bytes = k2_device_fit(device, op, bytes, bound_ns);
	u64 idle_ns = k2_device_time_ns(device, op, piece_bytes) + expected->window_ns;
	u64 lost_ns;

	earn(anticipation, now_ns);
	if (idle_ns > K2_IDLE_NS_MAX)
		return false;
	/* Half of it on average. */
	lost_ns = k2_div(idle_ns / 2 * rate(device, op, piece_bytes), rate(device, op, bytes));
	if (lost_ns * K2_LOSS_PARTS > expected->latest_ns - expected->since_ns ||
	    lost_ns > anticipation->credit_ns)
		return false;
	anticipation->credit_ns -= lost_ns;
	anticipation->count++;
	return true;
}

bool k2_anticipates(struct k2_anticipation *anticipation, const struct k2_device *device, u32 op,
		    u64 bound_ns, const struct k2_expected *expected, u64 now_ns)
{
	if (anticipation->decided_since_ns != expected->since_ns) {
		anticipation->decided_since_ns = expected->since_ns;
		anticipation->waits = decide(anticipation, device, op, bound_ns, expected, now_ns);
		anticipation->bytes = 0;
	}
	return anticipation->waits;
}
