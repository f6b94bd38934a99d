// SPDX-License-Identifier: GPL-2.0-only
/*
 * A lane: one partition of a card as a character device. The rest stays with mmcblk.
 *
 * The partition is claimed exclusively, so it cannot be mounted, and a mounted one cannot become a
 * lane. It cannot be deleted, nor its table read again. It can be resized and made read-only:
 * chario_lane_part() returns its present limits.
 *
 * Under k2, each command first asks k2 (chario_order.c), which dispatches nothing while a lane has
 * the card. A request that bypasses k2, above all a flush, waits for the host itself, and gets it
 * between two commands.
 *
 * Other schedulers do not know lanes. There a lane quiesces mmcblk's queue and claims the host.
 * Otherwise mmcblk, which keeps the host while it has requests, would delay it by seconds.
 * Requests that mmcblk has started end first. A running dispatcher that always finds new
 * requests cannot be quiesced, so after FREEZE_AFTER_MS the queue is frozen, and its requests
 * end.
 *
 * The card returns to mmcblk as soon as no real-time operation waits. Background of a lane uses the
 * card for one command, and then leaves it to mmcblk for the same time.
 */
#include <linux/blk-mq.h>
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/mmc/card.h>
#include <linux/mmc/mmc.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "chario.h"
#include "claim_disk.h"
#include "hrtimer_setup.h"
#include "unfreeze_queue.h"

#include "bus.h"
#include "card.h"
#include "core.h"
#include "mmc_ops.h"

#define PATH_CHARS	64
#define FREEZE_AFTER_MS 50
#define FROZEN_US	1000 /* until the lane asks again */
#define YIELD_US	200 /* for a waiter to claim the host */

struct chario_lane {
	struct list_head entry;
	struct chario_disk *disk;
	struct chario_claim claim;
	struct request_queue *queue; /* mmcblk's */
	struct mmc_host *host;
	struct chario_order order;
	char partition[DISK_NAME_LEN];

	struct timer_list impatience;
	atomic_t impatient;
	bool frozen;
	bool is_quiesced; /* while the host is claimed */
	ktime_t asks_after;
	struct hrtimer again;
	ktime_t held_since; /* under queue.lock, as is all down to the timer */
	ktime_t background_after;
	struct hrtimer timer;
	struct work_struct rest;
};

/* Returns the card to mmcblk. Memory reclaim may wait for that, so it has a rescuer thread. */
static struct workqueue_struct *resting;
static LIST_HEAD(lanes);
static DEFINE_MUTEX(lanes_lock);

static void out_of_patience(struct timer_list *timer)
{
	struct chario_lane *lane = container_of(timer, struct chario_lane, impatience);

	atomic_set(&lane->impatient, 1);
	wake_up(&lane->host->wq);
}

/* Only mmcblk waits: it keeps the host until its queue is empty. */
static void claim_from_queue(struct chario_lane *lane, struct mmc_card *card, struct mmc_ctx *ctx)
{
	atomic_set(&lane->impatient, 0);
	mod_timer(&lane->impatience, jiffies + msecs_to_jiffies(FREEZE_AFTER_MS));
	if (__mmc_claim_host(card->host, ctx, &lane->impatient)) {
		blk_freeze_queue_start(lane->queue);
		lane->frozen = true;
		__mmc_claim_host(card->host, ctx, NULL);
	}
	timer_delete_sync(&lane->impatience);
	lane->is_quiesced = true;
}

/* Called with queue.turn held. Returns with the host claimed, as mmc_get_card() does. */
void chario_lane_claim(struct chario_lane *lane, struct mmc_card *card, struct mmc_ctx *ctx)
{
	pm_runtime_get_sync(&card->dev);
	blk_mq_quiesce_queue_nowait(lane->queue);
	if (lane->order.has_card) {
		__mmc_claim_host(card->host, ctx, NULL);
		/* Requests that bypass k2 now wait for the host, where they can be seen. */
		blk_mq_unquiesce_queue(lane->queue);
	} else {
		claim_from_queue(lane, card, ctx);
	}
	/* Operations may now end while queue.turn is free, see chario_queue_end(). */
	spin_lock_irq(&lane->disk->queue.lock);
	lane->held_since = ktime_get();
	spin_unlock_irq(&lane->disk->queue.lock);
}

