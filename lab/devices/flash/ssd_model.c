// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The drive's interface: memory, commands that come and end, time. The header states problem and
 * model. The stages of a command are FRONT; then READING (read), WAITS_BUFFER (write; with FUA also
 * WAITS_FLASH) or WAITS_FLASH (flush); then ENDING and ENDED.
 */
#include "ssd_internal.h"

#define TABLES	   12
#define HOST_PARTS 4096 /* page reads that commands wait for, in all dies */

void ssd_geometry(struct ssd_geometry *geometry, const struct ssd_params *params)
{
	u64 user_slots = params->capacity_mib * 256;
	u64 all_slots = user_slots + user_slots * params->spare_permille / 1000;
	u64 buffer_slots = params->buffer_kib / 4;
	struct ssd_geometry made = {
		.dies = params->channels * params->dies_per_channel,
		.page_slots = params->read_planes * (params->page_kib / 4),
		.bit_pages = params->planes / params->read_planes,
		.host_parts = HOST_PARTS,
		.parts = HOST_PARTS + params->gc_reads,
		.user_slots = user_slots,
	};

	made.unit_pages = made.bit_pages * params->bits;
	made.unit_slots = made.unit_pages * made.page_slots;
	made.line_units = params->rows * made.dies;
	made.line_slots = made.line_units * made.unit_slots;
	made.lines = (all_slots + made.line_slots - 1) / made.line_slots;
	made.flash_slots = (u64)made.lines * made.line_slots;
	made.map_slots_end =
		user_slots + (user_slots + SSD_MAP_SLOT_SLOTS - 1) / SSD_MAP_SLOT_SLOTS;
	/* Twice what fills the buffer, because a flush programs units that are not full. */
	made.host_units = 2 * (buffer_slots / made.unit_slots) + 2 * made.dies + 8;
	/* The units of copies in dies, and those that running page reads may add. */
	made.units = made.host_units + made.dies + 4 +
		     params->gc_reads * made.page_slots / made.unit_slots;
	*geometry = made;
}

/* A table of this size at *offset after the start of memory; moves *offset behind it. */
static void *take(void *memory, u64 *offset, u64 bytes)
{
	void *taken = (u8 *)memory + *offset;

	*offset += (bytes + 7) / 8 * 8;
	return taken;
}

/* Divides the memory into the drive's tables; ssd_memory_bytes() counts them. */
static void lay_out(struct ssd *ssd, void *memory)
{
	const struct ssd_geometry *geometry = &ssd->geometry;
	u64 commands = ssd->params.queue_commands, at = 0;
	u64 sources = ssd_house_source(ssd) + 1;

	ssd->events.heap = take(memory, &at, sources * sizeof(u32));
	ssd->events.where = take(memory, &at, sources * sizeof(u32));
	ssd->events.at_ns = take(memory, &at, sources * sizeof(u64));
	ssd->events.order = take(memory, &at, sources * sizeof(u64));
	ssd->entries = take(memory, &at, commands * sizeof(struct ssd_entry));
	ssd->parts = take(memory, &at, geometry->parts * sizeof(struct ssd_part));
	ssd->units = take(memory, &at, geometry->units * sizeof(struct ssd_unit));
	ssd->unit_slot =
		take(memory, &at, (u64)geometry->units * geometry->unit_slots * sizeof(u32));
	ssd->dies = take(memory, &at, geometry->dies * sizeof(struct ssd_die));
	ssd->lines = take(memory, &at, geometry->lines * sizeof(struct ssd_line));
	ssd->map = take(memory, &at, geometry->map_slots_end * sizeof(u32));
	ssd->owner = take(memory, &at, geometry->flash_slots * sizeof(u32));
}

u64 ssd_memory_bytes(const struct ssd_params *params)
{
	struct ssd_geometry geometry;
	u64 sources = params->queue_commands + params->channels * params->dies_per_channel + 1;
	u64 bytes;

	ssd_geometry(&geometry, params);
	bytes = sources * 2 * (sizeof(u32) + sizeof(u64));
	bytes += params->queue_commands * sizeof(struct ssd_entry);
	bytes += geometry.parts * sizeof(struct ssd_part);
	bytes += geometry.units * sizeof(struct ssd_unit);
	bytes += (u64)geometry.units * geometry.unit_slots * sizeof(u32);
	bytes += geometry.dies * sizeof(struct ssd_die);
	bytes += geometry.lines * sizeof(struct ssd_line);
	bytes += (geometry.map_slots_end + geometry.flash_slots) * sizeof(u32);
	return bytes + TABLES * 8; /* each begins at a multiple of 8 */
}

