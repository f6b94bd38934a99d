// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One command to an NVMe drive by the driver's passthrough, as it is given, right or wrong:
 * nvme_command io|admin DEV OPCODE SLBA BLOCKS DATA_BYTES [WORD]
 *
 * The driver maps DATA_BYTES. If that is less than BLOCKS need, some PRP entries have no meaning:
 * with two pages too few, the second is taken for the list of further pages. It is filled with
 * WORD. Prints "status N", in hexadecimal, as the drive gave it; 4000 is Do Not Retry.
 */
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

int main(int argc, char **argv)
{
	struct nvme_passthru_cmd command = {0};
	unsigned long request, i;
	uint64_t *data = NULL;
	int fd, status;

	if (argc < 7 || argc > 8 || (strcmp(argv[1], "io") != 0 && strcmp(argv[1], "admin") != 0)) {
		fprintf(stderr,
			"usage: nvme_command io|admin DEV OPCODE SLBA BLOCKS DATA_BYTES [WORD]\n");
		return 2;
	}
	request = strcmp(argv[1], "io") == 0 ? NVME_IOCTL_IO_CMD : NVME_IOCTL_ADMIN_CMD;
	command.opcode = (uint8_t)number(argv[3]);
	command.nsid = 1;
	command.cdw10 = (uint32_t)number(argv[4]);
	command.cdw11 = (uint32_t)(number(argv[4]) >> 32);
	command.cdw12 = (uint32_t)number(argv[5]) - 1;
	command.data_len = (uint32_t)number(argv[6]);
	if (command.data_len && posix_memalign((void **)&data, 4096, command.data_len))
		return 1;
	for (i = 0; i < command.data_len / sizeof(*data); i++)
		data[i] = argc > 7 ? number(argv[7]) : 0x5a5a5a5a5a5a5a5a;
	command.addr = (uintptr_t)data;
	fd = open(argv[2], O_RDWR);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	status = ioctl(fd, request, &command);
	if (status < 0) {
		perror("nvme_command");
		return 1;
	}
	printf("status %x\n", (unsigned int)status);
	return 0;
}
