/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steady_emmc: an eMMC card and its host controller in software. The kernel's own MMC stack drives
 * them, so all code from the block layer down to mmc_request_done() is the kernel's.
 *
 *   emmc_params     converts module parameters to struct emmc_config.
 *   emmc_registers  has CID, CSD and EXT_CSD.
 *   emmc_card       executes commands: answers, data (media/) and timing (flash/).
 *   emmc_host       is the mmc_host: runs a command on the card, completes it when it is due.
 *   emmc_cqe        does the same with a command queue.
 *   emmc_main       is the module with the platform device, probe and remove.
 *
 * The card outlives the host: unbinding the driver removes the card's power, and binding restores
 * it. Stable data is kept.
 */
#ifndef STEADY_EMMC_H
#define STEADY_EMMC_H

#include <linux/hrtimer.h>
#include <linux/mmc/core.h>
#include <linux/mmc/host.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "flash_model.h"
#include "media.h"

#define EMMC_NAME_CHARS	   6 /* product name in the CID */
#define EMMC_REQUEST_BYTES (512 * 1024)
#define EMMC_SEGMENTS_MAX  128
#define EMMC_EXT_CSD_BYTES 512

struct emmc_config {
	struct flash_params flash;
	char name[EMMC_NAME_CHARS + 1];
	const char *path; /* backing file, empty: memory */
	const char *write_log; /* empty: none */
	u64 sectors;
	u32 queue_depth; /* 0: no command queue */
	u64 status_ns; /* CMD13 */
	u64 power_cut_after_writes; /* 0: never */
};

int emmc_params_load(struct emmc_config *config);

struct emmc_stats {
	u64 ops[FLASH_OPS];
	u64 durable_writes;
	u64 failed;
	u64 silent;
	u64 lost_pages; /* 4 KiB each, dropped from the cache at power off */
	u32 inflight;
	u32 inflight_max;
};

struct emmc_card {
	const struct emmc_config *config;
	struct media_store *store;
	struct media_log *log; /* NULL: none */
	struct mutex lock; /* protects all below but dead, cut_due, writes_acked, stats */
	struct flash_model flash;
	u32 state; /* R1_STATE_* */
	u32 errors; /* R1 error bits that the next R1 answer carries */
	bool reliable; /* CMD23 made the next write durable */
	u64 erase_first;
	u64 erase_last;
	u8 ext_csd[EMMC_EXT_CSD_BYTES];
	void *bounce; /* EMMC_REQUEST_BYTES */
	bool dead; /* power was cut; set in any context */
	bool cut_due; /* power_cut_after_writes was reached */
	atomic64_t writes_acked;
	struct emmc_stats stats;
};

/* The card's answers to one request. */
struct emmc_answer {
	u64 finish_ns;
	bool silent; /* never answers; the host's time limit applies */
	bool write; /* counts for power_cut_after_writes when acknowledged */
};

int emmc_card_create(struct emmc_card *card, const struct emmc_config *config);
void emmc_card_destroy(struct emmc_card *card);
void emmc_card_power_on(struct emmc_card *card);
void emmc_card_power_off(struct emmc_card *card);
void emmc_card_cut_power(struct emmc_card *card);
void emmc_card_command(struct emmc_card *card, struct mmc_request *mrq, u64 now_ns,
		       struct emmc_answer *answer);
void emmc_card_task(struct emmc_card *card, struct mmc_request *mrq, u64 now_ns,
		    struct emmc_answer *answer);
void emmc_card_cut_if_due(struct emmc_card *card);
void emmc_card_acknowledge(struct emmc_card *card, const struct emmc_answer *answer);

void emmc_registers_cid(const struct emmc_config *config, u32 cid[4]);
void emmc_registers_csd(u32 csd[4]);
void emmc_registers_ext_csd(const struct emmc_config *config, u8 *ext_csd);

/* One request in flight: completed by its timer. */
struct emmc_task {
	struct emmc_host *host;
	struct hrtimer timer;
	struct mmc_request *mrq; /* NULL: free */
	struct emmc_answer answer;
	bool finished; /* command queue only: it was due during recovery */
	int error; /* command queue only */
};

struct emmc_host {
	struct mmc_host *mmc;
	struct emmc_card *card;
	struct emmc_task single; /* without command queue: one at a time */

	struct mutex submitting; /* held while a task is put into the queue */
	spinlock_t lock; /* the queue below */
	wait_queue_head_t idle;
	struct emmc_task task[FLASH_DEPTH_MAX];
	u32 queued;
	bool halted; /* an error or a time-out waits for recovery */
};

void emmc_host_setup(struct emmc_host *host);
void emmc_host_teardown(struct emmc_host *host);
void emmc_cqe_setup(struct emmc_host *host);
void emmc_cqe_teardown(struct emmc_host *host);

void emmc_debugfs_create(struct emmc_card *card);
void emmc_debugfs_remove(void);

#endif
