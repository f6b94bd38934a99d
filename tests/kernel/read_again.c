// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * read_again FILE STOP: read FILE over and over, as fast as possible, until the file STOP is there.
 * FILE stays open; when it can no longer be read it is opened again, once it is there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char text[4096];
	unsigned int reads = 0;

	if (argc != 3)
		return 2;
	while (access(argv[2], F_OK)) {
		int file = open(argv[1], O_RDONLY);

		if (file < 0)
			continue;
		while (pread(file, text, sizeof(text), 0) >= 0)
			if (!(++reads % 64) && !access(argv[2], F_OK))
				break;
		close(file);
	}
	printf("read_again: %s: %u times\n", argv[1], reads);
	return 0;
}
