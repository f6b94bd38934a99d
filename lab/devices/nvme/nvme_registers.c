// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers of the controller (section 3.1), doorbells, and reset.
 *
 * The worker does a reset after all its other work: RDY becomes 0 only when the controller no
 * longer writes to the host's memory.
 */
#include "steady_nvme.h"

#define VERSION		 0x00010300 /* 1.3.0 */
#define READY_TIMEOUT	 20 /* of 500 ms; CAP.TO */
#define CAP_CONTIGUOUS	 BIT_ULL(16) /* CQR: queues are contiguous memory */
#define CAP_NVM_COMMANDS BIT_ULL(37) /* CSS */
#define CC_MPS		 GENMASK(10, 7) /* the host's page size: only 4 KiB, 0 */

/* Section 5.2, error status. */
#define EVENT_WRONG_DOORBELL_REGISTER 0
#define EVENT_WRONG_DOORBELL_VALUE    1

/* The number of entries in one half of AQA. */
static u32 admin_entries(u32 half)
{
	return (half & 0xfff) + 1;
}

static u64 capabilities(const struct snvme *dev)
{
	return (dev->config->queue_entries - 1) | CAP_CONTIGUOUS | (u64)READY_TIMEOUT << 24 |
	       CAP_NVM_COMMANDS;
}

static u64 register64(const struct snvme *dev, u32 offset)
{
	switch (offset) {
	case NVME_REG_CAP:
		return capabilities(dev);
	case NVME_REG_VS:
		return VERSION;
	case NVME_REG_CC & ~7u:
		return (u64)dev->cc << 32;
	case NVME_REG_CSTS & ~7u:
		return (u64)dev->csts << 32;
	case NVME_REG_AQA & ~7u:
		return (u64)dev->aqa << 32;
	case NVME_REG_ASQ:
		return dev->asq;
	case NVME_REG_ACQ:
		return dev->acq;
	}
	return 0;
}

/* Reads 4 or 8 aligned bytes; any other access returns 0. */
u64 snvme_register_read(struct snvme *dev, u32 offset, int bytes)
{
	u64 value;

	lockdep_assert_held(&dev->lock);
	if (bytes < 4 || offset % bytes)
		return 0;
	value = register64(dev, offset & ~7u) >> (offset % 8 * 8);
	return bytes == 4 ? lower_32_bits(value) : value;
}

/* Can the controller start with the host's CC, AQA, ASQ and ACQ? */
static bool can_start(const struct snvme *dev)
{
	u64 sq_bytes = admin_entries(dev->aqa) * sizeof(struct nvme_command);
	u64 cq_bytes = admin_entries(dev->aqa >> 16) * sizeof(struct nvme_completion);

	return !(dev->cc & (CC_MPS | NVME_CC_CSS_MASK)) && dev->aqa & 0xfff &&
	       dev->aqa >> 16 & 0xfff && dev->asq % SNVME_PAGE == 0 && dev->acq % SNVME_PAGE == 0 &&
	       snvme_dma_memory(dev->asq, sq_bytes) && snvme_dma_memory(dev->acq, cq_bytes);
}

static void start(struct snvme *dev)
{
	if (!can_start(dev)) {
		dev->csts |= NVME_CSTS_CFS;
		return;
	}
	snvme_features_reset(dev);
	snvme_cq_start(dev, 0, dev->acq, admin_entries(dev->aqa >> 16), 0, true);
	snvme_sq_start(dev, 0, dev->asq, admin_entries(dev->aqa), 0);
	dev->csts |= NVME_CSTS_RDY;
}

/* Called by the worker, with the lock held, after all its work. */
void snvme_reset(struct snvme *dev)
{
	u32 id;

	for (id = 0; id <= dev->config->queues; id++) {
		snvme_cq_stop(dev, id);
		snvme_sq_stop(dev, id);
	}
	dev->interrupts = 0;
	dev->stalled = false;
	dev->csts = 0;
	dev->resetting = false;
	/* The host must wait for RDY before it enables the controller. */
	if (dev->cc & NVME_CC_ENABLE)
		start(dev);
}