/* Called with queue.turn held and the host claimed. Restores the card's state for mmcblk. */
void chario_lane_leave(struct chario_lane *lane)
{
	struct mmc_card *card = lane->disk->card;
	int error;

	if (mmc_card_removed(card))
		return;
	error = chario_area_leave(lane->disk);
	if (!error && card->reenable_cmdq && !card->ext_csd.cmdq_en)
		error = mmc_cmdq_enable(card);
	if (error)
		pr_err_ratelimited("%s: %s: card state not restored: %d\n", CHARIO_NAME,
				   lane->partition, error);
}

/*
 * Called with queue.turn held, while the host is not or no longer claimed. waits: the operation
 * that asked k2 still waits.
 */
void chario_lane_let_go(struct chario_lane *lane, bool waits)
{
	if (lane->is_quiesced)
		blk_mq_unquiesce_queue(lane->queue);
	if (lane->frozen)
		chario_unfreeze_queue(lane->queue);
	lane->is_quiesced = false;
	lane->frozen = false;
	chario_order_give(&lane->order, waits);
}

static bool asks_later(const struct chario_lane *lane)
{
	return ktime_before(ktime_get(), lane->asks_after);
}

static void ask_in(struct chario_lane *lane, unsigned int us)
{
	lane->asks_after = ktime_add_us(ktime_get(), us);
	hrtimer_start(&lane->again, lane->asks_after, HRTIMER_MODE_ABS_SOFT);
}

/*
 * May a command of this level that has waited since since_ns go now? If not, the caller releases
 * the host, and asks again after chario_queue_wake(). Called with queue.turn held.
 */
bool chario_lane_may_go(struct chario_lane *lane, u8 level, u64 since_ns)
{
	bool has_host = lane->order.has_card && lane->disk->queue.claimed;

	/* The queue is empty, and frozen for this lane. */
	if (lane->frozen)
		return true;
	if (asks_later(lane))
		return false;
	switch (chario_order_ask(&lane->order, level, since_ns)) {
	case K2_LANE_NO_K2:
		return true;
	case K2_LANE_FROZEN:
		ask_in(lane, FROZEN_US);
		return false;
	case K2_LANE_WAIT:
		return false;
	case K2_LANE_GO:
		break;
	}
	/* A request that bypasses k2, or a rescan, claims the host when it is released. */
	if (has_host && waitqueue_active(&lane->host->wq)) {
		ask_in(lane, YIELD_US);
		return false;
	}
	return true;
}

/* Called by k2. */
static void may_go(struct k2_lane *order)
{
	struct chario_lane *lane = container_of(order, struct chario_lane, order.lane);

	if (!asks_later(lane))
		chario_queue_wake(lane->disk);
}

/* Does mmcblk wait for the host, under k2? Called with queue.turn held. */
bool chario_lane_is_wanted(const struct chario_lane *lane)
{
	if (!lane->order.has_card)
		return false;
	/* This is a hint: a waiter that comes now is seen before the next command. */
	return READ_ONCE(lane->order.lane.is_wanted) || waitqueue_active(&lane->host->wq);
}

/* Called before the disk can be opened. */
void chario_lane_gets(struct chario_lane *lane, struct chario_disk *disk)
{
	lane->disk = disk;
}

/*
 * The partition as it is now. Called with queue.lock or queue.turn held, of a queue that is not
 * gone: the lane does not outlive that.
 */
struct chario_part chario_lane_part(struct chario_lane *lane)
{
	struct block_device *bdev = chario_claimed(lane->claim);

	return (struct chario_part){
		.lane = lane,
		.first_sector = bdev->bd_start_sect,
		.sectors = bdev_nr_sectors(bdev),
		.read_only = bdev_read_only(bdev),
	};
}

