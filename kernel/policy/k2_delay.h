/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * By how much commands that are with the device delay one more, learned for each number of them.
 *
 * Problem: a device with a queue works on several commands at a time. What one by one would take
 * 2 ms delays a command by 2 ms on a card that has one bus, and by 0.2 ms on a drive with many
 * dies; there, by less for each the more there are, until all dies are busy.
 *
 * Model: delay(number, needed) = part(number) * needed, where needed is what those commands would
 * take one by one. A part is the most that a command was delayed by in proportion, in this epoch
 * and the last, so what the device no longer does is forgotten; an eighth more is assumed. Numbers
 * that are near to each other share a part: the longest delays are rare, and as commands end, those
 * that wait for the same die remain. For a number that has not been tried lately it is the part of
 * the next smaller one that has, or all: so little more than is known is tried at a time.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DELAY_H
#define K2_DELAY_H

#include "k2_types.h"

/* So many commands are watched at a time. */
#define K2_FLIGHTS 32
/* Parts are in so many. */
#define K2_DELAY_WHOLE 256U
/* 1, 2, 3, 4 to 5, 6 to 7, 8 to 11, 12 to 15, 16 to 23, 24 and more. */
#define K2_DELAY_GROUPS 9

struct k2_delay {
	/* This epoch, the last; by group of numbers. */
	u32 parts[2][K2_DELAY_GROUPS]; /* in 1/K2_DELAY_WHOLE */
	u32 count[2][K2_DELAY_GROUPS]; /* of commands that they were learned from */
	u64 epoch_ns;
	u32 samples;
};

/*
 * A command was delayed by @delay_ns by @number others, 1 to K2_FLIGHTS - 1, that would have needed
 * @needed_ns one by one.
 */
void k2_delay_learn(struct k2_delay *delay, u32 number, u64 delay_ns, u64 needed_ns, u64 now_ns);

/* Have so many commands been with the device lately? */
bool k2_delay_knows(const struct k2_delay *delay, u32 number);

/*
 * By which part of what they need one by one do @number commands delay another? In
 * 1/K2_DELAY_WHOLE.
 */
u32 k2_delay_parts(const struct k2_delay *delay, u32 number);

#endif /* K2_DELAY_H */
