// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is registered by its physical address: only ranges that root declared when the module
 * was loaded. For kernels without device-dax, such as those of 32-bit ARM.
 */
#include <linux/capability.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/sizes.h>

#include "chario.h"

#define RANGES_MAX 8

struct range_of_memory {
	u64 start;
	u64 bytes;
};

/* Constant once the module is loaded. */
static struct range_of_memory ranges[RANGES_MAX];
static u32 range_count;

static bool contains(u64 start, u64 bytes, u64 address, u64 wanted_bytes)
{
	return address >= start && wanted_bytes <= bytes && address - start <= bytes - wanted_bytes;
}

/*
 * Reserved memory of a device tree is part of the kernel's RAM. If it has no kernel mapping
 * (no-map), ARM cannot write its caches back, so it is rejected.
 */
static bool is_reserved_node(const struct range_of_memory *range)
{
	struct device_node *parent = of_find_node_by_path("/reserved-memory"), *node;
	struct resource found;
	bool is_inside = false;

	for_each_child_of_node(parent, node) {
		if (!of_address_to_resource(node, 0, &found) &&
		    !of_property_read_bool(node, "no-map") &&
		    contains(found.start, resource_size(&found), range->start, range->bytes))
			is_inside = true;
	}
	of_node_put(parent);
	return is_inside;
}

/*
 * RAM that is set aside in /proc/iomem: Reserved, Soft Reserved or Persistent Memory. On a PC,
 * video memory, ROMs and firmware tables have page structures and are not kernel RAM either. The
 * first MiB, with the ROMs, is partly Reserved.
 */
static bool is_reserved_resource(const struct range_of_memory *range)
{
	static const unsigned long kinds[] = {
		IORES_DESC_RESERVED,
		IORES_DESC_SOFT_RESERVED,
		IORES_DESC_PERSISTENT_MEMORY,
		IORES_DESC_PERSISTENT_MEMORY_LEGACY,
	};
	u32 i;

	if (IS_ENABLED(CONFIG_X86) && range->start < SZ_1M)
		return false;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (region_intersects(range->start, range->bytes, IORESOURCE_MEM, kinds[i]) ==
		    REGION_INTERSECTS)
			return true;
	return false;
}

/* Memory that has a struct page, and that the kernel never allocates. */
static bool is_reserved(const struct range_of_memory *range)
{
	u64 pfn = range->start >> PAGE_SHIFT, end = (range->start + range->bytes) >> PAGE_SHIFT;

	if (!is_reserved_resource(range) && !is_reserved_node(range))
		return false;
	for (; pfn < end; pfn++)
		if (!pfn_valid(pfn) || !PageReserved(pfn_to_page(pfn)))
			return false;
	return true;
}

static bool parse(const char *text, struct range_of_memory *range)
{
	char *rest;
	u64 end;

	range->start = memparse(text, &rest);
	if (*rest != '+')
		return false;
	range->bytes = memparse(rest + 1, &rest);
	return !*rest && range->bytes && !(range->start % PAGE_SIZE) &&
	       !(range->bytes % PAGE_SIZE) &&
	       !check_add_overflow(range->start, range->bytes, &end) && end <= PHYS_ADDR_MAX;
}

/* Adds START+LENGTH while the module is loaded. -EINVAL: the reason is logged. */
int chario_declared_add(const char *text)
{
	if (range_count == RANGES_MAX) {
		pr_err("%s: memory: more than %d ranges\n", CHARIO_NAME, RANGES_MAX);
		return -EINVAL;
	}
	if (!parse(text, &ranges[range_count])) {
		pr_err("%s: memory: not START+LENGTH in whole pages\n", CHARIO_NAME);
		return -EINVAL;
	}
	if (!is_reserved(&ranges[range_count])) {
		pr_err("%s: memory: %#llx+%#llx is not reserved RAM (see /proc/iomem)\n",
		       CHARIO_NAME, ranges[range_count].start, ranges[range_count].bytes);
		return -EINVAL;
	}
	range_count++;
	return 0;
}

bool chario_has_declared(void)
{
	return range_count;
}

/*
 * Returns the pages of physical memory [address, address + bytes), page aligned. -EPERM: the caller
 * lacks the capability. -EACCES: the memory is not wholly inside one range.
 */
int chario_declared_pages(u64 address, u64 bytes, struct page **pages)
{
	u64 pfn = address >> PAGE_SHIFT, count = DIV_ROUND_UP_ULL(bytes, PAGE_SIZE);
	u32 i;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	for (i = 0; i < range_count; i++)
		if (contains(ranges[i].start, ranges[i].bytes, address, bytes))
			break;
	if (i == range_count)
		return -EACCES;
	while (count--)
		*pages++ = pfn_to_page(pfn++);
	return 0;
}
