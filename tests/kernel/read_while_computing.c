// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Whether a read ends while a real-time task computes on its CPU: read_while_computing DEVICE CPU.
 *
 * Under SCHED_FIFO 70 it reads 4 KiB; on the same CPU a task under SCHED_FIFO 60 computes until the
 * read has ended, for GIVE_UP_S at most. Exit status 0: the read ended first; 3: the task gave up, and
 * so the read waited for it. tests/stock/interrupt_threads.sh calls it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	  4096
#define GIVE_UP_S 5

struct shared {
	volatile bool computes, gave_up, read_ended;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void under_fifo(int priority)
{
	struct sched_param parameter = {.sched_priority = priority};

	if (sched_setscheduler(0, SCHED_FIFO, &parameter))
		die("sched_setscheduler");
}

static void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
}

static void compute(struct shared *shared)
{
	struct timespec now;
	time_t end_s;

	under_fifo(60);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end_s = now.tv_sec + GIVE_UP_S;
	shared->computes = true;
	while (!shared->read_ended && now.tv_sec <= end_s)
		clock_gettime(CLOCK_MONOTONIC, &now);
	shared->gave_up = !shared->read_ended;
	exit(0);
}

int main(int argc, char **argv)
{
	static char buffer[BLOCK] __attribute__((aligned(BLOCK)));
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int device = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECT) : -1;
	pid_t task;

	if (device < 0 || shared == MAP_FAILED)
		die("open");
	stay_on(atoi(argv[2]));
	under_fifo(70);
	task = fork();
	if (task < 0)
		die("fork");
	if (!task)
		compute(shared);
	while (!shared->computes)
		usleep(1000);
	if (pread(device, buffer, BLOCK, 0) != BLOCK)
		die("pread");
	shared->read_ended = true;
	waitpid(task, NULL, 0);
	return shared->gave_up ? 3 : 0;
}
