// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * refused FILE VALUE...: each value, written to FILE, is an EINVAL and leaves FILE as it reads. An
 * empty VALUE stands for a newline alone. One process for all: to start programs is slow under QEMU.
 * Exit status 0: all refused; 1: one was not, and is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void contents(const char *file, char *text, size_t size)
{
	int fd = open(file, O_RDONLY);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

	if (length < 0) {
		perror(file);
		exit(1);
	}
	text[length] = '\0';
	close(fd);
}

static int write_error(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY), error;

	if (fd < 0) {
		perror(file);
		exit(1);
	}
	error = write(fd, value, strlen(value)) < 0 ? errno : 0;
	close(fd);
	return error;
}

int main(int argc, char **argv)
{
	static char before[4096], after[4096];

	if (argc < 3) {
		fprintf(stderr, "usage: refused FILE VALUE...\n");
		return 1;
	}
	contents(argv[1], before, sizeof(before));
	for (int i = 2; i < argc; i++) {
		const char *value = argv[i][0] ? argv[i] : "\n";
		int error = write_error(argv[1], value);

		if (error != EINVAL) {
			printf("%s '%s': %s, expected EINVAL\n", argv[1], value, strerror(error));
			return 1;
		}
		contents(argv[1], after, sizeof(after));
		if (strcmp(before, after)) {
			printf("%s after '%s': '%s', was '%s'\n", argv[1], value, after, before);
			return 1;
		}
	}
	return 0;
}
