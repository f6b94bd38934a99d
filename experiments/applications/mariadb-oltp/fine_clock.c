// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Answers the coarse clocks from the fine ones; preloaded into mariadbd in virtual time only.
 *
 * At its start mariadbd reads CLOCK_MONOTONIC_COARSE until it has seen it move three times. In
 * virtual time a process that computes takes no time, and only reading a fine clock moves the
 * clock (256 ns per read), so mariadbd would wait for ever.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock == CLOCK_MONOTONIC_COARSE)
		clock = CLOCK_MONOTONIC;
	if (clock == CLOCK_REALTIME_COARSE)
		clock = CLOCK_REALTIME;
	return syscall(SYS_clock_gettime, clock, now);
}
