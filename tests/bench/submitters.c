// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Several CPUs read from one device at once: submitters DEVICE THREADS DEPTH READS.
 *
 * Each thread stays on a CPU of its own and reads 4 KiB at random places, DEPTH at a time, until
 * all have ended READS reads. Prints how many there were, and the nanoseconds that passed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	    4096
#define THREADS_MAX 64
#define DEPTH_MAX   256

struct submitter {
	pthread_t thread;
	const char *path;
	int cpu;
	unsigned int depth;
	unsigned long reads;
};

static pthread_barrier_t start;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void refill(struct iocb *reads, struct iocb **list, unsigned int count, unsigned int *seed,
		   off_t blocks)
{
	for (unsigned int i = 0; i < count; i++) {
		reads[i].aio_offset = (off_t)(rand_r(seed) % blocks) * BLOCK;
		list[i] = &reads[i];
	}
}

static void await(aio_context_t context, unsigned int count)
{
	struct io_event events[DEPTH_MAX];

	for (unsigned int i = 0; i < count;) {
		long ended = syscall(SYS_io_getevents, context, 1, count - i, events, NULL);

		if (ended < 1)
			die("io_getevents");
		for (long k = 0; k < ended; k++) {
			if (events[k].res != BLOCK)
				die("read");
		}
		i += (unsigned int)ended;
	}
}

static void *submit(void *argument)
{
	struct submitter *me = argument;
	struct iocb reads[DEPTH_MAX] = {0}, *list[DEPTH_MAX];
	int device = open(me->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	aio_context_t context = 0;
	unsigned int seed = (unsigned int)me->cpu + 1;
	off_t blocks;
	char *buffer;

	stay_on(me->cpu);
	if (device < 0 || syscall(SYS_io_setup, me->depth, &context))
		die(me->path);
	blocks = lseek(device, 0, SEEK_END) / BLOCK;
	if (posix_memalign((void **)&buffer, BLOCK, (size_t)me->depth * BLOCK))
		die("posix_memalign");
	memset(buffer, 0, (size_t)me->depth * BLOCK);
	for (unsigned int i = 0; i < me->depth; i++) {
		reads[i].aio_lio_opcode = IOCB_CMD_PREAD;
		reads[i].aio_fildes = (unsigned int)device;
		reads[i].aio_buf = (uint64_t)(uintptr_t)(buffer + (size_t)i * BLOCK);
		reads[i].aio_nbytes = BLOCK;
	}
	pthread_barrier_wait(&start);
	for (unsigned long done = 0; done < me->reads; done += me->depth) {
		refill(reads, list, me->depth, &seed, blocks);
		if (syscall(SYS_io_submit, context, me->depth, list) != (long)me->depth)
			die("io_submit");
		await(context, me->depth);
	}
	pthread_barrier_wait(&start);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct submitter submitters[THREADS_MAX];
	unsigned long threads = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long depth = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long reads = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	uint64_t begin_ns;

	if (!threads || threads > THREADS_MAX || !depth || depth > DEPTH_MAX || reads < depth) {
		fprintf(stderr, "usage: submitters DEVICE THREADS DEPTH READS\n");
		return 2;
	}
	pthread_barrier_init(&start, NULL, (unsigned int)threads + 1);
	for (unsigned long i = 0; i < threads; i++) {
		submitters[i] = (struct submitter){.path = argv[1],
						   .cpu = (int)i,
						   .depth = (unsigned int)depth,
						   .reads = reads / threads};
		if (pthread_create(&submitters[i].thread, NULL, submit, &submitters[i]))
			die("pthread_create");
	}
	pthread_barrier_wait(&start);
	begin_ns = now_ns();
	pthread_barrier_wait(&start);
	printf("%lu %llu\n", reads / threads / depth * depth * threads,
	       (unsigned long long)(now_ns() - begin_ns));
	return 0;
}
