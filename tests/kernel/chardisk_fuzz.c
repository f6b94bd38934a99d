// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ioctls with arguments that nobody means: chardisk_fuzz DEV SEED CALLS. Fields are drawn from edge
 * values, valid values, and noise; request numbers are the device's, with other sizes and
 * directions, and noise. Some calls come from a child, on a closed file, or while a signal arrives;
 * buffers are registered, freed, and used afterwards; descriptors are also those of other files.
 *
 * Two things must hold. Only the region [REGION_FIRST, REGION_FIRST + REGION_BYTES) of the device
 * may change; the caller compares it. Memory outside of the named ranges stays unchanged; guards
 * show that. Prints how many calls succeeded and failed; exit status 1 if a guard changed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chardisk.h"

#define MEMORY (256U << 10)
#define GUARD  4096U
#define FDS    6

static uint64_t state;
static char *memory; /* GUARD, MEMORY, GUARD */
static int fds[FDS];
static const char *device;
static uint64_t succeeded, refused;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static uint64_t noise(void)
{
	return draw(1U << 31) << 33 ^ draw(1U << 31) << 11 ^ draw(1U << 31);
}

/* The device has 16 MiB. */
static uint64_t number(void)
{
	static const uint64_t edges[] = {
		0,
		1,
		511,
		512,
		513,
		4095,
		4096,
		65536,
		1048576 - 512,
		1048576,
		1048576 + 512,
		1048576 + 65536 - 512,
		1048576 + 65536,
		16777216 - 512,
		16777216,
		16777217,
		0x7fffffff,
		0x80000000,
		0xfffffe00,
		0xffffffff,
		0x100000000,
		0x7ffffffffffffe00,
		0x7fffffffffffffff,
		0x8000000000000000,
		0xfffffffffffffe00,
		0xffffffffffffffff,
	};

	switch (draw(4)) {
	case 0:
		return noise();
	case 1:
		return 1048576 + draw(128) * 512;
	case 2:
		return draw(512) * 512;
	default:
		return edges[draw(sizeof(edges) / sizeof(*edges))];
	}
}

/* Somewhere in the memory, at its edges, or anywhere. */
static uint64_t address(void)
{
	uint64_t begin = (uintptr_t)memory + GUARD;

	switch (draw(6)) {
	case 0:
		return number();
	case 1:
		return 0xffff800000000000 + draw(1U << 30);
	default:
		return begin + draw(MEMORY / 4096) * 4096 + (draw(2) ? 0 : draw(8) * 512);
	}
}

static uint64_t length_within(uint64_t at)
{
	uint64_t end = (uintptr_t)memory + GUARD + MEMORY;

	return at < end && end - at <= MEMORY ? draw((end - at) / 512 + 1) * 512 : number();
}

static uint32_t zero_or_noise(void)
{
	return draw(8) ? 0 : (uint32_t)noise();
}

union argument {
	struct chardisk_info info;
	struct chardisk_region region;
	struct chardisk_register buffer;
	struct chardisk_unregister unregister;
	struct chardisk_transfer transfer;
	struct chardisk_discard discard;
	struct chardisk_stats stats;
	uint64_t words[32];
};

static void fill_transfer(struct chardisk_transfer *transfer)
{
	bool registered = draw(2);

	transfer->offset = number();
	transfer->buffer = registered ? (uint32_t)draw(70) : CHARDISK_NO_BUFFER;
	transfer->buffer_offset = registered ? number() : address();
	transfer->bytes = registered ? number() : length_within(transfer->buffer_offset);
	transfer->flags = (uint32_t)draw(2) | zero_or_noise();
	transfer->op = (uint16_t)(draw(9) ? draw(2) : noise());
	transfer->ioprio = (uint16_t)(draw(3) ? 0 : noise());
}

