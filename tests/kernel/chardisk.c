// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One call on a character device for storage: chardisk DEV OP [KEY=VALUE]... with the operations
 *
 *	read write	prints "BYTES commands N", of a call through `via`
 *	discard fsync	prints "0"
 *	hold		prints "held", and ends with its standard input
 *	info region stats	prints a line "KEY VALUE" per field
 *
 * or the name of the error. Keys, with sizes in bytes:
 *
 *	offset=N bytes=N	on the device.
 *	via=pread|preadv|transfer|buffer	transfer and buffer: the ioctl, without and with a
 *						registered buffer.
 *	memory=N	where in the memory, which is page aligned [0].
 *	level=N		the ioctl's real-time level; class=N its I/O priority class.
 *	durable=1	O_DSYNC, and the ioctl's flag.
 *	open=r|w|rw	[rw].
 *	exclusive=1	O_EXCL.
 *	fill=N		the content of a write; a read prints its first and last byte, too.
 *	index=N scope=N	of region, stats.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chardisk.h"

#define PAGE 4096

static struct {
	uint64_t offset, bytes, memory, class, level, durable, fill, index, scope, exclusive;
	const char *via, *open;
} options = {.bytes = PAGE, .class = IOPRIO_CLASS_RT, .level = 99, .via = "pread", .open = "rw"};

static const struct {
	const char *name;
	uint64_t *value;
} numbers[] = {
	{"offset", &options.offset},	   {"bytes", &options.bytes}, {"memory", &options.memory},
	{"class", &options.class},	   {"level", &options.level}, {"fill", &options.fill},
	{"durable", &options.durable},	   {"index", &options.index}, {"scope", &options.scope},
	{"exclusive", &options.exclusive},
};

static int fd;

static int say_error(void)
{
	printf("%s\n", strerrorname_np(errno));
	return 0;
}

static bool set_option(char *text)
{
	char *value = strchr(text, '=');

	if (!value)
		return false;
	*value++ = '\0';
	if (strcmp(text, "via") == 0)
		options.via = value;
	else if (strcmp(text, "open") == 0)
		options.open = value;
	else {
		size_t i = 0;

		while (i < sizeof(numbers) / sizeof(*numbers) && strcmp(numbers[i].name, text))
			i++;
		if (i == sizeof(numbers) / sizeof(*numbers))
			return false;
		*numbers[i].value = strtoull(value, NULL, 0);
	}
	return true;
}

static uint64_t commands(bool write)
{
	struct chardisk_stats stats = {.scope = CHARDISK_STATS_FILE};

	if (ioctl(fd, CHARDISK_IOC_STATS, &stats))
		return 0;
	return write ? stats.write_commands : stats.read_commands;
}

/* Two vectors, the first of one block. */
static ssize_t by_vector(bool write, char *data)
{
	struct iovec parts[] = {{data, 512}, {data + 512, options.bytes - 512}};

	return write ? pwritev(fd, parts, 2, (off_t)options.offset)
		     : preadv(fd, parts, 2, (off_t)options.offset);
}

static ssize_t by_transfer(bool write, char *memory, size_t mapped, uint64_t *sent)
{
	struct chardisk_register buffer = {.address = (uintptr_t)memory, .bytes = mapped};
	struct chardisk_transfer transfer = {
		.offset = options.offset,
		.bytes = options.bytes,
		.buffer_offset = (uintptr_t)memory + options.memory,
		.buffer = CHARDISK_NO_BUFFER,
		.flags = write && options.durable ? CHARDISK_DURABLE : 0,
		.op = write ? CHARDISK_WRITE : CHARDISK_READ,
	};
	int status;

	if (options.level != 99)
		transfer.ioprio = IOPRIO_PRIO_VALUE(options.class, options.level);
	if (strcmp(options.via, "buffer") == 0) {
		if (ioctl(fd, CHARDISK_IOC_REGISTER, &buffer))
			return -1;
		transfer.buffer = buffer.buffer;
		transfer.buffer_offset = options.memory;
	}
	status = ioctl(fd, CHARDISK_IOC_TRANSFER, &transfer);
	*sent = transfer.commands;
	if (status && transfer.done_bytes)
		printf("%" PRIu64 " then ", (uint64_t)transfer.done_bytes);
	return status ? -1 : (ssize_t)transfer.done_bytes;
}

