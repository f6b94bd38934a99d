// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fragment FILE OTHER BYTES: a file whose 4 KiB blocks are apart on the device. Space for one block
 * at a time is allocated to FILE and to OTHER in turns; then FILE is written. Runs in the guest of
 * steady_lab/figures/direct_path.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	static char data[256 * BLOCK];
	int files[2];
	off_t at, bytes;

	if (argc != 4) {
		fprintf(stderr, "usage: fragment FILE OTHER BYTES\n");
		return 2;
	}
	bytes = atol(argv[3]);
	for (int i = 0; i < 2; i++) {
		files[i] = open(argv[1 + i], O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (files[i] < 0)
			die(argv[1 + i]);
	}
	for (at = 0; at < bytes; at += BLOCK)
		for (int i = 0; i < 2; i++)
			if (fallocate(files[i], 0, at, BLOCK))
				die("fallocate");
	memset(data, 1, sizeof(data));
	for (at = 0; at < bytes; at += (off_t)sizeof(data))
		if (pwrite(files[0], data, sizeof(data), at) != (ssize_t)sizeof(data))
			die("write");
	if (fsync(files[0]))
		die("fsync");
	return 0;
}
