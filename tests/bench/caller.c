// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * caller FILE pread|cached|uring_fixed|buffer read|write BYTES ROUNDS [sequential|random
 * [STATS|instructions]]: one call after the other, ROUNDS times. cached: pread() and pwrite() without
 * O_DIRECT, which all others have; uring_fixed: io_uring with a registered buffer; buffer: the ioctl
 * of a character device with one.
 *
 * At random places, after as many calls to the same ones, so that the emulated card has memory for
 * them. Where an order is given, after one call, and with an fsync() after writes. Prints how long
 * that took in ns; with STATS, the emulated card's counters, also the data commands that the card was
 * sent: all, and the least and the most during a call. With `instructions`, under a clock that counts
 * them as ns, not the time in which the CPU waited. sched_rr_get_interval(), which nothing else
 * calls, marks begin and end for step.c.
 *
 * Runs in the guests of steady_lab/figures/call_cost.py and direct_path.py, under SCHED_FIFO: when
 * the kernel's workers run then does not depend on how much CPU time they had before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "chardisk.h"

#define FIRST_STATE 1

static int device;
static bool is_write, is_sequential, has_order;
static char *data;
static size_t bytes;
static uint64_t places, call_number;
static uint64_t state = FIRST_STATE; /* of random places */
static int stats = -1;
static volatile uint64_t *waited;
static uint64_t least = UINT64_MAX, most;

static struct {
	int fd;
	uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
} ring;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t next_offset(void)
{
	if (is_sequential)
		return call_number++ * bytes;
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % places * bytes;
}

static void by_pread(void)
{
	off_t offset = (off_t)next_offset();
	ssize_t size = is_write ? pwrite(device, data, bytes, offset)
				: pread(device, data, bytes, offset);

	if (size != (ssize_t)bytes)
		die("pread");
}

static void by_buffer(void)
{
	struct chardisk_transfer transfer = {
		.offset = next_offset(),
		.bytes = bytes,
		.op = is_write ? CHARDISK_WRITE : CHARDISK_READ,
	};

	if (ioctl(device, CHARDISK_IOC_TRANSFER, &transfer))
		die("transfer");
}

static void by_uring(void)
{
	uint32_t tail = *ring.sq_tail, slot = tail & *ring.sq_mask;
	struct io_uring_sqe *sqe = &ring.sqes[slot];
	struct io_uring_cqe *cqe;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = is_write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	sqe->fd = device;
	sqe->off = next_offset();
	sqe->addr = (uintptr_t)data;
	sqe->len = (uint32_t)bytes;
	ring.sq_array[slot] = slot;
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		die("io_uring_enter");
	cqe = &ring.cqes[*ring.cq_head & *ring.cq_mask];
	if (cqe->res != (int)bytes) {
		fprintf(stderr, "io_uring: %s\n", strerror(-cqe->res));
		exit(1);
	}
	__atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
}

static char *map_ring(size_t size, uint64_t offset)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
			(off_t)offset);

	if (at == MAP_FAILED)
		die("mmap of the ring");
	return at;
}

static void setup_uring(void)
{
	struct io_uring_params params = {0};
	struct iovec buffer = {data, bytes};
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (ring.fd < 0)
		die("io_uring_setup");
	sq = map_ring(params.sq_off.array + params.sq_entries * sizeof(uint32_t),
		      IORING_OFF_SQ_RING);
	cq = map_ring(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
		      IORING_OFF_CQ_RING);
	ring.sqes =
		(void *)map_ring(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + params.sq_off.tail);
	ring.sq_mask = (void *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (void *)(sq + params.sq_off.array);
	ring.cq_head = (void *)(cq + params.cq_off.head);
	ring.cq_mask = (void *)(cq + params.cq_off.ring_mask);
	ring.cqes = (void *)(cq + params.cq_off.cqes);
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &buffer, 1))
		die("io_uring_register");
}

