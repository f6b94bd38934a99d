// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * reader DEV BYTES DEPTH ROUNDS: reads at random places, DEPTH at once, and waits for all of them;
 * ROUNDS times, after WARM_ROUNDS: the device is known then, and the pattern of a real-time stream.
 * sched_rr_get_interval(), which nothing else calls, marks begin and end for step.c. Runs in the
 * guest of steady_lab/figures/cpu_cost.py, under SCHED_FIFO: when the kernel's workers run then does
 * not depend on how much CPU time they had before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX   64
#define WARM_ROUNDS 200

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t random_place(uint64_t places)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % places;
}

static void read_at_once(aio_context_t context, int fd, char *data, size_t bytes, int depth)
{
	static uint64_t places;
	struct iocb blocks[DEPTH_MAX], *list[DEPTH_MAX];
	struct io_event events[DEPTH_MAX];

	if (!places)
		places = (uint64_t)lseek(fd, 0, SEEK_END) / bytes;
	memset(blocks, 0, sizeof(blocks));
	for (int i = 0; i < depth; i++) {
		blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
		blocks[i].aio_fildes = (uint32_t)fd;
		blocks[i].aio_buf = (uintptr_t)data;
		blocks[i].aio_nbytes = bytes;
		blocks[i].aio_offset = (int64_t)(random_place(places) * bytes);
		list[i] = &blocks[i];
	}
	if (syscall(SYS_io_submit, context, depth, list) != depth)
		die("io_submit");
	if (syscall(SYS_io_getevents, context, depth, depth, events, NULL) != depth)
		die("io_getevents");
	for (int i = 0; i < depth; i++) {
		if (events[i].res != (int64_t)bytes)
			die("read");
	}
}

int main(int argc, char **argv)
{
	aio_context_t context = 0;
	struct sched_param priority = {.sched_priority = 1};
	struct timespec interval;
	int fd, depth, rounds;
	size_t bytes;
	char *data;

	if (argc != 5 || atoi(argv[3]) < 1 || atoi(argv[3]) > DEPTH_MAX) {
		fprintf(stderr, "usage: reader DEV BYTES DEPTH(1-%d) ROUNDS\n", DEPTH_MAX);
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_DIRECT);
	bytes = (size_t)atoi(argv[2]);
	depth = atoi(argv[3]);
	rounds = atoi(argv[4]);
	if (fd < 0 || posix_memalign((void **)&data, 4096, bytes))
		die(argv[1]);
	memset(data, 1, bytes);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("sched_setscheduler");
	if (syscall(SYS_io_setup, DEPTH_MAX, &context))
		die("io_setup");
	for (int i = 0; i < WARM_ROUNDS; i++)
		read_at_once(context, fd, data, bytes, depth);
	sched_rr_get_interval(0, &interval);
	for (int i = 0; i < rounds; i++)
		read_at_once(context, fd, data, bytes, depth);
	sched_rr_get_interval(0, &interval);
	return 0;
}
