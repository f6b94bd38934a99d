// SPDX-License-Identifier: GPL-2.0-only
/*
 * A separate PCI bus with one device: the controller.
 *
 * The BAR lies in a region of lib/logic_iomem.c, where each access is a function call. Such a
 * region cannot be removed again, so neither can this module.
 */
#include <linux/err.h>
#include <linux/logic_iomem.h>
#include <linux/pci.h>

#include "steady_nvme.h"

#define BUS	     1 /* 0 is UML's own */
#define WINDOW_START BIT_ULL(40) /* far above the guest's memory */
#define VENDOR	     0xfff0 /* unassigned, so that the driver applies no quirks */
#define DEVICE	     0x5344
#define CONFIG_BYTES 256
#define AT_MSIX	     0x40 /* the capability */
#define MSIX_ENTRY   16 /* bytes */

static struct snvme *device;
static struct pci_host_bridge *bridge;
static u8 config[CONFIG_BYTES];
static u8 writable[CONFIG_BYTES]; /* which bits */

static struct resource window = {
	.name = "steady_nvme",
	.start = WINDOW_START,
	.end = WINDOW_START + SNVME_BAR_BYTES - 1,
	.flags = IORESOURCE_MEM,
};

static struct resource buses = {
	.name = "steady_nvme bus",
	.start = BUS,
	.end = BUS,
	.flags = IORESOURCE_BUS,
};

static u32 get_bytes(const u8 *from, int bytes)
{
	u32 value = 0;

	while (bytes--)
		value = value << 8 | from[bytes];
	return value;
}

static void put_bytes(u8 *to, u32 value, int bytes)
{
	for (; bytes--; value >>= 8)
		*to++ = value;
}

