/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One request at a time through io_uring, with a registered buffer: a read or write of a file, or a
 * read of NVMe through the namespace's character device /dev/ngXnY (passthrough). For caller.c.
 */
#ifndef STEADY_BENCH_URING_H
#define STEADY_BENCH_URING_H

#include <linux/io_uring.h>
#include <linux/nvme_ioctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define NVME_READ     0x02
#define NVME_IDENTIFY 0x06
/* In the answer to Identify Namespace (NVM Command Set Specification, Figure 114). */
#define NVME_FLBAS     26
#define NVME_LBAF      128
#define NVME_LBA_SHIFT 2

struct uring {
	int fd;
	unsigned int sqe_bytes, cqe_bytes;
	uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_mask;
	char *sqes, *cqes;
};

struct nvme_namespace {
	uint32_t id;
	unsigned int block_shift;
	uint64_t bytes;
};

static void uring_die(const char *what)
{
	perror(what);
	exit(1);
}

static char *uring_map(int fd, size_t size, uint64_t offset)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			(off_t)offset);

	if (at == MAP_FAILED)
		uring_die("mmap of the ring");
	return at;
}

/* is_nvme: with entries of the sizes that commands of NVMe need. */
static struct uring uring_setup(char *data, size_t bytes, bool is_nvme)
{
	struct io_uring_params params = {
		.flags = is_nvme ? IORING_SETUP_SQE128 | IORING_SETUP_CQE32 : 0,
	};
	struct iovec buffer = {data, bytes};
	struct uring ring = {
		.sqe_bytes = sizeof(struct io_uring_sqe) << is_nvme,
		.cqe_bytes = sizeof(struct io_uring_cqe) << is_nvme,
	};
	char *sq, *cq;

	ring.fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	if (ring.fd < 0)
		uring_die("io_uring_setup");
	sq = uring_map(ring.fd, params.sq_off.array + params.sq_entries * sizeof(uint32_t),
		       IORING_OFF_SQ_RING);
	cq = uring_map(ring.fd, params.cq_off.cqes + params.cq_entries * ring.cqe_bytes,
		       IORING_OFF_CQ_RING);
	ring.sqes = uring_map(ring.fd, params.sq_entries * ring.sqe_bytes, IORING_OFF_SQES);
	ring.sq_tail = (void *)(sq + params.sq_off.tail);
	ring.sq_mask = (void *)(sq + params.sq_off.ring_mask);
	ring.sq_array = (void *)(sq + params.sq_off.array);
	ring.cq_head = (void *)(cq + params.cq_off.head);
	ring.cq_mask = (void *)(cq + params.cq_off.ring_mask);
	ring.cqes = cq + params.cq_off.cqes;
	if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &buffer, 1))
		uring_die("io_uring_register");
	return ring;
}

/* The next entry, empty. */
static struct io_uring_sqe *uring_entry(struct uring *ring)
{
	uint32_t slot = *ring->sq_tail & *ring->sq_mask;
	struct io_uring_sqe *sqe = (void *)(ring->sqes + slot * ring->sqe_bytes);

	memset(sqe, 0, ring->sqe_bytes);
	ring->sq_array[slot] = slot;
	return sqe;
}

/* Submits the entry and waits; returns its result. */
static int uring_run(struct uring *ring)
{
	struct io_uring_cqe *cqe;

	__atomic_store_n(ring->sq_tail, *ring->sq_tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		uring_die("io_uring_enter");
	cqe = (void *)(ring->cqes + (*ring->cq_head & *ring->cq_mask) * ring->cqe_bytes);
	__atomic_store_n(ring->cq_head, *ring->cq_head + 1, __ATOMIC_RELEASE);
	return cqe->res;
}

static int uring_transfer(struct uring *ring, int file, bool is_write, char *data, size_t bytes,
			  uint64_t offset)
{
	struct io_uring_sqe *sqe = uring_entry(ring);

	sqe->opcode = is_write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	sqe->fd = file;
	sqe->off = offset;
	sqe->addr = (uintptr_t)data;
	sqe->len = (uint32_t)bytes;
	return uring_run(ring);
}

static struct nvme_namespace nvme_identify(int file)
{
	uint8_t answer[4096] __attribute__((aligned(4096)));
	struct nvme_namespace found = {.id = (uint32_t)ioctl(file, NVME_IOCTL_ID)};
	struct nvme_admin_cmd command = {
		.opcode = NVME_IDENTIFY,
		.nsid = found.id,
		.addr = (uintptr_t)answer,
		.data_len = sizeof(answer),
	};
	uint64_t blocks;

	if (ioctl(file, NVME_IOCTL_ADMIN_CMD, &command))
		uring_die("identify namespace");
	memcpy(&blocks, answer, sizeof(blocks));
	found.block_shift = answer[NVME_LBAF + 4 * (answer[NVME_FLBAS] & 15) + NVME_LBA_SHIFT];
	found.bytes = blocks << found.block_shift;
	return found;
}

static int nvme_read(struct uring *ring, int file, const struct nvme_namespace *space, char *data,
		     size_t bytes, uint64_t offset)
{
	struct io_uring_sqe *sqe = uring_entry(ring);
	struct nvme_uring_cmd *command = (void *)sqe->cmd;
	uint64_t block = offset >> space->block_shift;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = file;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	command->opcode = NVME_READ;
	command->nsid = space->id;
	command->addr = (uintptr_t)data;
	command->data_len = (uint32_t)bytes;
	command->cdw10 = (uint32_t)block;
	command->cdw11 = (uint32_t)(block >> 32);
	command->cdw12 = (uint32_t)(bytes >> space->block_shift) - 1;
	return uring_run(ring);
}

#endif /* STEADY_BENCH_URING_H */
