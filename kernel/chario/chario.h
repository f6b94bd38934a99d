/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * chario: an eMMC or SD card, or a part of one, as the character device /dev/chardiskN.
 *
 *   chario_main      the module, and the mmc_driver of cards that were named.
 *   chario_names     the names of these cards, with their regions.
 *   chario_take      takes a card from mmcblk if nobody uses it, and returns it.
 *   chario_lane      a partition of a card whose rest stays with mmcblk.
 *   chario_disk      creates and ends a device.
 *   chario_cdev      the file operations. chario_ioctl: the ioctls.
 *   chario_transfer  cuts a call into operations that card and host can do at once.
 *   chario_memory    maps pages to a scatterlist. chario_buffers: registered buffers.
 *   chario_declared  memory that is registered by its physical address.
 *   chario_queue     chooses the card's next operation.
 *   chario_order     orders a lane against mmcblk's queue, with the help of k2.
 *   chario_area      selects the area of an eMMC.
 *   chario_command   makes MMC commands, checks the answers, and recovers the card.
 *   chario_sysfs     knobs and counters.
 *
 * The path of a call: cdev or ioctl -> transfer -> queue -> command -> mmc core, and back.
 */
#ifndef CHARIO_H
#define CHARIO_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/mmc/core.h>
#include <linux/mmc/host.h>
#include <linux/rtmutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "chardisk.h"
#include "k2_lane.h"

#define CHARIO_NAME	    "chario"
#define CHARIO_SECTOR_BYTES 512
#define CHARIO_CHUNK_BYTES  (4u << 20)
#define CHARIO_CHUNK_PAGES  (CHARIO_CHUNK_BYTES / PAGE_SIZE + 1) /* memory may start in a page */
#define CHARIO_RT_LEVELS    8
#define CHARIO_BACKGROUND   CHARIO_RT_LEVELS /* the level of calls that are not real-time */
#define CHARIO_LEVELS	    (CHARIO_RT_LEVELS + 1)
#define CHARIO_REGIONS_MAX  16
#define CHARIO_BUFFERS_MAX  64
#define CHARIO_BUFFER_BYTES 0x40000000u
#define CHARIO_CARD_CHARS   32

enum chario_counter {
	CHARIO_READS,
	CHARIO_READ_BYTES,
	CHARIO_READ_COMMANDS,
	CHARIO_WRITES,
	CHARIO_WRITE_BYTES,
	CHARIO_WRITE_COMMANDS,
	CHARIO_FLUSHES,
	CHARIO_DISCARDS,
	CHARIO_RETRIES,
	CHARIO_RESETS,
	CHARIO_ERRORS,
	CHARIO_RT_CALLS,
	CHARIO_COUNTERS,
};

struct chario_stats {
	atomic64_t count[CHARIO_COUNTERS];
};

struct chario_region {
	u64 offset;
	u64 bytes;
	bool read_only;
};

struct chario_regions {
	struct chario_region region[CHARIO_REGIONS_MAX];
	u32 count; /* 0: the whole device is accessible */
};

enum chario_kind {
	CHARIO_OP_READ,
	CHARIO_OP_WRITE,
	CHARIO_OP_FLUSH,
	CHARIO_OP_DISCARD,
};

enum chario_state {
	CHARIO_IDLE, /* the caller owns it */
	CHARIO_READY, /* queued */
	CHARIO_ON_CARD,
	CHARIO_LANDED, /* the host is done; some thread must check the answer, in process context */
	CHARIO_DONE,
};

/* One operation of the card, for a caller that sleeps until it is done. */
struct chario_op {
	struct list_head entry; /* under queue.lock, as is all down to keeps_place */
	struct task_struct *task;
	enum chario_state state;
	u8 level;
	bool keeps_place; /* real-time: keep its level and lower ones waiting for the next op */
	u64 since_ns; /* for a lane: when it was queued */

	/* The members below belong to the operation's owner, which depends on its state. */
	enum chario_kind kind;
	bool durable; /* a write that is on flash when it ends */
	bool reset_first;
	u32 sector; /* on the card */
	u32 sectors;
	struct scatterlist *sg;
	u32 sg_len;

	int error; /* 0, -EIO, -ENODEV, -EINTR, -EOPNOTSUPP */
	u32 done_bytes;
	bool was_sent;
	bool card_answers; /* after an error: the card took the command, and only its data failed */
	struct chario_disk *disk; /* for the host's completion */

	struct mmc_request mrq;
	struct mmc_command sbc;
	struct mmc_command cmd;
	struct mmc_command stop;
	struct mmc_data data;
};

