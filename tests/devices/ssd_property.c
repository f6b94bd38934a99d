// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What must hold for every drive and every load, tried on random ones:
 *   - every command ends, once, and not before it came; time never goes back;
 *   - no slot is lost: what was written and not discarded has one place, which belongs to it alone;
 *     what was never written has none;
 *   - a line has as many valid slots as it counts, a free one none; the buffer holds what it counts;
 *   - garbage collection keeps up: there is always a line to go on with;
 *   - the same commands give the same times again.
 * The first violation names the seed; `ssd_property 0 SEED` repeats it. `ssd_property N` does about
 * N commands (scripts/soak does ten million).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ssd_internal.h"

#define COMMANDS  4000 /* of one seed */
#define IN_FLIGHT 128

static u64 seed, state, times; /* times: a sum over all ends, to compare runs */
static struct ssd_params params;
static struct ssd drive;
static bool *asked, *written, *discarded; /* by slot: a write came, one ended, a discard came */
static struct {
	struct ssd_command of;
	u64 submitted_ns;
	bool inside;
} command[IN_FLIGHT];

static u64 below(u64 limit)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
	return (state >> 33) % limit;
}

static void require(bool holds, const char *what, u64 n)
{
	if (holds)
		return;
	printf("FAIL ssd model: property: %s (%llu); again: ssd_property 0 %llu\n", what, n, seed);
	exit(1);
}

static u64 or_zero(u64 value)
{
	return below(2) ? value : 0;
}

static void draw_params(void)
{
	ssd_params_default(&params);
	params.seed = seed;
	params.capacity_mib = 16 + below(16);
	params.spare_permille = 50 + below(800);
	params.channels = 1 + below(4);
	params.dies_per_channel = 1 + below(3);
	params.planes = 1 + below(3);
	params.read_planes = 1 + below(params.planes);
	params.page_kib = 4 * (1 + below(4));
	params.bits = 1 + below(SSD_BITS_MAX);
	params.rows = 1 + below(6);
	params.queue_commands = IN_FLIGHT;
	params.transfer_ns = or_zero(below(10000));
	params.program_jitter_ns = or_zero(below(params.program_ns));
	params.erase_every = 1 + below(4);
	params.retry_ppm = or_zero(below(100000));
	params.retry_ns = 100000;
	params.read_streak = 1 + below(20);
	params.suspend_ns = or_zero(1 + below(50000));
	params.resume_ns = or_zero(below(50000));
	params.ahead_pages = 1 + below(8);
	params.ahead_kept = 1 + below(SSD_AHEAD_KEPT_MAX);
	params.house_ns = or_zero(below(1000000));
	params.house_period_us = 2000 + below(10000);
	params.buffer_kib = 4 * (1 + below(600));
	params.map_permille = or_zero(below(4001));
	params.map_cached = 1 + below(SSD_MAP_CACHED_MAX);
	params.slc_lines = or_zero(below(8));
	params.gc_free_lines = 3 + below(6);
	params.gc_reserve_lines = 2 + below(params.gc_free_lines - 2);
	params.gc_lag_permille = below(300);
	params.gc_reads = 1 + below(40);
	params.used_permille = or_zero(below(1001));
	params.hot_permille = or_zero(below(params.used_permille + 1));
}

static void check_slots(void)
{
	const struct ssd_geometry *geometry = &drive.geometry;
	u64 slot;

	for (slot = 0; slot < geometry->map_slots_end; slot++) {
		u32 place = drive.map[slot], in_unit;

		if (slot < geometry->user_slots) {
			require(place != SSD_NONE || !written[slot] || discarded[slot],
				"a slot is lost", slot);
			require(place == SSD_NONE || asked[slot], "a slot is made up", slot);
		}
		if (place == SSD_NONE)
			continue;
		if (place < geometry->flash_slots) {
			require(drive.owner[place] == slot, "a place belongs to another slot",
				slot);
			continue;
		}
		in_unit = place - geometry->flash_slots;
		require(drive.unit_slot[in_unit] == slot, "a place in a unit is another's", slot);
		require(in_unit % geometry->unit_slots <
				drive.units[in_unit / geometry->unit_slots].fill,
			"a slot is in no unit", slot);
	}
}

static void check_lines(void)
{
	const struct ssd_geometry *geometry = &drive.geometry;
	u32 line = 0, valid = 0, free_lines = 0;
	u64 place;

	for (place = 0; place < geometry->flash_slots; place++) {
		if (drive.owner[place] != SSD_NONE) {
			valid++;
			require(drive.map[drive.owner[place]] == place, "two places for a slot",
				place);
		}
		if ((place + 1) % geometry->line_slots)
			continue;
		require(drive.lines[line].valid == valid, "wrong count of valid slots, line", line);
		line++;
		valid = 0;
	}
	for (line = drive.free_lines.head; line != SSD_NONE; line = drive.lines[line].next) {
		require(!drive.lines[line].valid && !drive.lines[line].closed &&
				line != drive.open.line && line != drive.open_slc.line &&
				line != drive.gc.victim,
			"a line is free and is not", line);
		free_lines++;
	}
	require(free_lines == drive.free_lines.count, "wrong count of free lines", free_lines);
}

