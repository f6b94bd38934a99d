// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moves a card from mmcblk to chario and back, in one step each.
 *
 * The kernel lets a card be unbound from mmcblk while its file systems are mounted. chario first
 * claims all block devices of the card, as a mount does. This fails with EBUSY if one of them or a
 * partition is mounted, used as swap, part of another device, or just open: a loop device may hide
 * a mounted file system.
 */
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/mmc/card.h>

#include "chario.h"
#include "claim_disk.h"

#include "bus.h"

#define OPEN_MS_MAX 1000
#define DISKS_MAX   8 /* user area, two boot and four general purpose areas */

/*
 * Is no other file of the block device, or of a partition of it, open? A loop device or a writing
 * program need not claim it. The kernel's scan for partitions and udev close theirs soon. Called
 * with the block device claimed, also by a lane.
 */
bool chario_take_is_alone(struct block_device *bdev)
{
	unsigned long end = jiffies + msecs_to_jiffies(OPEN_MS_MAX);

	while (atomic_read(&bdev->bd_openers) > 1 && time_before(jiffies, end))
		msleep(20);
	return atomic_read(&bdev->bd_openers) == 1;
}

struct claims {
	struct chario_claim claim[DISKS_MAX];
	int count;
};

static int claim_child(struct device *dev, void *data)
{
	struct claims *claims = data;
	struct chario_claim claim;

	if (!dev->class || strcmp(dev->class->name, "block"))
		return 0;
	if (claims->count == DISKS_MAX)
		return -E2BIG;
	claim = chario_claim_disk(dev->devt, claims);
	if (claim.held == ERR_PTR(-EBUSY))
		pr_err("%s: %s is in use: unmount it first\n", CHARIO_NAME, dev_name(dev));
	else if (IS_ERR(claim.held))
		pr_err("%s: %s cannot be opened: %pe\n", CHARIO_NAME, dev_name(dev), claim.held);
	if (IS_ERR(claim.held))
		return PTR_ERR(claim.held);
	if (!chario_take_is_alone(chario_claimed(claim))) {
		pr_err("%s: %s is open: detach loop devices and end programs that use it\n",
		       CHARIO_NAME, dev_name(dev));
		chario_unclaim_disk(claim);
		return -EBUSY;
	}
	claims->claim[claims->count++] = claim;
	return 0;
}

/* Finds a card by the start of `text`, up to '@' or the line's end. The caller puts it. */
static struct device *find_card(const char *text)
{
	char name[CHARIO_CARD_CHARS];
	size_t length = strcspn(text, "@\n");
	struct device *dev;

	if (length >= sizeof(name))
		return NULL;
	strscpy(name, text, length + 1);
	dev = bus_find_device_by_name(chario_driver()->bus, NULL, name);
	if (!dev)
		pr_err("%s: no card %s in /sys/bus/mmc/devices\n", CHARIO_NAME, name);
	return dev;
}

static int take_card(struct device *dev, const char *text)
{
	struct claims claims = {};
	int error = device_for_each_child(dev, &claims, claim_child);

	if (error)
		goto out;
	error = chario_names_add(text);
	if (error)
		goto out;
	/* The claims keep other users out until the block devices are gone. */
	device_release_driver(dev);
	error = device_driver_attach(chario_driver(), dev);
	if (error && device_attach(dev) < 0)
		pr_err("%s: %s has no driver now\n", CHARIO_NAME, dev_name(dev));
out:
	while (claims.count)
		chario_unclaim_disk(claims.claim[--claims.count]);
	return error;
}

/* Takes a card from mmcblk; text as for chario_names_add(). -ENODEV, -EBUSY. */
int chario_take(const char *text)
{
	struct device *dev = find_card(text);
	int error;

	if (!dev)
		return -ENODEV;
	if (dev->driver == chario_driver())
		error = -EEXIST;
	else
		error = take_card(dev, text);
	put_device(dev);
	return error;
}

/* Returns a card to the block layer. Calls on its open files then fail with ENODEV. */
int chario_give(const char *name)
{
	struct device *dev = find_card(name);
	int error = -ENODEV;

	if (dev && dev->driver == chario_driver()) {
		device_release_driver(dev);
		error = device_attach(dev) < 0 ? -EIO : 0;
	}
	put_device(dev);
	return error;
}