static void config_fill(const struct snvme *dev)
{
	u32 vectors = dev->config->queues + 1;

	put_bytes(config + PCI_VENDOR_ID, VENDOR, 2);
	put_bytes(config + PCI_DEVICE_ID, DEVICE, 2);
	put_bytes(writable + PCI_COMMAND,
		  PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE, 2);
	put_bytes(config + PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
	put_bytes(config + PCI_CLASS_REVISION, PCI_CLASS_STORAGE_EXPRESS << 8, 4);
	put_bytes(config + PCI_BASE_ADDRESS_0, PCI_BASE_ADDRESS_MEM_TYPE_64, 4);
	put_bytes(writable + PCI_BASE_ADDRESS_0, ~(SNVME_BAR_BYTES - 1), 4);
	put_bytes(writable + PCI_BASE_ADDRESS_1, U32_MAX, 4);
	put_bytes(config + PCI_SUBSYSTEM_VENDOR_ID, VENDOR, 2);
	put_bytes(config + PCI_SUBSYSTEM_ID, DEVICE, 2);
	config[PCI_CAPABILITY_LIST] = AT_MSIX;
	writable[PCI_INTERRUPT_LINE] = 0xff;

	config[AT_MSIX] = PCI_CAP_ID_MSIX;
	put_bytes(config + AT_MSIX + PCI_MSIX_FLAGS, vectors - 1, 2);
	put_bytes(writable + AT_MSIX + PCI_MSIX_FLAGS,
		  PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL, 2);
	put_bytes(config + AT_MSIX + PCI_MSIX_TABLE, SNVME_BAR_MSIX_TABLE, 4);
	put_bytes(config + AT_MSIX + PCI_MSIX_PBA, SNVME_BAR_MSIX_PBA, 4);
}

static bool is_ours(const struct pci_bus *bus, unsigned int devfn, int where, int size)
{
	return bus->number == BUS && !devfn && where + size <= CONFIG_BYTES;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	if (!is_ours(bus, devfn, where, size)) {
		*value = U32_MAX;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*value = get_bytes(config + where, size);
	return PCIBIOS_SUCCESSFUL;
}

/* Raises interrupts that are no longer masked. */
static void masks_changed(struct snvme *dev)
{
	if (dev->interrupts)
		snvme_timer_at(dev, 0);
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	unsigned long flags;
	u32 old, mask, msix;

	if (!is_ours(bus, devfn, where, size))
		return PCIBIOS_DEVICE_NOT_FOUND;
	spin_lock_irqsave(&device->lock, flags);
	old = get_bytes(config + where, size);
	mask = get_bytes(writable + where, size);
	put_bytes(config + where, (old & ~mask) | (value & mask), size);
	msix = get_bytes(config + AT_MSIX + PCI_MSIX_FLAGS, 2);
	device->msix_enabled = msix & PCI_MSIX_FLAGS_ENABLE;
	device->msix_masked = msix & PCI_MSIX_FLAGS_MASKALL;
	masks_changed(device);
	spin_unlock_irqrestore(&device->lock, flags);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = {
	.read = config_read,
	.write = config_write,
};

/* Reads a word of the table, or of the pending bits. */
static u32 msix_read(const struct snvme *dev, u32 offset)
{
	u32 at = offset - SNVME_BAR_MSIX_TABLE;

	if (offset == SNVME_BAR_MSIX_PBA)
		return dev->interrupts;
	if (at >= SNVME_VECTORS_MAX * MSIX_ENTRY)
		return 0;
	return dev->msix[at / MSIX_ENTRY].word[at % MSIX_ENTRY / 4];
}

static void msix_write(struct snvme *dev, u32 offset, u32 value)
{
	u32 at = offset - SNVME_BAR_MSIX_TABLE;

	if (at >= SNVME_VECTORS_MAX * MSIX_ENTRY)
		return;
	dev->msix[at / MSIX_ENTRY].word[at % MSIX_ENTRY / 4] = value;
	masks_changed(dev);
}

static unsigned long bar_read(void *context, unsigned int offset, int size)
{
	struct snvme *dev = context;
	unsigned long flags, value = 0;

	spin_lock_irqsave(&dev->lock, flags);
	if (offset < NVME_REG_DBS)
		value = snvme_register_read(dev, offset, size);
	else if (offset >= SNVME_BAR_MSIX_TABLE && size == 4)
		value = msix_read(dev, offset);
	spin_unlock_irqrestore(&dev->lock, flags);
	return value;
}

static void bar_write(void *context, unsigned int offset, int size, unsigned long value)
{
	struct snvme *dev = context;
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	if (offset < NVME_REG_DBS)
		snvme_register_write(dev, offset, size, value);
	else if (offset >= SNVME_BAR_MSIX_TABLE && size == 4)
		msix_write(dev, offset, value);
	else if (size == 4)
		snvme_doorbell(dev, (offset - NVME_REG_DBS) / 4, value);
	spin_unlock_irqrestore(&dev->lock, flags);
}

static const struct logic_iomem_ops bar_ops = {
	.read = bar_read,
	.write = bar_write,
};

static long bar_map(unsigned long offset, size_t size, const struct logic_iomem_ops **ops,
		    void **context)
{
	*ops = &bar_ops;
	*context = device;
	return offset;
}

static const struct logic_iomem_region_ops window_ops = {
	.map = bar_map,
};

int snvme_pci_create(struct snvme *dev)
{
	device = dev;
	config_fill(dev);
	bridge = pci_alloc_host_bridge(0);
	if (!bridge)
		return -ENOMEM;
	pci_add_resource(&bridge->windows, &window);
	pci_add_resource(&bridge->windows, &buses);
	bridge->ops = &config_ops;
	return 0;
}

/* Called only before snvme_pci_start(). */
void snvme_pci_destroy(void)
{
	pci_free_resource_list(&bridge->windows);
	pci_free_host_bridge(bridge);
}

/* Makes the device appear, now or when the driver is loaded. Success cannot be undone. */
int snvme_pci_start(void)
{
	int err = logic_iomem_add_region(&window, &window_ops);

	if (err)
		return err;
	err = pci_host_probe(bridge);
	if (err)
		pr_err("steady_nvme: no device: the PCI bus cannot be added: %d\n", err);
	return 0;
}
