// SPDX-License-Identifier: GPL-2.0-only
/*
 * The names of the cards that chario may take, with their regions.
 *
 * Taking a card uses up its name. A card that is inserted later belongs to the block layer, and so
 * does the same card after it was returned.
 *
 *   NAME[@START+LENGTH[ro]]...    mmc0:0001@1M+64M@128M+4Mro
 *
 * NAME is the name of the card in /sys/bus/mmc/devices, or its CID, 32 hexadecimal digits. Lengths
 * are in bytes, with the suffixes of memparse(): K, M, G.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/mmc/card.h>
#include <linux/mutex.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "chario.h"

#define NAMES_MAX  8
#define CID_DIGITS 32

struct named {
	char name[CID_DIGITS + 1]; /* empty: free */
	struct chario_regions regions;
};

static struct named names[NAMES_MAX];
static DEFINE_MUTEX(names_lock);

static int refuse(const char *text, const char *why)
{
	pr_err("%s: %.*s: %s; expected NAME[@START+LENGTH[ro]]..., such as mmc0:0001@1M+64M\n",
	       CHARIO_NAME, (int)strcspn(text, "\n"), text, why);
	return -EINVAL;
}

/* Parses "START+LENGTH[ro]", and moves *text behind it. */
static bool parse_region(char **text, struct chario_region *region)
{
	char *at = *text, *end;

	if (!isdigit(*at))
		return false;
	region->offset = memparse(at, &end);
	if (*end != '+' || !isdigit(end[1]))
		return false;
	at = end + 1;
	region->bytes = memparse(at, &end);
	region->read_only = end[0] == 'r' && end[1] == 'o';
	*text = end + (region->read_only ? 2 : 0);
	return region->bytes && region->offset + region->bytes > region->offset;
}

static int by_offset(const void *left, const void *right)
{
	const struct chario_region *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static bool overlap(const struct chario_regions *regions)
{
	u32 i;

	for (i = 1; i < regions->count; i++)
		if (regions->region[i - 1].offset + regions->region[i - 1].bytes >
		    regions->region[i].offset)
			return true;
	return false;
}

/* Parses NAME and its regions; name has name_bytes. -EINVAL: the reason is logged. */
int chario_names_parse(const char *text, char *name, size_t name_bytes,
		       struct chario_regions *regions)
{
	size_t length = strcspn(text, "@\n");
	char *at = (char *)text + length;

	memset(regions, 0, sizeof(*regions));
	if (!length || length >= name_bytes)
		return refuse(text, "no name");
	memcpy(name, text, length);
	name[length] = '\0';
	while (*at == '@') {
		at++;
		if (regions->count == CHARIO_REGIONS_MAX)
			return refuse(text, "too many regions");
		if (!parse_region(&at, &regions->region[regions->count++]))
			return refuse(text, "no region");
	}
	if (*at && strcmp(at, "\n"))
		return refuse(text, "something follows");
	sort(regions->region, regions->count, sizeof(regions->region[0]), by_offset, NULL);
	return overlap(regions) ? refuse(text, "regions overlap") : 0;
}

/* Names a card, or replaces its regions. For writes to sysfs and module parameters. */
int chario_names_add(const char *text)
{
	struct named named, *place = NULL;
	int error = chario_names_parse(text, named.name, sizeof(named.name), &named.regions), i;

	if (error)
		return error;
	mutex_lock(&names_lock);
	for (i = NAMES_MAX - 1; i >= 0; i--)
		if (!*names[i].name)
			place = &names[i];
	for (i = 0; i < NAMES_MAX; i++)
		if (!strcmp(names[i].name, named.name))
			place = &names[i];
	if (place)
		*place = named;
	mutex_unlock(&names_lock);
	if (!place)
		pr_err("%s: %s: %u cards are named already\n", CHARIO_NAME, named.name, NAMES_MAX);
	return place ? 0 : -ENOSPC;
}

/* Called by probe. Returns 0 and the regions if the card was named, and uses up the name. */
int chario_names_use(const struct mmc_card *card, struct chario_regions *regions)
{
	char cid[CID_DIGITS + 1];
	int error = -ENODEV, i;

	scnprintf(cid, sizeof(cid), "%08x%08x%08x%08x", card->raw_cid[0], card->raw_cid[1],
		  card->raw_cid[2], card->raw_cid[3]);
	mutex_lock(&names_lock);
	for (i = 0; i < NAMES_MAX && error; i++) {
		if (strcmp(names[i].name, dev_name(&card->dev)) && strcmp(names[i].name, cid))
			continue;
		*regions = names[i].regions;
		memset(&names[i], 0, sizeof(names[i]));
		error = 0;
	}
	mutex_unlock(&names_lock);
	return error;
}

/* Prints one name per line, in the form in which it is written; text has a page. */
ssize_t chario_names_show(char *text)
{
	ssize_t length = 0;
	u32 i, j;

	mutex_lock(&names_lock);
	for (i = 0; i < NAMES_MAX; i++) {
		if (!*names[i].name)
			continue;
		length += sysfs_emit_at(text, length, "%s", names[i].name);
		for (j = 0; j < names[i].regions.count; j++) {
			const struct chario_region *region = &names[i].regions.region[j];

			length += sysfs_emit_at(text, length, "@%llu+%llu%s", region->offset,
						region->bytes, region->read_only ? "ro" : "");
		}
		length += sysfs_emit_at(text, length, "\n");
	}
	mutex_unlock(&names_lock);
	return length;
}
