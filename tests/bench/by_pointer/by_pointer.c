// SPDX-License-Identifier: MIT OR Apache-2.0
/* by_pointer COMMAND: runs it, and prints how many bios by_pointer.bpf.c knew again. For run.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "by_pointer.skel.h"

int main(int argc, char **argv)
{
	struct by_pointer *program = by_pointer__open_and_load();

	if (argc != 2 || !program || by_pointer__attach(program) || system(argv[1])) {
		fprintf(stderr, "by_pointer: cannot load, or the command failed\n");
		return 1;
	}
	sleep(1);
	printf("BPF: %llu bios queued, %llu known when issued, %llu when ended, %llu not known\n",
	       (unsigned long long)program->bss->queued, (unsigned long long)program->bss->issued,
	       (unsigned long long)program->bss->ended, (unsigned long long)program->bss->unknown);
	by_pointer__destroy(program);
	return 0;
}