static void write_cc(struct snvme *dev, u32 value)
{
	u32 changed = dev->cc ^ value, id;

	dev->cc = value;
	if (changed & NVME_CC_ENABLE && !(value & NVME_CC_ENABLE)) {
		dev->resetting = true;
		for (id = 0; id <= dev->config->queues; id++)
			dev->sq[id].live = false;
		queue_work(dev->workers, &dev->worker);
	} else if (changed & NVME_CC_ENABLE && !dev->resetting) {
		start(dev);
	}
	/* The drive never loses data, so a shutdown has nothing to do. */
	if (value & NVME_CC_SHN_MASK)
		dev->csts = (dev->csts & ~NVME_CSTS_SHST_MASK) | NVME_CSTS_SHST_CMPLT;
	else
		dev->csts &= ~NVME_CSTS_SHST_MASK;
}

static u64 replace_half(u64 old, u32 half, u32 value)
{
	u32 shift = half * 32;

	return (old & ~(0xffffffffull << shift)) | (u64)value << shift;
}

static void write32(struct snvme *dev, u32 offset, u32 value)
{
	/* All other registers are read-only, or unused with MSI-X. */
	if (offset == NVME_REG_CC) {
		write_cc(dev, value);
		return;
	}
	if (dev->cc & NVME_CC_ENABLE)
		return;
	switch (offset) {
	case NVME_REG_AQA:
		dev->aqa = value;
		break;
	case NVME_REG_ASQ:
	case NVME_REG_ASQ + 4:
		dev->asq = replace_half(dev->asq, offset / 4 % 2, value);
		break;
	case NVME_REG_ACQ:
	case NVME_REG_ACQ + 4:
		dev->acq = replace_half(dev->acq, offset / 4 % 2, value);
		break;
	}
}

void snvme_register_write(struct snvme *dev, u32 offset, int bytes, u64 value)
{
	lockdep_assert_held(&dev->lock);
	if (bytes < 4 || offset % bytes)
		return;
	write32(dev, offset, lower_32_bits(value));
	if (bytes == 8)
		write32(dev, offset + 4, upper_32_bits(value));
}

static void wrong_doorbell(struct snvme *dev, u8 info)
{
	snvme_event(dev, NVME_AER_ERROR, info, NVME_LOG_ERROR);
}

static void tail_doorbell(struct snvme *dev, struct snvme_sq *sq, u32 value)
{
	if (!sq->live) {
		wrong_doorbell(dev, EVENT_WRONG_DOORBELL_REGISTER);
	} else if (value >= sq->entries) {
		wrong_doorbell(dev, EVENT_WRONG_DOORBELL_VALUE);
	} else {
		sq->tail = value;
		snvme_fetch(dev, sq, ktime_get_ns());
	}
}

static void head_doorbell(struct snvme *dev, struct snvme_cq *cq, u32 value)
{
	if (!cq->live) {
		wrong_doorbell(dev, EVENT_WRONG_DOORBELL_REGISTER);
	} else if (value >= cq->entries) {
		wrong_doorbell(dev, EVENT_WRONG_DOORBELL_VALUE);
	} else {
		cq->head = value;
		if (!list_empty(&cq->answers))
			snvme_timer_at(dev, 0);
	}
}

/* Doorbell number @index: of queue index / 2, submission first. */
void snvme_doorbell(struct snvme *dev, u32 index, u32 value)
{
	lockdep_assert_held(&dev->lock);
	if (!(dev->csts & NVME_CSTS_RDY) || dev->resetting)
		return;
	if (index / 2 > dev->config->queues)
		wrong_doorbell(dev, EVENT_WRONG_DOORBELL_REGISTER);
	else if (index % 2)
		head_doorbell(dev, &dev->cq[index / 2], value);
	else
		tail_doorbell(dev, &dev->sq[index / 2], value);
}