static int move(bool write)
{
	size_t mapped = (options.memory + options.bytes + PAGE) / PAGE * PAGE;
	char *memory =
		mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *data = memory + options.memory;
	uint64_t sent = 0;
	ssize_t size;

	if (memory == MAP_FAILED)
		return say_error();
	memset(memory, write ? (int)options.fill : 0xee, mapped);
	if (strcmp(options.via, "pread") == 0)
		size = write ? pwrite(fd, data, options.bytes, (off_t)options.offset)
			     : pread(fd, data, options.bytes, (off_t)options.offset);
	else if (strcmp(options.via, "preadv") == 0)
		size = by_vector(write, data);
	else
		size = by_transfer(write, memory, mapped, &sent);
	if (size < 0)
		return say_error();
	if (!sent)
		sent = commands(write);
	printf("%zd commands %" PRIu64, size, sent);
	if (!write && size > 0)
		printf(" content %u %u", (uint8_t)data[0], (uint8_t)data[size - 1]);
	printf("\n");
	return 0;
}

static int discard(void)
{
	struct chardisk_discard range = {.offset = options.offset, .bytes = options.bytes};

	if (ioctl(fd, CHARDISK_IOC_DISCARD, &range))
		return say_error();
	return puts("0") < 0;
}

static int info(void)
{
	struct chardisk_info info = {0};

	if (ioctl(fd, CHARDISK_IOC_INFO, &info))
		return say_error();
	printf("version %u\nmode %u\ncapabilities 0x%x\nbytes %llu\ncard_offset_bytes %llu\n",
	       info.version, info.mode, info.capabilities, info.bytes, info.card_offset_bytes);
	printf("block_bytes %u\nmemory_align_bytes %u\ncommand_bytes_max %u\n", info.block_bytes,
	       info.memory_align_bytes, info.command_bytes_max);
	printf("bg_command_bytes_max %u\nsegments_max %u\nchunk_bytes %u\nerase_bytes %u\n",
	       info.bg_command_bytes_max, info.segments_max, info.chunk_bytes, info.erase_bytes);
	printf("regions %u\ncard %s\n", info.regions, info.card);
	return 0;
}

static int region(void)
{
	struct chardisk_region region = {.index = (uint32_t)options.index};

	if (ioctl(fd, CHARDISK_IOC_REGION, &region))
		return say_error();
	printf("%llu+%llu %u\n", region.offset, region.bytes, region.region_flags);
	return 0;
}

static int stats(void)
{
	struct chardisk_stats stats = {.scope = (uint32_t)options.scope};

	if (ioctl(fd, CHARDISK_IOC_STATS, &stats))
		return say_error();
	printf("retries %llu\nresets %llu\nerrors %llu\nflushes %llu\ndiscards %llu\nrt_calls "
	       "%llu\n",
	       stats.retries, stats.resets, stats.errors, stats.flushes, stats.discards,
	       stats.rt_calls);
	return 0;
}

static int hold(void)
{
	char byte;

	printf("held\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

static int run(const char *op)
{
	if (strcmp(op, "hold") == 0)
		return hold();
	if (strcmp(op, "read") == 0 || strcmp(op, "write") == 0)
		return move(op[0] == 'w');
	if (strcmp(op, "discard") == 0)
		return discard();
	if (strcmp(op, "fsync") == 0)
		return fsync(fd) ? say_error() : puts("0") < 0;
	if (strcmp(op, "info") == 0)
		return info();
	if (strcmp(op, "region") == 0)
		return region();
	if (strcmp(op, "stats") == 0)
		return stats();
	fprintf(stderr, "chardisk: %s: no such operation\n", op);
	return 2;
}

int main(int argc, char **argv)
{
	int flags;

	if (argc < 3) {
		fprintf(stderr, "usage: chardisk DEV OP [KEY=VALUE]...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		if (!set_option(argv[i])) {
			fprintf(stderr, "chardisk: %s: no such option\n", argv[i]);
			return 2;
		}
	}
	flags = strcmp(options.open, "r") == 0	 ? O_RDONLY
		: strcmp(options.open, "w") == 0 ? O_WRONLY
						 : O_RDWR;
	flags |= options.durable ? O_DSYNC : 0;
	flags |= options.exclusive ? O_EXCL : 0;
	fd = open(argv[1], flags);
	return fd < 0 ? say_error() : run(argv[2]);
}