bool chario_lane_pauses(const struct chario_lane *lane)
{
	return ktime_before(ktime_get(), lane->background_after);
}

/* Called with queue.lock when an operation ends, by the host's completion or a caller. */
void chario_lane_ended(struct chario_lane *lane, u8 level)
{
	ktime_t now = ktime_get();

	if (!chario_is_rt(level)) {
		lane->background_after = ktime_add(now, ktime_sub(now, lane->held_since));
		hrtimer_start(&lane->timer, lane->background_after, HRTIMER_MODE_ABS_SOFT);
	}
	/* The caller may not get a CPU for some time. */
	queue_work(resting, &lane->rest);
}

static void rest(struct work_struct *work)
{
	struct chario_lane *lane = container_of(work, struct chario_lane, rest);

	chario_queue_go_on(lane->disk);
}

static enum hrtimer_restart look_again(struct hrtimer *timer)
{
	struct chario_lane *lane = container_of(timer, struct chario_lane, again);

	chario_queue_wake(lane->disk);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart pause_over(struct hrtimer *timer)
{
	struct chario_lane *lane = container_of(timer, struct chario_lane, timer);

	chario_queue_wake(lane->disk);
	return HRTIMER_NORESTART;
}

const char *chario_lane_partition(const struct chario_lane *lane)
{
	return lane->partition;
}

/* The card whose main area has the partition. The caller puts its device. */
static struct mmc_card *card_of(struct block_device *bdev)
{
	struct device *dev = disk_to_dev(bdev->bd_disk)->parent;
	unsigned int number;
	char end;

	if (!bdev_is_partition(bdev) ||
	    sscanf(bdev->bd_disk->disk_name, "mmcblk%u%c", &number, &end) != 1)
		return NULL;
	if (!dev || dev->bus != chario_driver()->bus)
		return NULL;
	get_device(dev);
	return mmc_dev_to_card(dev);
}

static struct chario_lane *lane_alloc(const char *partition)
{
	struct chario_lane *lane = kzalloc(sizeof(*lane), GFP_KERNEL);