/* Returns the request. A buffer never covers the guards, so the device has no right to them. */
static unsigned long fill(union argument *argument)
{
	memset(argument, 0, sizeof(*argument));
	switch (draw(9)) {
	case 0:
		argument->info.flags = zero_or_noise();
		argument->info.reserved[draw(8)] = zero_or_noise();
		return CHARDISK_IOC_INFO;
	case 1:
		argument->region.index = (uint32_t)number();
		argument->region.flags = zero_or_noise();
		return CHARDISK_IOC_REGION;
	case 2:
		argument->buffer.address = address();
		argument->buffer.bytes = length_within(argument->buffer.address);
		argument->buffer.flags = zero_or_noise();
		return CHARDISK_IOC_REGISTER;
	case 3:
		argument->unregister.buffer = (uint32_t)draw(70);
		argument->unregister.flags = zero_or_noise();
		return CHARDISK_IOC_UNREGISTER;
	case 4:
		argument->discard.offset = number();
		argument->discard.bytes = number();
		argument->discard.flags = zero_or_noise();
		return CHARDISK_IOC_DISCARD;
	case 5:
		argument->stats.scope = (uint32_t)draw(3);
		argument->stats.reserved[draw(4)] = zero_or_noise();
		return CHARDISK_IOC_STATS;
	default:
		fill_transfer(&argument->transfer);
		return CHARDISK_IOC_TRANSFER;
	}
}

static void one_call(void)
{
	union argument argument;
	unsigned long request = fill(&argument);
	void *where = &argument;

	if (draw(20) == 0)
		request ^= 1UL << draw(32); /* another number, size or direction */
	if (draw(40) == 0)
		where = (void *)(uintptr_t)number();
	if (ioctl(fds[draw(FDS)], request, where))
		refused++;
	else
		succeeded++;
}

static void reopen(void)
{
	int which = (int)draw(3);
	static const int flags[] = {O_RDWR, O_RDONLY, O_WRONLY};

	close(fds[which]);
	if (draw(10)) /* else it stays closed for a while */
		fds[which] = open(device, flags[draw(3)]);
}

static void in_child(void)
{
	int status, i;
	pid_t pid = fork();

	if (pid == 0) {
		for (i = 0; i < 20; i++)
			one_call();
		_exit(0);
	}
	if (draw(2))
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void on_alarm(int number)
{
	(void)number;
}

static void guards_up(void)
{
	memset(memory, 0xa5, GUARD);
	memset(memory + GUARD + MEMORY, 0xa5, GUARD);
}

static bool guards_hold(void)
{
	for (unsigned int i = 0; i < GUARD; i++)
		if ((uint8_t)memory[i] != 0xa5 || (uint8_t)memory[GUARD + MEMORY + i] != 0xa5)
			return false;
	return true;
}

static void open_all(void)
{
	int pipes[2];

	fds[0] = open(device, O_RDWR);
	fds[1] = open(device, O_RDONLY);
	fds[2] = open(device, O_WRONLY);
	fds[3] = open("/dev/null", O_RDWR);
	if (pipe(pipes))
		exit(2);
	fds[4] = pipes[0];
	fds[5] = fds[0];
	if (fds[0] < 0) {
		perror(device);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct itimerval often = {.it_interval.tv_usec = 700, .it_value.tv_usec = 700};
	struct sigaction action = {.sa_handler = on_alarm};
	uint64_t calls, i;

	if (argc != 4) {
		fprintf(stderr, "usage: chardisk_fuzz DEV SEED CALLS\n");
		return 2;
	}
	device = argv[1];
	state = strtoull(argv[2], NULL, 10);
	calls = strtoull(argv[3], NULL, 10);
	memory = mmap(NULL, MEMORY + 2 * GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	guards_up();
	open_all();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < calls; i++) {
		uint64_t kind = draw(200);

		if (kind == 0)
			in_child();
		else if (kind < 3)
			reopen();
		else
			one_call();
		if (i % 16 == 0)
			usleep(1); /* else the guest's clock hangs */
	}
	printf("succeeded %" PRIu64 " refused %" PRIu64 "\n", succeeded, refused);
	if (!guards_hold()) {
		printf("memory beside the buffers was written\n");
		return 1;
	}
	return 0;
}
