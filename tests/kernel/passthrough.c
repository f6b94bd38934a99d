// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One read past the block layer's reads and writes: passthrough scsi|mmc DEV SECTOR SECTORS, by
 * SG_IO with READ(10), or by MMC_IOC_CMD with CMD18 (and the CMD23 before it, in one
 * MMC_IOC_MULTI_CMD). The data goes to standard output.
 */
#include <fcntl.h>
#include <linux/mmc/ioctl.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SECTOR_BYTES 512
/* Flags of the MMC core: linux/mmc/core.h, which user space does not get. */
#define MMC_R1	 (1 << 0 | 1 << 2 | 1 << 4)
#define MMC_AC	 (0 << 5)
#define MMC_ADTC (1 << 5)

static int by_scsi(int fd, uint32_t sector, uint32_t sectors, void *data)
{
	uint8_t sense[32] = {0};
	uint8_t command[10] = {0x28,
			       0,
			       (uint8_t)(sector >> 24),
			       (uint8_t)(sector >> 16),
			       (uint8_t)(sector >> 8),
			       (uint8_t)sector,
			       0,
			       (uint8_t)(sectors >> 8),
			       (uint8_t)sectors,
			       0};
	struct sg_io_hdr header = {
		.interface_id = 'S',
		.dxfer_direction = SG_DXFER_FROM_DEV,
		.cmd_len = sizeof(command),
		.mx_sb_len = sizeof(sense),
		.dxfer_len = sectors * SECTOR_BYTES,
		.dxferp = data,
		.cmdp = command,
		.sbp = sense,
		.timeout = 5000,
	};

	if (ioctl(fd, SG_IO, &header))
		return -1;
	return (header.info & SG_INFO_OK_MASK) == SG_INFO_OK ? 0 : -1;
}

static int by_mmc(int fd, uint32_t sector, uint32_t sectors, void *data)
{
	struct mmc_ioc_multi_cmd *multi = calloc(1, sizeof(*multi) + 2 * sizeof(multi->cmds[0]));
	int result;

	if (!multi)
		return -1;
	multi->num_of_cmds = 2;
	multi->cmds[0] =
		(struct mmc_ioc_cmd){.opcode = 23, .arg = sectors, .flags = MMC_R1 | MMC_AC};
	multi->cmds[1] = (struct mmc_ioc_cmd){
		.opcode = 18,
		.arg = sector,
		.flags = MMC_R1 | MMC_ADTC,
		.blksz = SECTOR_BYTES,
		.blocks = sectors,
		.data_ptr = (uintptr_t)data,
	};
	result = ioctl(fd, MMC_IOC_MULTI_CMD, multi);
	free(multi);
	return result;
}

int main(int argc, char **argv)
{
	uint32_t sector, sectors;
	char *data;
	int fd, result;

	if (argc != 5 || (strcmp(argv[1], "scsi") != 0 && strcmp(argv[1], "mmc") != 0)) {
		fprintf(stderr, "usage: passthrough scsi|mmc DEV SECTOR SECTORS\n");
		return 2;
	}
	sector = (uint32_t)strtoul(argv[3], NULL, 10);
	sectors = (uint32_t)strtoul(argv[4], NULL, 10);
	fd = open(argv[2], O_RDWR);
	data = aligned_alloc(4096, (size_t)sectors * SECTOR_BYTES);
	if (fd < 0 || !data) {
		perror(argv[2]);
		return 1;
	}
	result = strcmp(argv[1], "scsi") == 0 ? by_scsi(fd, sector, sectors, data)
					      : by_mmc(fd, sector, sectors, data);
	if (result) {
		perror("passthrough");
		return 1;
	}
	return fwrite(data, SECTOR_BYTES, sectors, stdout) == sectors ? 0 : 1;
}