static void check_buffer(void)
{
	u32 i, buffered = 0;

	for (i = 0; i < drive.geometry.units; i++)
		if (drive.units[i].fill)
			buffered += drive.units[i].buffered;
	require(buffered == drive.buffered, "wrong count of buffered slots", buffered);
	require(buffered <= params.buffer_kib / 4, "the buffer holds too much", buffered);
}

static void check(void)
{
	check_slots();
	check_lines();
	check_buffer();
}

static void mark(bool *slots, const struct ssd_command *one)
{
	u64 slot = one->sector / SSD_SLOT_SECTORS;

	for (; slot * SSD_SLOT_SECTORS < one->sector + one->sectors; slot++)
		slots[slot] = true;
}

static u64 read_end; /* of the last read: most go on from there */

static struct ssd_command draw_command(u32 tag)
{
	u64 capacity = params.capacity_mib * 2048, kind = below(100);
	struct ssd_command one = {.tag = tag, .op = kind < 40 ? SSD_READ : SSD_WRITE};

	one.sectors = below(4) ? SSD_SLOT_SECTORS : 1 + below(below(10) ? 64 : 2048);
	one.sector = below(capacity - one.sectors);
	if (below(8))
		one.sector -= one.sector % SSD_SLOT_SECTORS;
	if (one.op == SSD_READ && below(4) && read_end + one.sectors <= capacity)
		one.sector = read_end;
	if (one.op == SSD_READ)
		read_end = one.sector + one.sectors;
	one.fua = !below(20);
	if (kind == 98)
		one.op = SSD_DISCARD;
	if (kind == 99)
		one = (struct ssd_command){.tag = tag, .op = SSD_FLUSH};
	return one;
}

static u32 submit_some(u64 now_ns, u32 left)
{
	u32 tag, submitted = 0;

	for (tag = 0; tag < IN_FLIGHT && submitted < left; tag++) {
		struct ssd_command one;

		if (command[tag].inside || !below(4))
			continue;
		one = draw_command(tag);
		if (one.op == SSD_WRITE)
			mark(asked, &one);
		if (one.op == SSD_DISCARD)
			mark(discarded, &one);
		command[tag].of = one;
		command[tag].inside = true;
		command[tag].submitted_ns = now_ns;
		require(ssd_submit(&drive, &one, now_ns), "a command is refused", tag);
		submitted++;
	}
	return submitted;
}

static u32 end_some(u64 now_ns)
{
	u32 tags[16], count, i;

	count = ssd_run(&drive, now_ns, tags, 1 + below(16));
	for (i = 0; i < count; i++) {
		require(tags[i] < IN_FLIGHT && command[tags[i]].inside, "ended twice", tags[i]);
		command[tags[i]].inside = false;
		require(now_ns >= command[tags[i]].submitted_ns, "ends before it came", tags[i]);
		if (command[tags[i]].of.op == SSD_WRITE)
			mark(written, &command[tags[i]].of);
		times = times * 31 + now_ns + tags[i];
	}
	return count;
}

static void run(void)
{
	void *memory = malloc(ssd_memory_bytes(&params));
	u64 now_ns = 0, slot;
	u32 left = COMMANDS, inside = 0;

	written = calloc(drive.geometry.user_slots, sizeof(*written));
	asked = calloc(drive.geometry.user_slots, sizeof(*asked));
	discarded = calloc(drive.geometry.user_slots, sizeof(*discarded));
	ssd_init(&drive, &params, memory);
	for (slot = 0; slot < drive.geometry.user_slots * params.used_permille / 1000; slot++)
		written[slot] = asked[slot] = true;
	check();
	times = 0;
	read_end = 0;
	while (left || inside) {
		u32 submitted = below(3) ? 0 : submit_some(now_ns, left);
		u64 next_ns = ssd_next_ns(&drive);

		left -= submitted;
		inside += submitted;
		require(next_ns >= drive.now_ns, "time goes back", now_ns);
		require(next_ns != SSD_NEVER || !inside, "commands never end", inside);
		if (next_ns == SSD_NEVER)
			continue;
		if (next_ns > now_ns)
			now_ns = next_ns + (below(4) ? 0 : below(100000));
		inside -= end_some(now_ns);
		if (!below(COMMANDS / 4))
			check();
	}
	check();
	free(asked);
	free(written);
	free(discarded);
	free(memory);
}

static void run_seed(void)
{
	u64 first;

	state = seed;
	do
		draw_params();
	while (ssd_params_error(&params));
	ssd_geometry(&drive.geometry, &params);
	state = seed;
	run();
	if (seed % 8)
		return;
	first = times;
	state = seed;
	run();
	require(times == first, "the same commands give other times", times);
}

int main(int argc, char **argv)
{
	u64 last = 1 + (argc > 1 ? strtoull(argv[1], NULL, 10) : 200000) / COMMANDS;

	seed = 1;
	if (argc > 2)
		last = seed = strtoull(argv[2], NULL, 10);
	for (; seed <= last; seed++)
		run_seed();
	printf("ok   ssd model: property, %llu commands to %llu drives\n", last * COMMANDS, last);
	return 0;
}