static void queue_init(struct ssd_queue *queue, u32 *first_next, size_t element_bytes)
{
	*queue = (struct ssd_queue){
		.first_next = first_next,
		.element_bytes = element_bytes,
		.head = SSD_NONE,
		.tail = SSD_NONE,
	};
}

static void init_entries(struct ssd *ssd)
{
	struct ssd_queue *const queues[] = {&ssd->free_entries, &ssd->reading, &ssd->writing,
					    &ssd->syncing, &ssd->ended};
	u32 i;

	for (i = 0; i < sizeof(queues) / sizeof(*queues); i++)
		queue_init(queues[i], &ssd->entries->next, sizeof(*ssd->entries));
	for (i = 0; i < ssd->params.queue_commands; i++)
		ssd_push(&ssd->free_entries, i);
}

static void init_units(struct ssd *ssd)
{
	u32 i;

	queue_init(&ssd->free_units, &ssd->units->next, sizeof(*ssd->units));
	queue_init(&ssd->full_units, &ssd->units->next, sizeof(*ssd->units));
	queue_init(&ssd->full_copies, &ssd->units->next, sizeof(*ssd->units));
	for (i = 0; i < ssd->geometry.units; i++) {
		ssd->units[i] = (struct ssd_unit){.place = SSD_NONE};
		ssd_push(&ssd->free_units, i);
	}
}

static void init_dies(struct ssd *ssd)
{
	u32 i;

	queue_init(&ssd->free_parts, &ssd->parts->next, sizeof(*ssd->parts));
	for (i = 0; i < ssd->geometry.parts; i++)
		ssd_push(&ssd->free_parts, i);
	for (i = 0; i < ssd->geometry.dies; i++) {
		struct ssd_die *die = &ssd->dies[i];

		*die = (struct ssd_die){.page = SSD_NONE};
		queue_init(&die->reads, &ssd->parts->next, sizeof(*ssd->parts));
		queue_init(&die->copies, &ssd->parts->next, sizeof(*ssd->parts));
		queue_init(&die->programs, &ssd->units->next, sizeof(*ssd->units));
	}
}

/* All slots are unmapped, all lines are free. */
static void init_map(struct ssd *ssd)
{
	u64 i;

	for (i = 0; i < ssd->geometry.map_slots_end; i++)
		ssd->map[i] = SSD_NONE;
	for (i = 0; i < ssd->geometry.flash_slots; i++)
		ssd->owner[i] = SSD_NONE;
	for (i = 0; i < SSD_MAP_CACHED_MAX; i++)
		ssd->map_cached[i] = SSD_NONE;
	queue_init(&ssd->free_lines, &ssd->lines->next, sizeof(*ssd->lines));
	for (i = 0; i < ssd->geometry.lines; i++) {
		ssd->lines[i] = (struct ssd_line){};
		ssd_push(&ssd->free_lines, i);
	}
}

void ssd_init(struct ssd *ssd, const struct ssd_params *params, void *memory)
{
	*ssd = (struct ssd){};
	ssd->params = *params;
	ssd_geometry(&ssd->geometry, params);
	ssd->gc.victim = SSD_NONE;
	ssd->gc.unit = SSD_NONE;
	ssd->unit = SSD_NONE;
	ssd->open.line = SSD_NONE;
	ssd->open_slc.line = SSD_NONE;
	ssd->slc_units_left = params->slc_lines * ssd->geometry.line_units;
	lay_out(ssd, memory);
	ssd_events_init(&ssd->events, ssd_house_source(ssd) + 1);
	init_entries(ssd);
	init_units(ssd);
	init_dies(ssd);
	init_map(ssd);
	ssd_used(ssd);
	if (params->house_ns)
		ssd_event_set(&ssd->events, ssd_house_source(ssd), params->house_period_us * 1000);
}

/*
 * Random numbers by counter (splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014). The division's bias is below limit / 2^64.
 */
u64 ssd_draw(struct ssd *ssd, u64 limit)
{
	u64 x = ssd->params.seed + ++ssd->draws * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x % limit;
}

static bool acceptable(const struct ssd *ssd, const struct ssd_command *command)
{
	u64 capacity = ssd->params.capacity_mib * 2048;

	if (ssd->free_entries.head == SSD_NONE)
		return false;
	if (command->op == SSD_FLUSH)
		return true;
	if (!command->sectors || command->sector >= capacity ||
	    command->sectors > capacity - command->sector)
		return false;
	return command->op == SSD_DISCARD || command->sectors <= SSD_COMMAND_SECTORS_MAX;
}