struct chario_queue {
	spinlock_t lock; /* for all but claimed; the host's completion takes it */
	struct list_head waiting[CHARIO_LEVELS];
	struct chario_op *on_card;
	bool held; /* suspended */
	bool gone; /* the card is gone permanently */
	wait_queue_head_t drained;

	/*
	 * Held while a command is started or its answer checked. Its holder inherits the priority
	 * of the waiters, so a real-time caller never waits for a task that waits for a CPU.
	 */
	struct rt_mutex turn;
	bool claimed; /* ctx has claimed the host; under turn */
	struct chario_lane *lane; /* NULL: chario has the whole card; constant until gone */
	u8 asked; /* for a lane: operations of this level and lower ones wait for k2 */
	u8 granted; /* for a lane: this level and higher ones may go */
	u8 other_area; /* for a lane: the EXT_CSD area of mmcblk; under turn */
	struct mmc_ctx ctx;
};

struct chario_disk {
	struct device dev;
	struct cdev cdev;
	atomic_t opened; /* number of files; -1: one exclusive file */
	u32 mode;
	char card_name[CHARIO_CARD_CHARS];
	struct mmc_card *card; /* under queue.turn, and valid only until queue.gone */

	/* Constant after creation. For a lane, bytes and can_write change, see chario_disk.c. */
	u32 first_sector; /* on the card */
	u64 bytes;
	u32 block_bytes;
	u32 segments_max;
	u32 segment_bytes_max;
	u32 host_command_bytes; /* the largest command of the host */
	u32 erase_bytes;
	u32 erase_arg;
	bool can_write;
	bool can_discard;
	bool has_cache;
	bool has_reliable_write;
	u32 reliable_sectors; /* 0: any number */
	bool has_cmd23;
	struct chario_regions regions;

	u32 command_kib; /* knobs; 0: host_command_bytes */
	u32 bg_kib;

	struct chario_queue queue;
	struct chario_stats stats;
};

/* All of this is under queue.turn. */
struct chario_order {
	struct k2_lane lane;
	const struct k2_lane_order *k2; /* NULL: the lane has not asked k2 */
	bool has_card; /* k2 has granted the card */
};

/* The partition of a lane at one moment: it can be resized and made read-only. */
struct chario_part {
	struct chario_lane *lane;
	u64 first_sector;
	u64 sectors;
	bool read_only;
};

/* Memory for one transfer. A file keeps one, so that calls do not allocate. */
struct chario_work {
	struct chario_op op;
	struct page *pages[CHARIO_CHUNK_PAGES];
	struct scatterlist sg[];
};

struct chario_file {
	struct chario_disk *disk;
	bool is_exclusive;
	struct chario_work *spare; /* accessed by xchg() */
	struct xarray buffers;
	struct chario_stats stats;
};

/* A registered buffer. It lives until it is unregistered and no transfer uses it. */
struct chario_buffer {
	struct kref ref;
	struct rcu_head rcu;
	struct mm_struct *mm; /* the owner of the memory */
	const struct cred
		*counted_for; /* the user that its locked memory is charged to; NULL: not limited */
	u64 bytes;
	bool is_declared; /* by address: not pinned, charged to nobody */
	unsigned long page_count;
	struct page *pages[];
};

/* A call: its arguments and its results. */
struct chario_call {
	struct chario_file *file;
	bool write;
	bool durable;
	u8 level;
	u64 offset; /* on the device, in bytes */
	u64 done_bytes; /* out */
	u32 commands; /* out */
	int error; /* out: why it ended early; 0 if all was transferred */
};

/* chario_main */
extern struct class chario_class;
struct device_driver *chario_driver(void);
int chario_devt_alloc(dev_t *devt);
void chario_devt_free(dev_t devt);

/* chario_names */
int chario_names_parse(const char *text, char *name, size_t name_bytes,
		       struct chario_regions *regions);
int chario_names_add(const char *text);
int chario_names_use(const struct mmc_card *card, struct chario_regions *regions);
ssize_t chario_names_show(char *text);

/* chario_take */
int chario_take(const char *text);
int chario_give(const char *name);
bool chario_take_is_alone(struct block_device *bdev);

/* chario_lane */
int chario_lane_add(const char *text);
int chario_lane_remove(const char *text);
void chario_lane_claim(struct chario_lane *lane, struct mmc_card *card, struct mmc_ctx *ctx);
void chario_lane_leave(struct chario_lane *lane);
void chario_lane_let_go(struct chario_lane *lane, bool waits);
bool chario_lane_may_go(struct chario_lane *lane, u8 level, u64 since_ns);
bool chario_lane_is_wanted(const struct chario_lane *lane);
void chario_lane_gets(struct chario_lane *lane, struct chario_disk *disk);
struct chario_part chario_lane_part(struct chario_lane *lane);
bool chario_lane_pauses(const struct chario_lane *lane);
void chario_lane_ended(struct chario_lane *lane, u8 level);
const char *chario_lane_partition(const struct chario_lane *lane);
int chario_lanes_init(void);
void chario_lanes_exit(void);

