// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints the rate of this machine's time stamp counter in kHz, as CLOCK_MONOTONIC_RAW has it.
 *
 * A guest under QEMU reads this counter, and on a busy machine it measures a rate that is several
 * times off: then its clock runs that much too fast, and its watchdogs see hangs. Here a pair of
 * readings counts only if no one else ran in between, which the shortest of many shows.
 */
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES 100

struct moment {
	unsigned long long ticks;
	long long ns;
};

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct moment moment(void)
{
	struct moment best = {0};
	unsigned long long shortest = ULLONG_MAX;

	for (int i = 0; i < TRIES; i++) {
		unsigned long long before = __rdtsc();
		long long ns = now_ns();
		unsigned long long after = __rdtsc();

		if (after - before < shortest) {
			shortest = after - before;
			best = (struct moment){.ticks = before + shortest / 2, .ns = ns};
		}
	}
	return best;
}

int main(void)
{
	struct timespec pause = {.tv_nsec = 100000000};
	struct moment first = moment(), last;

	nanosleep(&pause, NULL);
	last = moment();
	printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns));
	return 0;
}
