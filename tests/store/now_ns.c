// SPDX-License-Identifier: MIT OR Apache-2.0
/* now_ns: prints CLOCK_MONOTONIC, on which the card's write log is. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%" PRIu64 "\n", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	return 0;
}