static void setup_buffer(void)
{
	struct chardisk_register buffer = {.address = (uintptr_t)data, .bytes = bytes};

	if (ioctl(device, CHARDISK_IOC_REGISTER, &buffer))
		die("register");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reads and writes that the card was sent since it is there. */
static uint64_t commands(void)
{
	char text[1024];
	ssize_t size = pread(stats, text, sizeof(text) - 1, 0);
	char *reads, *writes;

	if (size < 0)
		die("counters");
	text[size] = 0;
	reads = strstr(text, "reads ");
	writes = strstr(text, "writes ");
	if (!reads || !writes)
		die("counters");
	return strtoull(reads + 6, NULL, 10) + strtoull(writes + 7, NULL, 10);
}

/*
 * A process that counts while nothing else runs, two instructions each time: what it did not execute
 * in a time, all others did. (An idle CPU would execute the kernel's idle loop.)
 */
static void count_waiting(void)
{
	struct sched_param priority = {0};
	pid_t parent = getpid();

	waited = mmap(NULL, sizeof(*waited), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (waited == MAP_FAILED)
		die("mmap");
	switch (fork()) {
	case -1:
		die("fork");
		break;
	case 0:
		if (sched_setscheduler(0, SCHED_IDLE, &priority) ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			die("counting process");
		__asm__ volatile("1: incq %0\n\tjmp 1b" : "+m"(*waited));
	}
	while (!*waited)
		usleep(100);
}

static uint64_t waited_ns(void)
{
	return waited ? 2 * *waited : 0;
}

static void call_and_count(void (*call)(void))
{
	uint64_t before = stats < 0 ? 0 : commands(), sent;

	call();
	sent = stats < 0 ? 0 : commands() - before;
	least = sent < least ? sent : least;
	most = sent > most ? sent : most;
}

static void flush(void)
{
	if (has_order && is_write && fsync(device))
		die("fsync");
}

static void measure(void (*call)(void), int rounds)
{
	struct timespec interval;
	uint64_t sent, begin_ns, took_ns;
	int i;

	for (i = 0; i < (has_order ? 1 : rounds); i++)
		call();
	flush();
	state = FIRST_STATE;
	sent = stats < 0 ? 0 : commands();
	begin_ns = now_ns() - waited_ns();
	sched_rr_get_interval(0, &interval);
	for (i = 0; i < rounds; i++)
		call_and_count(call);
	flush();
	sched_rr_get_interval(0, &interval);
	took_ns = now_ns() - waited_ns() - begin_ns;
	sent = stats < 0 ? 0 : commands() - sent;
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", took_ns, sent, least, most);
}

static void open_all(char **argv)
{
	int how = strcmp(argv[2], "cached") == 0 ? 0 : O_DIRECT;

	is_write = strcmp(argv[3], "write") == 0;
	bytes = (size_t)atol(argv[4]);
	has_order = argv[6] != NULL;
	is_sequential = has_order && strcmp(argv[6], "sequential") == 0;
	device = open(argv[1], O_RDWR | O_CREAT | how, 0600);
	if (device < 0 || posix_memalign((void **)&data, 4096, bytes))
		die(argv[1]);
	memset(data, 1, bytes);
	places = (uint64_t)lseek(device, 0, SEEK_END) / bytes;
	if (has_order && argv[7] && strcmp(argv[7], "instructions") == 0) {
		count_waiting();
	} else if (has_order && argv[7]) {
		stats = open(argv[7], O_RDONLY);
		if (stats < 0)
			die(argv[7]);
	}
}

int main(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 1};
	void (*call)(void) = by_pread;

	if (argc < 6 || argc > 8) {
		fprintf(stderr,
			"usage: caller FILE pread|cached|uring_fixed|buffer read|write BYTES ROUNDS"
			" [sequential|random [STATS|instructions]]\n");
		return 2;
	}
	open_all(argv);
	if (strcmp(argv[2], "uring_fixed") == 0) {
		setup_uring();
		call = by_uring;
	} else if (strcmp(argv[2], "buffer") == 0) {
		setup_buffer();
		call = by_buffer;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("sched_setscheduler");
	measure(call, atoi(argv[5]));
	return 0;
}
