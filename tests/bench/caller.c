// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * caller DEV pread|uring_fixed|buffer read|write BYTES ROUNDS: one call after the other, ROUNDS
 * times, after as many to warm up. uring_fixed: io_uring with a registered buffer; buffer: the ioctl
 * of a character device with one. sched_rr_get_interval(), which nothing else calls, marks begin and
 * end for step.c. Runs in the guest of steady_lab/figures/call_cost.py, under SCHED_FIFO: when the
 * kernel's workers run then does not depend on how much CPU time they had before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "chardisk.h"

static int device;
static bool is_write;
static char *data;
static size_t bytes;
static uint64_t places;

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

static uint64_t random_offset(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % places * bytes;
}

static void by_pread(void)
{
	off_t offset = (off_t)random_offset();
	ssize_t size = is_write ? pwrite(device, data, bytes, offset)
				: pread(device, data, bytes, offset);

	if (size != (ssize_t)bytes)
		die("pread");
}

static void by_buffer(void)
{
	struct chardisk_transfer transfer = {
		.offset = random_offset(),
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
	sqe->off = random_offset();
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

int main(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 1};
	struct timespec interval;
	void (*call)(void) = by_pread;
	int rounds, i;

	if (argc != 6) {
		fprintf(stderr,
			"usage: caller DEV pread|uring_fixed|buffer read|write BYTES ROUNDS\n");
		return 2;
	}
	device = open(argv[1], O_RDWR | O_DIRECT);
	is_write = strcmp(argv[3], "write") == 0;
	bytes = (size_t)atoi(argv[4]);
	rounds = atoi(argv[5]);
	if (device < 0 || posix_memalign((void **)&data, 4096, bytes))
		die(argv[1]);
	memset(data, 1, bytes);
	places = (uint64_t)lseek(device, 0, SEEK_END) / bytes;
	if (strcmp(argv[2], "uring_fixed") == 0) {
		setup_uring();
		call = by_uring;
	} else if (strcmp(argv[2], "buffer") == 0) {
		setup_buffer();
		call = by_buffer;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("sched_setscheduler");
	for (i = 0; i < rounds; i++)
		call();
	sched_rr_get_interval(0, &interval);
	for (i = 0; i < rounds; i++)
		call();
	sched_rr_get_interval(0, &interval);
	return 0;
}
