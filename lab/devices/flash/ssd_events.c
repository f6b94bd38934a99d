// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The queue of events: a binary heap of sources, each with at most one event. */
#include "ssd_internal.h"

void ssd_events_init(struct ssd_events *events, u32 sources)
{
	u32 source;

	events->count = 0;
	events->made = 0;
	for (source = 0; source < sources; source++)
		events->where[source] = SSD_NONE;
}

static bool before(const struct ssd_events *events, u32 a, u32 b)
{
	if (events->at_ns[a] != events->at_ns[b])
		return events->at_ns[a] < events->at_ns[b];
	return events->order[a] < events->order[b];
}

static void put(struct ssd_events *events, u32 index, u32 source)
{
	events->heap[index] = source;
	events->where[source] = index;
}

static void move_up(struct ssd_events *events, u32 index)
{
	u32 source = events->heap[index];

	while (index && before(events, source, events->heap[(index - 1) / 2])) {
		put(events, index, events->heap[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	put(events, index, source);
}

static void move_down(struct ssd_events *events, u32 index)
{
	u32 source = events->heap[index];

	for (;;) {
		u32 child = 2 * index + 1;

		if (child + 1 < events->count &&
		    before(events, events->heap[child + 1], events->heap[child]))
			child++;
		if (child >= events->count || before(events, source, events->heap[child]))
			break;
		put(events, index, events->heap[child]);
		index = child;
	}
	put(events, index, source);
}

/* If the source has an event already, it moves to the new time. */
void ssd_event_set(struct ssd_events *events, u32 source, u64 at_ns)
{
	events->at_ns[source] = at_ns;
	events->order[source] = events->made++;
	if (events->where[source] == SSD_NONE)
		put(events, events->count++, source);
	move_up(events, events->where[source]);
	move_down(events, events->where[source]);
}

u32 ssd_event_take(struct ssd_events *events, u64 until_ns)
{
	u32 source;

	if (!events->count || events->at_ns[events->heap[0]] > until_ns)
		return SSD_NONE;
	source = events->heap[0];
	events->where[source] = SSD_NONE;
	if (--events->count) {
		put(events, 0, events->heap[events->count]);
		move_down(events, 0);
	}
	return source;
}
