// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A real-time reader of one CPU that another real-time task needs, too: reader DEVICE [task]
 * [background].
 *
 * Reads 4 KiB at random places under SCHED_FIFO 50, once every 4 ms, and prints the median and the
 * longest time in us, and how many there were. With "task", a task under SCHED_FIFO 1 also computes
 * for 5 of every 8 ms; with "background", a normal task reads 64 KiB without a pause, and starves
 * while that one computes. In the lab a program that reads the clock takes time; so it computes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define READS	  10
#define PERIOD_US 4000
#define BUSY_US	  5000
#define REST_US	  3000
#define BLOCK	  4096
#define BLOCKS	  4096 /* of the device that are read */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void under_fifo(int priority)
{
	struct sched_param parameter = {.sched_priority = priority};

	if (sched_setscheduler(0, SCHED_FIFO, &parameter))
		die("sched_setscheduler");
}

static void compute_and_rest(void)
{
	under_fifo(1);
	for (;;) {
		long end_us = now_us() + BUSY_US;

		while (now_us() < end_us)
			;
		usleep(REST_US);
	}
}

static void read_in_background(int device)
{
	static char buffer[16 * BLOCK] __attribute__((aligned(BLOCK)));

	for (;;)
		if (pread(device, buffer, sizeof(buffer),
			  (off_t)(rand() % 128) * (off_t)sizeof(buffer)) < 0)
			die("background");
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	return pid;
}

static int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static char buffer[BLOCK] __attribute__((aligned(BLOCK)));
	static long took_us[READS];
	pid_t task = 0, background = 0;
	int device, i;

	device = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECT) : -1;
	if (device < 0)
		die("open");
	for (i = 2; i < argc; i++) {
		if (argv[i][0] == 't' && !(task = child()))
			compute_and_rest();
		if (argv[i][0] == 'b' && !(background = child()))
			read_in_background(device);
	}
	under_fifo(50);
	srand(1);
	for (i = 0; i < READS; i++) {
		long begin_us = now_us();

		if (pread(device, buffer, BLOCK, (off_t)(rand() % BLOCKS) * BLOCK) != BLOCK)
			die("pread");
		took_us[i] = now_us() - begin_us;
		usleep(PERIOD_US - rand() % 1000);
	}
	if (task > 0)
		kill(task, SIGKILL);
	if (background > 0)
		kill(background, SIGKILL);
	qsort(took_us, READS, sizeof(*took_us), by_value);
	printf("%ld %ld %d\n", took_us[READS / 2 - 1], took_us[READS - 1], READS);
	return 0;
}