/* chario_order */
void chario_order_init(struct chario_order *order, struct request_queue *queue,
		       void (*may_go)(struct k2_lane *lane));
enum k2_lane_answer chario_order_ask(struct chario_order *order, u8 level, u64 since_ns);
void chario_order_give(struct chario_order *order, bool waits);

/* chario_disk */
struct chario_disk *chario_disk_create(struct mmc_card *card, const struct chario_regions *regions,
				       const struct chario_part *part);
void chario_disk_end(struct chario_disk *disk);
u64 chario_disk_bytes(struct chario_disk *disk);
bool chario_disk_can_write(struct chario_disk *disk);
int chario_disk_may(struct chario_disk *disk, u64 offset, u64 bytes, bool write);

/* chario_cdev */
extern const struct file_operations chario_fops;
ssize_t chario_call_begin(struct chario_call *call, u64 bytes);
int chario_call_end(struct chario_call *call, ssize_t result);
u8 chario_level(u16 ioprio);

/* chario_ioctl */
long chario_ioctl(struct file *filp, unsigned int request, unsigned long argument);

/* chario_transfer */
struct chario_work *chario_work_get(struct chario_file *file);
void chario_work_put(struct chario_file *file, struct chario_work *work);
ssize_t chario_transfer_user(struct chario_call *call, unsigned long address, size_t bytes);
ssize_t chario_transfer_buffer(struct chario_call *call, struct chario_buffer *buffer, u64 offset,
			       size_t bytes);
int chario_flush(struct chario_file *file, u8 level);
int chario_discard(struct chario_file *file, u8 level, u64 offset, u64 bytes);

/* chario_memory */
int chario_pin(unsigned long address, size_t bytes, bool device_writes, struct page **pages);
void chario_unpin(struct page **pages, unsigned long count, bool dirty);
u32 chario_map(const struct chario_disk *disk, struct page **pages, size_t offset, u32 bytes,
	       struct scatterlist *sg, u32 *sg_len);

/* chario_buffers */
int chario_buffer_register(struct chario_file *file, struct chardisk_register *request);
int chario_buffer_unregister(struct chario_file *file, u32 number);
struct chario_buffer *chario_buffer_get(struct chario_file *file, u32 number);
void chario_buffer_put(struct chario_buffer *buffer);
void chario_buffers_free(struct chario_file *file);

/* chario_declared */
int chario_declared_add(const char *text);
bool chario_has_declared(void);
int chario_declared_pages(u64 address, u64 bytes, struct page **pages);

/* chario_queue */
void chario_queue_init(struct chario_queue *queue);
int chario_queue_run(struct chario_disk *disk, struct chario_op *op);
void chario_queue_leave(struct chario_disk *disk, struct chario_op *op);
void chario_queue_rest(struct chario_disk *disk);
void chario_queue_go_on(struct chario_disk *disk);
void chario_queue_landed(struct chario_disk *disk, struct chario_op *op, bool finished);
void chario_queue_hold(struct chario_disk *disk);
void chario_queue_resume(struct chario_disk *disk);
void chario_queue_wake(struct chario_disk *disk);
void chario_queue_end(struct chario_disk *disk);

/* chario_command */
bool chario_command_start(struct chario_disk *disk, struct chario_op *op);
void chario_command_settle(struct chario_disk *disk, struct chario_op *op);
void chario_command_claim(struct chario_disk *disk);
void chario_command_release(struct chario_disk *disk, bool waits);

/* chario_area */
void chario_area_note(struct chario_disk *disk);
int chario_area_enter(struct chario_disk *disk);
int chario_area_leave(struct chario_disk *disk);

/* chario_sysfs */
extern const struct attribute_group *chario_groups[];
void chario_count(struct chario_disk *disk, struct chario_file *file, enum chario_counter counter,
		  u64 amount);

/* The block size is a power of two, so no 64-bit division is needed, which 32 bits lack. */
static inline bool chario_is_aligned(const struct chario_disk *disk, u64 bytes)
{
	return !(bytes & (disk->block_bytes - 1));
}

static inline bool chario_is_rt(u8 level)
{
	return level < CHARIO_RT_LEVELS;
}

#endif
