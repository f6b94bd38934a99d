// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One direct write at the start of a device that must not be torn: atomic_write DEV KIB. Exit
 * status 1: the kernel refuses or fails it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Newer than the C library of Debian 12. */
#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40
#endif

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) * 1024 : 0;
	struct iovec vector = {.iov_len = bytes};
	int fd;

	if (!bytes || posix_memalign(&vector.iov_base, 4096, bytes)) {
		fprintf(stderr, "usage: atomic_write DEV KIB\n");
		return 2;
	}
	memset(vector.iov_base, 'a', bytes);
	fd = open(argv[1], O_WRONLY | O_DIRECT);
	if (fd < 0 || pwritev2(fd, &vector, 1, 0, RWF_ATOMIC) != (ssize_t)bytes) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
