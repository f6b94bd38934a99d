// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * chardisk_by_address DEV START BYTES: what CHARDISK_BY_ADDRESS promises, with memory declared from
 * START. Prints what did not hold; exit status 0 if all held. Run as root; the device's first 256 KiB
 * are written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chardisk.h"

#define PAGE  4096UL
#define BYTES (256UL << 10)

static int device, failures;

static void expect(const char *what, int is, int wanted)
{
	if (is == wanted)
		return;
	printf("%s: %d (%s), expected %d\n", what, is, strerror(-is), wanted);
	failures++;
}

/* The number of the buffer, or a negative errno. */
static int reg(uint64_t address, uint64_t bytes)
{
	struct chardisk_register request = {
		.address = address, .bytes = bytes, .flags = CHARDISK_BY_ADDRESS};

	return ioctl(device, CHARDISK_IOC_REGISTER, &request) ? -errno : (int)request.buffer;
}

static int move(uint16_t op, uint32_t buffer, uint64_t offset)
{
	struct chardisk_transfer request = {
		.op = op, .buffer = buffer, .buffer_offset = offset, .bytes = BYTES};

	return ioctl(device, CHARDISK_IOC_TRANSFER, &request) ? -errno : 0;
}

static unsigned char *look_at(uint64_t address, uint64_t bytes)
{
	int memory = open("/dev/mem", O_RDWR | O_SYNC);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, (off_t)address);

	if (at == MAP_FAILED) {
		perror("/dev/mem");
		exit(2);
	}
	return at;
}

static void the_device_says_so(void)
{
	struct chardisk_info info = {0};

	expect("info", ioctl(device, CHARDISK_IOC_INFO, &info), 0);
	expect("HAS_MEMORY", !(info.capabilities & CHARDISK_HAS_MEMORY), 0);
}

static void only_what_was_declared(uint64_t start, uint64_t bytes)
{
	expect("the page before", reg(start - PAGE, PAGE), -EACCES);
	expect("the page behind", reg(start + bytes, PAGE), -EACCES);
	expect("across the start", reg(start - PAGE, 2 * PAGE), -EACCES);
	expect("across the end", reg(start + bytes - PAGE, 2 * PAGE), -EACCES);
	expect("address 0", reg(0, PAGE), -EACCES);
	expect("an overflow", reg(UINT64_MAX - PAGE + 1, PAGE), -EINVAL);
	expect("no page", reg(start + 512, 512), -EINVAL);
	expect("the last page", reg(start + bytes - PAGE, PAGE), 0);
}

static void data_come_and_go(uint64_t start)
{
	unsigned char *memory = look_at(start, 2 * BYTES);
	int buffer = reg(start, 2 * BYTES);
	size_t i;

	expect("two buffers", buffer, 1);
	for (i = 0; i < BYTES; i++)
		memory[i] = (unsigned char)(i * 7 + i / PAGE);
	memset(memory + BYTES, 0, BYTES);
	expect("write", move(CHARDISK_WRITE, (uint32_t)buffer, 0), 0);
	expect("read", move(CHARDISK_READ, (uint32_t)buffer, BYTES), 0);
	expect("data", memcmp(memory, memory + BYTES, BYTES) != 0, 0);
}

static void an_ordinary_user_is_refused(uint64_t start)
{
	if (setresuid(65534, 65534, 65534)) {
		perror("setresuid");
		exit(2);
	}
	expect("a user", reg(start, PAGE), -EPERM);
}

int main(int argc, char **argv)
{
	uint64_t start, bytes;

	if (argc != 4) {
		fprintf(stderr, "usage: chardisk_by_address DEV START BYTES\n");
		return 2;
	}
	start = strtoull(argv[2], NULL, 0);
	bytes = strtoull(argv[3], NULL, 0);
	device = open(argv[1], O_RDWR);
	if (device < 0) {
		perror(argv[1]);
		return 2;
	}
	the_device_says_so();
	only_what_was_declared(start, bytes);
	data_come_and_go(start);
	an_ordinary_user_is_refused(start);
	return failures != 0;
}
