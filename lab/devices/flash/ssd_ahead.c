// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading ahead. For a read that continues an earlier one, the die reads more pages of the row than
 * needed, in one operation, as long as they hold the following slots. The controller keeps the last
 * such pages; slots on them need no die.
 */
#include "ssd_internal.h"

#define IN_ORDER_READS 2 /* fewer could continue by chance */

static struct ssd_stream *stream_at(struct ssd *ssd, u64 sector)
{
	struct ssd_stream *oldest = ssd->streams, *stream;

	for (stream = ssd->streams; stream < ssd->streams + SSD_STREAMS; stream++) {
		if (stream->reads && stream->next_sector == sector)
			return stream;
		if (stream->used < oldest->used)
			oldest = stream;
	}
	*oldest = (struct ssd_stream){};
	return oldest;
}

/* A read has come. Returns whether it is in order. */
bool ssd_ahead_in_order(struct ssd *ssd, u64 sector, u32 sectors)
{
	struct ssd_stream *stream;

	if (ssd->params.ahead_pages == 1)
		return false;
	stream = stream_at(ssd, sector);
	stream->next_sector = sector + sectors;
	stream->used = ++ssd->reads;
	stream->reads++;
	return stream->reads > IN_ORDER_READS;
}

/* How many pages of its row to read at once for the slot: those with the slots after it. */
u32 ssd_ahead_pages(const struct ssd *ssd, u32 slot, u32 page)
{
	const struct ssd_geometry *geometry = &ssd->geometry;
	u32 row_left = geometry->unit_pages - page % geometry->unit_pages, pages;
	u32 most = ssd->params.ahead_pages;

	if (most > row_left)
		most = row_left;
	for (pages = 1; pages < most; pages++) {
		u32 place = (page + pages) * geometry->page_slots;
		u64 follows = (u64)slot + place - ssd->map[slot];

		if (follows >= geometry->user_slots || ssd->map[follows] != place)
			break;
	}
	return pages;
}

void ssd_ahead_keep(struct ssd *ssd, u32 page, u32 pages)
{
	ssd->counts.ahead_reads++;
	ssd->ahead[ssd->ahead_oldest] = (struct ssd_ahead){.page = page, .pages = pages};
	ssd->ahead_oldest = (ssd->ahead_oldest + 1) % ssd->params.ahead_kept;
}

bool ssd_ahead_holds(const struct ssd *ssd, u32 page)
{
	u32 i;

	for (i = 0; i < ssd->params.ahead_kept; i++)
		if (page - ssd->ahead[i].page < ssd->ahead[i].pages)
			return true;
	return false;
}

/* The unit will be written again. */
void ssd_ahead_drop(struct ssd *ssd, u32 unit)
{
	u32 i;

	for (i = 0; i < ssd->params.ahead_kept; i++)
		if (ssd->ahead[i].page / ssd->geometry.unit_pages == unit)
			ssd->ahead[i].pages = 0;
}
