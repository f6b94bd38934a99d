// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One transfer of more than 2 GiB: chardisk_long DEV. A memory file of 64 MiB is mapped again and
 * again, so the guest needs no more. Prints how many bytes were transferred.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chardisk.h"

#define PART  (64ull << 20)
#define PARTS 33

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1, file = memfd_create("part", 0), i;
	char *memory = mmap(NULL, PARTS * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct chardisk_transfer transfer = {
		.bytes = PARTS * PART,
		.buffer_offset = (uintptr_t)memory,
		.buffer = CHARDISK_NO_BUFFER,
		.op = CHARDISK_READ,
	};

	if (fd < 0 || file < 0 || memory == MAP_FAILED || ftruncate(file, PART)) {
		perror(argc > 1 ? argv[1] : "chardisk_long");
		return 2;
	}
	for (i = 0; i < PARTS; i++) {
		if (mmap(memory + i * PART, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 file, 0) == MAP_FAILED) {
			perror("mmap");
			return 2;
		}
	}
	if (ioctl(fd, CHARDISK_IOC_TRANSFER, &transfer))
		perror("transfer");
	printf("%llu\n", transfer.done_bytes);
	return 0;
}
