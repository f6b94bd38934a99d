// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes and two threads each keep a pattern of their own in a 256-bit register while they
 * take turns, touch new memory and handle a signal that changes the register. Exits 1 if one finds
 * another pattern. Called by test_boot.py in the guest.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS	   300
#define PAGE_BYTES 4096

static void change_register(int signal)
{
	(void)signal;
	__asm__ volatile("vpcmpeqb %%ymm7, %%ymm7, %%ymm7" : : : "xmm7");
}

/*
 * The register is named, and the turn is taken, in one piece of assembler: nothing else uses it.
 * Each turn is another system call: a yield, or a signal to the thread itself. It ends with memory
 * that the guest's kernel has to map first.
 */
static int keep(unsigned char pattern)
{
	unsigned char before[32], after[32];
	char *memory = mmap(NULL, TURNS * PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long process = getpid(), thread = gettid();

	if (memory == MAP_FAILED)
		return 2;
	memset(before, pattern, sizeof(before));
	for (long turn = 0; turn < TURNS; turn++) {
		long result = turn % 5 ? 24 : 234; /* sched_yield, tgkill */
		register long signal __asm__("rdx") = SIGUSR1;

		__asm__ volatile("vmovdqu %[before], %%ymm7\n\tsyscall\n\t"
				 "movb $1, (%[memory])\n\tvmovdqu %%ymm7, %[after]"
				 : "+a"(result), [after] "=m"(after)
				 : [before] "m"(before), [memory] "r"(memory + turn * PAGE_BYTES),
				   "D"(process), "S"(thread), "r"(signal)
				 : "rcx", "r11", "xmm7", "memory");
		if (memcmp(before, after, sizeof(before))) {
			printf("turn %ld: 0x%02x became 0x%02x\n", turn, pattern, after[31]);
			return 1;
		}
	}
	return 0;
}

static void *in_thread(void *failed)
{
	*(int *)failed = keep(0x3c);
	return NULL;
}

/* A process of two threads. */
static int keep_two(unsigned char pattern)
{
	int failed = 0, failed_here;
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_thread, &failed))
		return 2;
	failed_here = keep(pattern);
	pthread_join(thread, NULL);
	return failed_here || failed;
}

int main(void)
{
	int status;
	pid_t other;

	signal(SIGUSR1, change_register);
	other = fork();
	if (other < 0)
		return 2;
	if (other == 0)
		_exit(keep_two(0xa5));
	if (keep_two(0x5a))
		return 1;
	return waitpid(other, &status, 0) != other || status;
}
