/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steady_scsi: a disk behind a SCSI host, in software, with the timing of managed flash. With one
 * slot it is a card or stick behind a USB bridge. The kernel's SCSI stack drives it.
 *
 *   scsi_params  converts module parameters to struct sscsi_config.
 *   scsi_disk    executes commands: answers, data (media/) and timing (flash/).
 *   scsi_host    is the host: runs a command on the disk, completes it when it is due.
 *   scsi_main    is the module.
 */
#ifndef STEADY_SCSI_H
#define STEADY_SCSI_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <scsi/scsi_cmnd.h>

#include "flash_model.h"
#include "media.h"

#define SSCSI_NAME_CHARS    16 /* product identification of INQUIRY */
#define SSCSI_REQUEST_BYTES (512 * 1024)
#define SSCSI_SEGMENTS_MAX  128

struct sscsi_config {
	struct flash_params flash;
	char name[SSCSI_NAME_CHARS + 1];
	const char *path; /* backing file, empty: memory */
	u64 sectors;
};

int sscsi_params_load(struct sscsi_config *config);

struct sscsi_stats {
	u64 ops[FLASH_OPS];
	u64 durable_writes;
	u64 failed;
	u64 silent;
	u32 inflight;
	u32 inflight_max;
};

struct sscsi_disk {
	const struct sscsi_config *config;
	struct media_store *store;
	struct mutex lock; /* protects all below but stats.inflight */
	struct flash_model flash;
	void *bounce; /* SSCSI_REQUEST_BYTES */
	struct sscsi_stats stats;
};

/* When a command is due. */
struct sscsi_answer {
	u64 finish_ns;
	bool silent; /* never: the kernel's time limit applies */
};

int sscsi_disk_create(struct sscsi_disk *disk, const struct sscsi_config *config);
void sscsi_disk_destroy(struct sscsi_disk *disk);
void sscsi_disk_command(struct sscsi_disk *disk, struct scsi_cmnd *cmd, u64 now_ns,
			struct sscsi_answer *answer);

int sscsi_host_create(struct sscsi_disk *disk);
void sscsi_host_destroy(void);

void sscsi_debugfs_create(struct sscsi_disk *disk);
void sscsi_debugfs_remove(void);

#endif
