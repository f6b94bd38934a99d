// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_pattern.h"

static const u32 spans[K2_SPANS] = {1, 2, 3, 4, 6, 8, 12, 16};
/* At most this many requests are assumed to catch up. */
#define LATE_MAX 8
/* Overlapping spans differ little: a span of N bursts needs this many times N samples. */
#define SPAN_TIMES 4
/* Bursts may differ in length if the lengths repeat within this many requests, */
#define CYCLE_MAX 12
/* and this many more requests have confirmed it. */
#define CYCLE_SHOWN 4

static void narrow(struct k2_window *window, u64 then_ns, const struct k2_edge *edge)
{
	if (!edge->earliest)
		return;
	window->earliest_ns = k2_max(window->earliest_ns, then_ns + edge->earliest * K2_TIME_NS);
	window->latest_ns = k2_min(window->latest_ns, then_ns + edge->latest * K2_TIME_NS);
	window->is_known = true;
}

static bool is_regular(const struct k2_edge *edge)
{
	u32 shortest = k2_edge_shortest(edge);

	return edge->earliest && k2_edge_longest(edge) - shortest < shortest / 8;
}

static u64 past_ns(const struct k2_pattern *pattern, u32 span)
{
	return pattern->past_ns[(pattern->known - span) % K2_PAST];
}

/* Will the next request begin a burst? False if that is unknown. */
static bool begins_burst(const struct k2_pattern *pattern)
{
	u32 cycle;

	for (cycle = 1; cycle <= CYCLE_MAX; cycle++) {
		u32 shown = cycle + CYCLE_SHOWN;

		if (pattern->begins_known < cycle + shown)
			return false;
		if (!((pattern->begins ^ pattern->begins >> cycle) & ((1U << shown) - 1)))
			return pattern->begins >> (cycle - 1) & 1;
	}
	return false;
}

static bool is_late(const struct k2_pattern *pattern, u64 gap_ns)
{
	u64 latest_ns = pattern->gap.latest * K2_TIME_NS;

	return latest_ns && gap_ns > latest_ns + (latest_ns >> 3);
}

/* Did the last request take most of the gap? Then its time decides when the next one comes. */
static bool is_busy(const struct k2_pattern *pattern, u64 gap_ns)
{
	return 2 * k2_minus(pattern->end_ns, pattern->arrival_ns) > gap_ns;
}

static void narrow_all(const struct k2_pattern *pattern, struct k2_window *window, u64 now_ns)
{
	u32 i;

	if (!pattern->outstanding && is_late(pattern, k2_minus(now_ns, pattern->arrival_ns))) {
		if (is_regular(&pattern->pause))
			narrow(window, pattern->arrival_ns, &pattern->pause);
		window->is_known = window->earliest_ns > now_ns;
		return;
	}
	if (pattern->late)
		return;
	if (!is_busy(pattern, pattern->gap.earliest * K2_TIME_NS))
		narrow(window, pattern->arrival_ns, &pattern->gap);
	if (!begins_burst(pattern) || is_busy(pattern, pattern->span[0].earliest * K2_TIME_NS))
		return;
	for (i = 0; i < K2_SPANS && pattern->known >= spans[i]; i++)
		if (is_regular(&pattern->span[i]) &&
		    k2_edge_count(&pattern->span[i]) >= SPAN_TIMES * spans[i])
			narrow(window, past_ns(pattern, spans[i]), &pattern->span[i]);
}

struct k2_window k2_pattern_next(const struct k2_pattern *pattern, u64 now_ns)
{
	struct k2_window window = {now_ns, K2_NEVER, pattern->arrival_ns, false};

	narrow_all(pattern, &window, now_ns);
	if (window.latest_ns == K2_NEVER || window.latest_ns <= now_ns)
		window.latest_ns = 0;
	return window;
}

/* Were two late requests in a row, with none between that catches up, or one far too early? */
static bool has_changed(struct k2_pattern *pattern, u32 gap)
{
	u32 shortest = pattern->gap.earliest ? k2_edge_shortest(&pattern->gap) : 0;
	u32 early = pattern->early;

	if (pattern->late)
		return is_late(pattern, gap * K2_TIME_NS);
	pattern->early = gap < shortest - shortest / 8 ? shortest - shortest / 8 : 0;
	return gap < early;
}

static void forget(struct k2_pattern *pattern)
{
	u32 i;

	pattern->gap = (struct k2_edge){};
	for (i = 0; i < K2_SPANS; i++)
		pattern->span[i] = (struct k2_edge){};
	pattern->late = 0;
	pattern->early = 0;
}

/* Learns from a request, unless it is late or follows a late one. */
static void learn_gap(struct k2_pattern *pattern, u32 gap, u64 now_ns)
{
	if (has_changed(pattern, gap)) {
		forget(pattern);
	} else if (pattern->late) {
		if (gap >= pattern->gap.earliest || ++pattern->late > LATE_MAX)
			pattern->late = 0;
	} else if (is_late(pattern, gap * K2_TIME_NS)) {
		pattern->late = 1;
		k2_edge_add(&pattern->pause, gap, now_ns);
	} else {
		k2_edge_add(&pattern->gap, gap, now_ns);
		return;
	}
	pattern->known = 0;
	pattern->begins_known = 0;
}

static void note(struct k2_pattern *pattern, bool begins, u64 now_ns)
{
	u32 i;

	pattern->begins = pattern->begins << 1 | begins;
	pattern->begins_known++;
	if (!begins)
		return;
	/* The clock of a simulation may start at the first request. */
	for (i = 0; pattern->arrival_ns && i < K2_SPANS && pattern->known >= spans[i]; i++)
		k2_edge_add(&pattern->span[i],
			    k2_time(k2_minus(now_ns, past_ns(pattern, spans[i]))), now_ns);
	pattern->past_ns[pattern->known++ % K2_PAST] = now_ns;
}

void k2_pattern_arrival(struct k2_pattern *pattern, u64 now_ns)
{
	u32 gap = k2_time(k2_minus(now_ns, pattern->arrival_ns));

	if (pattern->arrival_ns)
		learn_gap(pattern, gap, now_ns);
	/* A request begins a burst after a long gap, or after any gap if there are no bursts. */
	if (!pattern->late)
		note(pattern, 8ULL * gap >= pattern->gap.latest, now_ns);
	pattern->outstanding++;
	pattern->arrival_ns = now_ns;
}

void k2_pattern_end(struct k2_pattern *pattern, u64 now_ns)
{
	pattern->outstanding -= !!pattern->outstanding;
	pattern->end_ns = now_ns;
}
