/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steady_nvme: an NVMe SSD in software. The kernel's own PCI driver nvme drives it, so all code
 * from the block layer down to the interrupt is the kernel's.
 *
 *   nvme_params     converts module parameters to struct snvme_config.
 *   nvme_pci        has a PCI bus with one device: configuration space, BAR, MSI-X.
 *   nvme_registers  has the controller registers and doorbells, and resets.
 *   nvme_queues     takes commands from submission queues, puts answers into completion queues.
 *   nvme_io         runs I/O commands: checks, timing (flash/ssd), data (media/).
 *   nvme_admin      runs admin commands. nvme_identify, nvme_logs: their results.
 *   nvme_dma        accesses the memory that a command points to.
 *
 * A doorbell is a function call (lib/logic_iomem.c), in any context. It takes commands and gives
 * them to the timing model. A worker does the work that may sleep: contents and admin commands. The
 * timer's interrupt answers a command when both are done with it.
 *
 * Specification: NVM Express 1.3d; section numbers refer to it.
 */
#ifndef STEADY_NVME_H
#define STEADY_NVME_H

#include <linux/bits.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/nvme.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "flash_fault.h"
#include "media.h"
#include "ssd.h"

#define SNVME_QUEUES_MAX     16 /* I/O queue pairs */
#define SNVME_VECTORS_MAX    (SNVME_QUEUES_MAX + 1)
#define SNVME_NAMESPACES_MAX 16
#define SNVME_PAGE	     4096 /* memory page of the controller, the only size */
#define SNVME_SECTOR_BYTES   512
#define SNVME_EVENTS_MAX     4 /* asynchronous event requests */
#define SNVME_FEATURES	     (NVME_FEAT_ASYNC_EVENT + 1)
/* For admin commands, events and commands without answer, besides those of the drive. */
#define SNVME_SLOTS_MORE 64
#define SNVME_DNR	 0x4000 /* Do Not Retry; the kernel renamed its own */

/* In the BAR: registers, doorbells from NVME_REG_DBS, MSI-X. */
#define SNVME_BAR_BYTES	     0x4000
#define SNVME_BAR_MSIX_TABLE 0x2000
#define SNVME_BAR_MSIX_PBA   0x3000

struct snvme_config {
	struct ssd_params ssd;
	const char *model;
	const char *path; /* backing file, empty: memory */
	u64 namespace_sectors;
	u32 namespaces;
	u32 queues; /* I/O queue pairs */
	u32 queue_entries;
	u32 mdts_kib;
	u32 admin_ns; /* time of an admin command, and of a rejected command */
	bool volatile_cache;
	u32 fault_count;
	struct flash_fault fault[FLASH_FAULTS_MAX];
};

int snvme_params_load(struct snvme_config *config);

struct snvme_sq {
	bool live;
	u16 id;
	u16 cq;
	u32 entries;
	u32 head;
	u32 tail;
	u64 base;
};

struct snvme_cq {
	bool live;
	bool interrupts;
	bool phase;
	u16 vector;
	u32 entries;
	u32 head;
	u32 tail;
	u64 base;
	struct list_head answers; /* finished slots */
};

enum snvme_part { /* the parts that a command waits for */
	SNVME_TIME = BIT(0),
	SNVME_WORK = BIT(1), /* the worker */
};

/* A command inside the controller. */
struct snvme_slot {
	struct list_head link; /* free, worker's list, or answers of its queue */
	struct list_head due_link; /* in snvme.due, while its time is fixed */
	struct nvme_command command;
	u16 sq;
	u8 parts; /* SNVME_*, not done yet */
	bool busy;
	bool room; /* counted in snvme.rooms */
	bool in_drive; /* the timing model has the command */
	bool silent; /* an injected fault: no answer unless it is aborted */
	bool event; /* an asynchronous event request */
	bool orphan; /* its queue is gone: no answer */
	u16 status;
	u32 result;
	u64 due_ns;
	/* I/O commands */
	enum ssd_op op;
	u64 sector; /* of the drive */
	u32 sectors;
	struct nvme_dsm_range *ranges; /* for discards: ranges that the drive has not had yet */
	u32 range;
	u32 range_count;
};

struct snvme_stats {
	u64 reads;
	u64 writes;
	u64 flushes;
	u64 discards;
	u64 zeroes;
	u64 fua_writes;
	u64 read_sectors;
	u64 written_sectors;
	u64 admin;
	u64 failed; /* by an injected fault */
	u64 silent;
	u64 refused; /* answered with an error that the host has caused */
	u64 interrupts;
	u32 inflight; /* I/O commands */
	u32 inflight_max;
};