/* When the command leaves the controller: serial time, data on the link, fixed time. */
static u64 front_end_ns(struct ssd *ssd, const struct ssd_command *command, u64 now_ns)
{
	const struct ssd_params *params = &ssd->params;
	bool read = command->op == SSD_READ;
	u64 serial_ns = read ? params->read_command_ns : params->write_command_ns;

	if (read || command->op == SSD_WRITE)
		serial_ns += command->sectors * params->link_per_kib_ns / 2;
	ssd->controller_free_ns = ssd_max(ssd->controller_free_ns, now_ns) + serial_ns;
	if (command->op == SSD_DISCARD)
		return ssd->controller_free_ns + params->discard_front_ns;
	return ssd->controller_free_ns + (read ? params->read_front_ns : params->write_front_ns);
}

bool ssd_submit(struct ssd *ssd, const struct ssd_command *command, u64 now_ns)
{
	u32 entry = ssd->free_entries.head;

	if (!acceptable(ssd, command))
		return false;
	ssd_drop(&ssd->free_entries);
	ssd->entries[entry] = (struct ssd_entry){
		.tag = command->tag,
		.op = command->op,
		.stage = SSD_FRONT,
		.sector = command->sector,
		.sectors = command->sectors,
		.fua = command->fua,
	};
	if (command->op == SSD_READ)
		ssd->entries[entry].in_order =
			ssd_ahead_in_order(ssd, command->sector, command->sectors);
	ssd_event_set(&ssd->events, entry, front_end_ns(ssd, command, now_ns));
	return true;
}

void ssd_end_at(struct ssd *ssd, u32 entry, u64 at_ns)
{
	ssd->entries[entry].stage = SSD_ENDING;
	ssd_event_set(&ssd->events, entry, at_ns);
}

/* Does the write cover a slot partly? Then the rest of the slot must be read first. */
static bool covers_parts(const struct ssd_entry *entry)
{
	return entry->sector % SSD_SLOT_SECTORS ||
	       (entry->sector + entry->sectors) % SSD_SLOT_SECTORS;
}

static void front_left(struct ssd *ssd, u32 index)
{
	struct ssd_entry *entry = &ssd->entries[index];

	switch (entry->op) {
	case SSD_READ:
		ssd_read_start(ssd, index);
		break;
	case SSD_WRITE:
		if (covers_parts(entry) && !entry->filled) {
			ssd_read_start(ssd, index);
			break;
		}
		entry->stage = SSD_WAITS_BUFFER;
		entry->slot = 0;
		if (ssd->writing.count)
			ssd->counts.buffer_waits++;
		ssd_push(&ssd->writing, index);
		break;
	case SSD_FLUSH:
		ssd_sync_start(ssd, index);
		break;
	default:
		ssd_ftl_discard(ssd, entry->sector, entry->sectors);
		ssd_end_at(ssd, index, ssd->now_ns);
	}
}

static void entry_event(struct ssd *ssd, u32 index)
{
	struct ssd_entry *entry = &ssd->entries[index];

	if (entry->stage == SSD_FRONT) {
		front_left(ssd, index);
		return;
	}
	entry->stage = SSD_ENDED;
	ssd_push(&ssd->ended, index);
}

static void event(struct ssd *ssd, u32 source)
{
	if (source < ssd->params.queue_commands)
		entry_event(ssd, source);
	else if (source < ssd_house_source(ssd))
		ssd_die_event(ssd, source - ssd->params.queue_commands);
	else
		ssd_house_event(ssd);
}

void ssd_pump(struct ssd *ssd)
{
	bool again;

	ssd_read_pump(ssd);
	do {
		again = ssd_gc_pump(ssd);
		again |= ssd_buffer_pump(ssd);
	} while (again);
}

u64 ssd_next_ns(const struct ssd *ssd)
{
	const struct ssd_events *events = &ssd->events;

	if (ssd->ended.count)
		return ssd->now_ns;
	return events->count ? ssd_max(events->at_ns[events->heap[0]], ssd->now_ns) : SSD_NEVER;
}

u32 ssd_run(struct ssd *ssd, u64 now_ns, u32 *done_tags, u32 max)
{
	u32 done = 0;

	while (done < max) {
		u32 entry = ssd->ended.head, source;

		if (entry != SSD_NONE) {
			ssd_drop(&ssd->ended);
			done_tags[done++] = ssd->entries[entry].tag;
			ssd->entries[entry].stage = SSD_FREE;
			ssd_push(&ssd->free_entries, entry);
			if (ssd_is_idle(ssd))
				ssd_pump(ssd);
			continue;
		}
		source = ssd_event_take(&ssd->events, now_ns);
		if (source == SSD_NONE) {
			ssd->now_ns = ssd_max(ssd->now_ns, now_ns);
			break;
		}
		ssd->now_ns = ssd_max(ssd->now_ns, ssd->events.at_ns[source]);
		event(ssd, source);
		ssd_pump(ssd);
	}
	return done;
}
