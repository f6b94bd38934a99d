// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_delay.h"

#define EPOCH_NS      4000000000ULL
#define EPOCH_SAMPLES 256
/* With fewer samples, the largest ratio is not known yet. */
#define KNOWN_SAMPLES 64
/* An eighth is added to each part. */
#define MARGIN_SHIFT 3
#define FORGET_SHIFT 4
/* Longer times are treated as errors. */
#define NS_MAX 1000000000000ULL

/* 1, 2, 3, 4 to 5, 6 to 7, 8 to 11 and so on. */
static u32 group_of(u32 number)
{
	u32 octave;

	if (number >= K2_FLIGHTS)
		return K2_DELAY_GROUPS - 1;
	octave = 31 - (u32)__builtin_clz(number);
	return octave ? 2 * octave - 1 + (number >> (octave - 1) & 1) : 0;
}

static u32 known_parts(const struct k2_delay *delay, u32 group)
{
	u32 now = delay->parts[0][group], before = delay->parts[1][group];

	if (delay->count[0][group] + delay->count[1][group] < KNOWN_SAMPLES)
		return 0;
	return now > before ? now : before;
}

static void turn_epoch(struct k2_delay *delay, u64 now_ns)
{
	u32 i;

	if (now_ns - delay->epoch_ns < EPOCH_NS || delay->samples < EPOCH_SAMPLES)
		return;
	for (i = 0; i < K2_DELAY_GROUPS; i++) {
		if (delay->count[0][i] < EPOCH_SAMPLES) {
			/* k2 may now avoid this number because of a single long delay. */
			delay->parts[0][i] -= delay->parts[0][i] >> FORGET_SHIFT;
			delay->parts[1][i] -= delay->parts[1][i] >> FORGET_SHIFT;
			continue;
		}
		delay->parts[1][i] = delay->parts[0][i];
		delay->parts[0][i] = 0;
		delay->count[1][i] = delay->count[0][i];
		delay->count[0][i] = 0;
	}
	delay->epoch_ns = now_ns;
	delay->samples = 0;
}

void k2_delay_learn(struct k2_delay *delay, u32 number, u64 delay_ns, u64 needed_ns, u64 now_ns)
{
	u32 group = group_of(number), *parts = &delay->parts[0][group];
	u64 unit_ns = needed_ns / K2_DELAY_WHOLE, found;

	turn_epoch(delay, now_ns);
	delay->samples++;
	if (!unit_ns || unit_ns > ~0U || delay_ns > NS_MAX)
		return;
	delay->count[0][group]++;
	/* The common case: no new largest ratio. */
	if (*parts && delay_ns <= *parts * unit_ns)
		return;
	found = 1 + k2_div(delay_ns, (u32)unit_ns);
	/* Commands cost at most their time one by one; a longer delay is the device's own. */
	*parts = found < K2_DELAY_WHOLE ? (u32)found : K2_DELAY_WHOLE;
}

bool k2_delay_knows(const struct k2_delay *delay, u32 number)
{
	return known_parts(delay, group_of(number));
}

u32 k2_delay_parts(const struct k2_delay *delay, u32 number)
{
	u32 group = group_of(number);
	u32 parts = known_parts(delay, group);

	while (group && !parts)
		parts = known_parts(delay, --group);
	parts += parts >> MARGIN_SHIFT;
	return parts && parts < K2_DELAY_WHOLE ? parts : K2_DELAY_WHOLE;
}
