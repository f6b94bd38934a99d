// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes each keep a pattern of their own in a 256-bit register while they take turns. Exits
 * 1 if one finds another pattern. Called by test_boot.py in the guest.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 2000

/* The register is named, and the turn is taken, in one piece of assembler: nothing else uses it. */
static int keep(unsigned char pattern)
{
	unsigned char before[32], after[32];
	long result;

	memset(before, pattern, sizeof(before));
	for (int turn = 0; turn < TURNS; turn++) {
		result = 24; /* sched_yield */
		__asm__ volatile("vmovdqu %2, %%ymm7\n\tsyscall\n\tvmovdqu %%ymm7, %1"
				 : "+a"(result), "=m"(after)
				 : "m"(before)
				 : "rcx", "r11", "xmm7", "memory");
		if (memcmp(before, after, sizeof(before))) {
			printf("turn %d: 0x%02x became 0x%02x\n", turn, pattern, after[31]);
			return 1;
		}
	}
	return 0;
}

int main(void)
{
	int status;
	pid_t other = fork();

	if (other < 0)
		return 2;
	if (other == 0)
		_exit(keep(0xa5));
	if (keep(0x5a))
		return 1;
	return waitpid(other, &status, 0) != other || status;
}