	if (!lane)
		return NULL;
	strscpy(lane->partition, partition, sizeof(lane->partition));
	compat_hrtimer_setup(&lane->timer, pause_over, HRTIMER_MODE_ABS_SOFT);
	compat_hrtimer_setup(&lane->again, look_again, HRTIMER_MODE_ABS_SOFT);
	timer_setup(&lane->impatience, out_of_patience, 0);
	INIT_WORK(&lane->rest, rest);
	return lane;
}

/* Writes cached data of the partition to the card, and drops the cache. */
static void forget_cached(struct block_device *bdev)
{
	sync_blockdev(bdev);
	invalidate_bdev(bdev);
}

static int lane_begin(struct chario_lane *lane, struct mmc_card *card,
		      const struct chario_regions *regions)
{
	struct block_device *bdev = chario_claimed(lane->claim);
	struct chario_part part = chario_lane_part(lane);
	int error = -ENODEV;

	lane->queue = bdev_get_queue(bdev);
	lane->host = card->host;
	chario_order_init(&lane->order, lane->queue, may_go);
	forget_cached(bdev);
	/* Prevents unbinding until the lane is in the list, where ended_with_card() finds it. */
	device_lock(&card->dev);
	if (card->dev.driver && card->dev.driver != chario_driver())
		error = PTR_ERR_OR_ZERO(chario_disk_create(card, regions, &part));
	if (!error) {
		mutex_lock(&lanes_lock);
		list_add_tail(&lane->entry, &lanes);
		mutex_unlock(&lanes_lock);
	}
	device_unlock(&card->dev);
	return error;
}

/* Takes "mmcblk0p2[@START+LENGTH[ro]]...". -EBUSY if it is mounted, -ENODEV, -EINVAL. */
int chario_lane_add(const char *text)
{
	struct chario_regions regions;
	char name[DISK_NAME_LEN], path[PATH_CHARS];
	struct mmc_card *card = NULL;
	struct chario_lane *lane;
	dev_t devt;
	int error = chario_names_parse(text, name, sizeof(name), &regions);

	if (error)
		return error;
	snprintf(path, sizeof(path), "/dev/%s", name);
	error = lookup_bdev(path, &devt);
	if (error)
		return error;
	lane = lane_alloc(name);
	if (!lane)
		return -ENOMEM;
	lane->claim = chario_claim_disk(devt, lane);
	if (IS_ERR(lane->claim.held)) {
		error = PTR_ERR(lane->claim.held);
		pr_err("%s: %s is in use: unmount it first\n", CHARIO_NAME, name);
		goto out_lane;
	}
	if (!chario_take_is_alone(chario_claimed(lane->claim))) {
		error = -EBUSY;
		pr_err("%s: %s is open: detach loop devices and end programs that use it\n",
		       CHARIO_NAME, name);
		goto out_claim;
	}
	card = card_of(chario_claimed(lane->claim));
	if (card)
		error = lane_begin(lane, card, &regions);
	else
		error = -EINVAL;
	if (error == -EINVAL && !card)
		pr_err("%s: %s is not a partition of an eMMC or SD card\n", CHARIO_NAME, name);
	if (card)
		put_device(&card->dev);
	if (!error)
		return 0;
out_claim:
	chario_unclaim_disk(lane->claim);
out_lane:
	kfree(lane);
	return error;
}

static void lane_end(struct chario_lane *lane)
{
	/* The disk's memory may outlive the lane, but does not use the lane after its end. */
	get_device(&lane->disk->dev);
	chario_disk_end(lane->disk);
	hrtimer_cancel(&lane->timer);
	hrtimer_cancel(&lane->again);
	cancel_work_sync(&lane->rest);
	put_device(&lane->disk->dev);
	invalidate_bdev(chario_claimed(lane->claim));
	chario_unclaim_disk(lane->claim);
	kfree(lane);
}

/* Removes a lane from the list, found by its card or its name. */
static struct chario_lane *take_out(const struct device *card, const char *partition)
{
	struct chario_lane *lane, *found = NULL;

	mutex_lock(&lanes_lock);
	list_for_each_entry(lane, &lanes, entry) {
		if ((card && lane->disk->dev.parent == card) ||
		    (partition && !strcmp(lane->partition, partition)) || (!card && !partition)) {
			found = lane;
			list_del(&lane->entry);
			break;
		}
	}
	mutex_unlock(&lanes_lock);
	return found;
}

int chario_lane_remove(const char *text)
{
	char name[DISK_NAME_LEN];
	size_t length = strcspn(text, "\n");
	struct chario_lane *lane;

	if (length >= sizeof(name))
		return -ENODEV;
	strscpy(name, text, length + 1);
	lane = take_out(NULL, name);
	if (!lane)
		return -ENODEV;
	lane_end(lane);
	return 0;
}

/* The driver core calls this before mmcblk loses a card, for any reason. */
static int ended_with_card(struct notifier_block *block, unsigned long action, void *data)
{
	struct chario_lane *lane;

	if (action != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	while ((lane = take_out(data, NULL)))
		lane_end(lane);
	return NOTIFY_OK;
}

static struct notifier_block card_notifier = {.notifier_call = ended_with_card};

/* Called by module init, after mmc_register_driver(). */
int chario_lanes_init(void)
{
	int error;

	resting = alloc_workqueue(CHARIO_NAME, WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!resting)
		return -ENOMEM;
	error = bus_register_notifier(chario_driver()->bus, &card_notifier);
	if (error)
		destroy_workqueue(resting);
	return error;
}

void chario_lanes_exit(void)
{
	struct chario_lane *lane;

	bus_unregister_notifier(chario_driver()->bus, &card_notifier);
	while ((lane = take_out(NULL, NULL)))
		lane_end(lane);
	destroy_workqueue(resting);
}
