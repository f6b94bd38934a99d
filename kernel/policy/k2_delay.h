/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How long the commands in flight delay one more, learned for each number of commands in flight.
 *
 * Problem: a device with a queue works on several commands at a time. Commands that take 2 ms one
 * by one delay another by 2 ms on a card with one bus, but by 0.2 ms on a drive with many dies. On
 * such a drive, more commands add less delay each, until all dies are busy.
 *
 * Model: delay(number, needed) = part(number) * needed. "needed" is the time of the commands in
 * flight if they ran one by one; "part" is the largest such ratio of this epoch and the last, plus
 * an eighth. Older ratios are forgotten. Nearby numbers share a part: the longest delays are rare,
 * and while commands end, those that wait for the same die remain. A number without recent samples
 * takes the part of the next smaller number that has some, or 1: k2 exceeds known numbers in small
 * steps.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DELAY_H
#define K2_DELAY_H

#include "k2_types.h"

/* The largest number of commands that are measured at a time. */
#define K2_FLIGHTS 32
/* The denominator of parts. */
#define K2_DELAY_WHOLE 256U
/* The groups of numbers: 1, 2, 3, 4-5, 6-7, 8-11, 12-15, 16-23, 24 and more. */
#define K2_DELAY_GROUPS 9

struct k2_delay {
	/* For this epoch and the last, by group of numbers. */
	u32 parts[2][K2_DELAY_GROUPS]; /* in 1/K2_DELAY_WHOLE */
	u32 count[2][K2_DELAY_GROUPS]; /* commands that the parts were learned from */
	u64 epoch_ns;
	u32 samples;
};

/*
 * @number other commands (1 to K2_FLIGHTS - 1), which take @needed_ns one by one, delayed a command
 * by @delay_ns.
 */
void k2_delay_learn(struct k2_delay *delay, u32 number, u64 delay_ns, u64 needed_ns, u64 now_ns);

/* Was this number of commands in flight often enough lately? */
bool k2_delay_knows(const struct k2_delay *delay, u32 number);

/*
 * The delay of one more command by @number commands, as a ratio to the time that these take one by
 * one, in 1/K2_DELAY_WHOLE.
 */
u32 k2_delay_parts(const struct k2_delay *delay, u32 number);

#endif /* K2_DELAY_H */