enum snvme_msix_word {
	SNVME_MSIX_ADDRESS,
	SNVME_MSIX_ADDRESS_HIGH,
	SNVME_MSIX_DATA,
	SNVME_MSIX_CONTROL,
	SNVME_MSIX_WORDS,
};

struct snvme_msix {
	u32 word[SNVME_MSIX_WORDS];
};

struct snvme {
	const struct snvme_config *config;
	struct media_store *store; /* the worker's */

	spinlock_t lock; /* protects all below */
	struct ssd *ssd;
	void *ssd_memory;

	u32 cc, csts, aqa;
	u64 asq, acq;
	bool resetting;
	u32 feature[SNVME_FEATURES];

	bool msix_enabled, msix_masked;
	struct snvme_msix msix[SNVME_VECTORS_MAX];
	unsigned long interrupts; /* to raise, by vector */

	struct snvme_sq sq[SNVME_QUEUES_MAX + 1];
	struct snvme_cq cq[SNVME_QUEUES_MAX + 1];
	struct snvme_slot *slots;
	u32 slot_count;
	struct list_head free;
	struct list_head due; /* slots with fixed times, in their order */
	struct list_head work_list;
	bool stalled; /* a queue has commands that found no room */
	u32 rooms; /* used places of the timing model */
	u32 events; /* asynchronous event requests */

	struct hrtimer timer;
	u64 timer_ns; /* when it fires; SSD_NEVER: it does not */
	struct workqueue_struct *workers;
	struct work_struct worker;

	u64 fault_seen[FLASH_FAULTS_MAX];
	struct snvme_stats stats;
};

/* nvme_pci */
int snvme_pci_create(struct snvme *dev);
int snvme_pci_start(void);
void snvme_pci_destroy(void);

/* nvme_registers */
u64 snvme_register_read(struct snvme *dev, u32 offset, int bytes);
void snvme_register_write(struct snvme *dev, u32 offset, int bytes, u64 value);
void snvme_doorbell(struct snvme *dev, u32 index, u32 value);
void snvme_reset(struct snvme *dev);

/* nvme_queues */
int snvme_queues_create(struct snvme *dev);
void snvme_queues_destroy(struct snvme *dev);
void snvme_sq_start(struct snvme *dev, u16 id, u64 base, u32 entries, u16 cq);
void snvme_sq_stop(struct snvme *dev, u16 id);
void snvme_cq_start(struct snvme *dev, u16 id, u64 base, u32 entries, u16 vector, bool interrupts);
void snvme_cq_stop(struct snvme *dev, u16 id);
void snvme_fetch(struct snvme *dev, struct snvme_sq *sq, u64 now_ns);
void snvme_timer_at(struct snvme *dev, u64 at_ns);
void snvme_wait_fixed(struct snvme *dev, struct snvme_slot *slot, u64 now_ns);
void snvme_give_to_worker(struct snvme *dev, struct snvme_slot *slot);
void snvme_part_done(struct snvme *dev, struct snvme_slot *slot, enum snvme_part part);
void snvme_abandon(struct snvme *dev, struct snvme_slot *slot);
void snvme_event(struct snvme *dev, u8 type, u8 info, u8 log);

/* nvme_io */
void snvme_io_start(struct snvme *dev, struct snvme_slot *slot, u64 now_ns);
void snvme_io_work(struct snvme *dev, struct snvme_slot *slot);
bool snvme_io_next_range(struct snvme *dev, struct snvme_slot *slot, u64 now_ns);

/* nvme_admin */
void snvme_admin_start(struct snvme *dev, struct snvme_slot *slot, u64 now_ns);
void snvme_admin_work(struct snvme *dev, struct snvme_slot *slot);
void snvme_features_reset(struct snvme *dev);

/* nvme_identify, nvme_logs: a status code */
u16 snvme_identify(struct snvme *dev, const struct nvme_command *command);
u16 snvme_get_log(struct snvme *dev, const struct nvme_command *command);

/* A number of 128 bits in identify data and logs. */
static inline void snvme_put_u128(u8 *to, u64 value)
{
	__le64 low = cpu_to_le64(value);

	memcpy(to, &low, sizeof(low));
}

/* nvme_dma: status codes */
typedef u16 snvme_segment_fn(void *context, void *at, u32 bytes, u32 done);
u16 snvme_dma_walk(u64 prp1, u64 prp2, u32 bytes, snvme_segment_fn *each, void *context);
u16 snvme_dma_to_host(const struct nvme_command *command, const void *from, u32 bytes);
u16 snvme_dma_from_host(const struct nvme_command *command, void *to, u32 bytes);
void *snvme_dma_memory(u64 address, u64 bytes);

void snvme_debugfs_create(struct snvme *dev);
void snvme_debugfs_remove(void);

#endif
