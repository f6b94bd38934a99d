// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_pattern.h"

static const u32 spans[K2_SPANS] = {4, 5, 6, 8};
/* So many requests may be catching up. */
#define LATE_MAX 8
/* Overlapping spans differ little: so many times as many are needed as they are long. */
#define SPAN_TIMES 4
/* Places until the period is measured from later, and until its edge counts. */
#define MIDDLE	     64
#define PLACES_MIN   4
#define DISTRUST_MAX 256

static u64 since(u64 now_ns, u64 then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Grid. */

static u64 early_ns(const struct k2_grid *grid)
{
	return grid->early.latest * K2_TIME_NS;
}

static bool grid_is_known(const struct k2_grid *grid)
{
	return k2_edge_count(&grid->early) >= PLACES_MIN + grid->distrust &&
	       early_ns(grid) < grid->period_ns - (grid->period_ns >> 2);
}

static void grid_begin(struct k2_grid *grid, u64 last_ns, u64 now_ns)
{
	grid->last_ns = last_ns;
	grid->anchor_ns = now_ns;
	grid->places = 0;
	grid->middle_places = 0;
	grid->late = 0;
}

/* Rather too short: then places move to before the requests, and each late one moves them back. */
static void grid_measure(struct k2_grid *grid, u64 now_ns)
{
	u64 span_ns = since(now_ns, grid->anchor_ns), width_ns = 0;

	grid->places++;
	if (k2_edge_count(&grid->early))
		width_ns = (k2_edge_longest(&grid->early) - k2_edge_shortest(&grid->early)) *
			   K2_TIME_NS;
	if (grid->places > 1)
		grid->period_ns = k2_div(since(span_ns, width_ns), grid->places);
	if (grid->places - grid->middle_places < MIDDLE)
		return;
	if (grid->middle_places) {
		grid->anchor_ns = grid->middle_ns;
		grid->places -= grid->middle_places;
		grid->distrust /= 2;
	}
	grid->middle_ns = now_ns;
	grid->middle_places = grid->places;
}

/* The request is late. One that is not catching up has left places out, or the grid has moved. */
static void grid_late(struct k2_grid *grid, u64 tolerance_ns, u64 now_ns)
{
	u64 last_ns = grid->last_ns;

	if (++grid->late < 2)
		return;
	if (grid->places < 2 * PLACES_MIN)
		grid->early = (struct k2_edge){};
	while (since(now_ns, last_ns) > tolerance_ns &&
	       since(now_ns, last_ns) >> 4 < grid->period_ns)
		last_ns += grid->period_ns;
	if (since(last_ns, now_ns) > early_ns(grid) || since(now_ns, last_ns) > tolerance_ns)
		last_ns = now_ns;
	grid_begin(grid, last_ns, now_ns);
}

static void grid_add(struct k2_grid *grid, bool catches_up, u64 now_ns)
{
	u64 last_ns = grid->last_ns + grid->period_ns;
	u64 tolerance_ns = early_ns(grid) / 2 + (grid->period_ns >> 5) + 20 * K2_TIME_NS;

	if (grid->places < 2 || !grid->period_ns) {
		grid_measure(grid, now_ns);
		grid->last_ns = now_ns;
		return;
	}
	if (since(now_ns, last_ns) > tolerance_ns) {
		grid->places++;
		grid->last_ns = last_ns;
		if (!catches_up)
			grid_late(grid, tolerance_ns, now_ns);
		return;
	}
	grid->late = 0;
	grid->last_ns = last_ns > now_ns ? last_ns : now_ns;
	k2_edge_add(&grid->early, k2_time(grid->last_ns - now_ns), k2_time(grid->period_ns),
		    now_ns);
	grid_measure(grid, now_ns);
	if (early_ns(grid) <= grid->period_ns)
		return;
	/* There is none. */
	grid->early = (struct k2_edge){};
	grid->period_ns = 0;
	if (grid->distrust < DISTRUST_MAX)
		grid->distrust = 2 * grid->distrust + PLACES_MIN;
	grid_begin(grid, now_ns, now_ns);
}

/* All limits. */

static void narrow(struct k2_window *window, u64 earliest_ns, u64 latest_ns)
{
	if (earliest_ns > window->earliest_ns)
		window->earliest_ns = earliest_ns;
	if (latest_ns < window->latest_ns)
		window->latest_ns = latest_ns;
	window->is_known = true;
}

static void narrow_by(struct k2_window *window, u64 then_ns, const struct k2_edge *edge)
{
	if (edge->earliest)
		narrow(window, then_ns + edge->earliest * K2_TIME_NS,
		       then_ns + edge->latest * K2_TIME_NS);
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

/* Of the gaps between bursts, or of all if there are no bursts? */
static bool is_long(const struct k2_pattern *pattern, u64 gap_ns)
{
	return gap_ns >= pattern->gap.latest * K2_TIME_NS / 2;
}

/* Does the next request take a place of the grid? @window: by the other limits. */
static bool is_next_on_grid(const struct k2_pattern *pattern, const struct k2_window *window)
{
	return pattern->late || is_long(pattern, k2_edge_shortest(&pattern->gap) * K2_TIME_NS) ||
	       is_long(pattern, since(window->earliest_ns, pattern->arrival_ns));
}

static bool is_late(const struct k2_pattern *pattern, u64 gap_ns)
{
	u64 latest_ns = pattern->gap.latest * K2_TIME_NS;

	return latest_ns && gap_ns > latest_ns + (latest_ns >> 3);
}

/* The last request took most of the gap: how long it takes decides when the next one comes. */
static bool is_busy(const struct k2_pattern *pattern, u64 gap_ns)
{
	return 2 * since(pattern->end_ns, pattern->arrival_ns) > gap_ns;
}

static struct k2_window known_window(struct k2_window window, u64 now_ns)
{
	if (window.latest_ns == K2_NEVER || window.latest_ns <= now_ns)
		window.latest_ns = 0;
	return window;
}

struct k2_window k2_pattern_next(const struct k2_pattern *pattern, u64 now_ns)
{
	struct k2_window window = {now_ns, K2_NEVER, pattern->arrival_ns, false};
	const struct k2_grid *grid = &pattern->grid;
	u32 i;

	if (!pattern->outstanding && is_late(pattern, since(now_ns, pattern->arrival_ns))) {
		if (is_regular(&pattern->pause))
			narrow_by(&window, pattern->arrival_ns, &pattern->pause);
		window.is_known = window.earliest_ns > now_ns;
		return known_window(window, now_ns);
	}
	if (!pattern->late && !is_busy(pattern, pattern->gap.earliest * K2_TIME_NS))
		narrow_by(&window, pattern->arrival_ns, &pattern->gap);
	for (i = 0; i < K2_SPANS && !pattern->late; i++)
		if (pattern->known >= spans[i] && is_regular(&pattern->span[i]) &&
		    k2_edge_count(&pattern->span[i]) >= SPAN_TIMES * spans[i])
			narrow_by(&window, past_ns(pattern, spans[i]), &pattern->span[i]);
	if (grid_is_known(grid) && !is_busy(pattern, grid->period_ns) &&
	    is_next_on_grid(pattern, &window))
		narrow(&window, since(grid->last_ns + grid->period_ns, early_ns(grid)),
		       grid->last_ns + grid->period_ns + early_ns(grid) / 4 + 40 * K2_TIME_NS);
	return known_window(window, now_ns);
}

/* Returns whether the request is to be learned from. */
static bool judge(struct k2_pattern *pattern, u32 gap, u64 now_ns)
{
	if (pattern->late) {
		if (gap >= pattern->gap.earliest || ++pattern->late > LATE_MAX)
			pattern->late = 0;
	} else if (pattern->known && is_late(pattern, gap * K2_TIME_NS)) {
		pattern->late = 1;
		k2_edge_add(&pattern->pause, gap, gap, now_ns);
	} else {
		return true;
	}
	pattern->known = 0;
	return false;
}

static void learn(struct k2_pattern *pattern, u64 now_ns)
{
	u32 gap = k2_time(since(now_ns, pattern->arrival_ns)), i;
	bool was_late = pattern->late;

	if (judge(pattern, gap, now_ns)) {
		k2_edge_add(&pattern->gap, gap, gap, now_ns);
		for (i = 0; i < K2_SPANS && pattern->known >= spans[i]; i++) {
			u32 span = k2_time(since(now_ns, past_ns(pattern, spans[i])));

			k2_edge_add(&pattern->span[i], span, span, now_ns);
		}
	}
	if (was_late || is_long(pattern, gap * K2_TIME_NS))
		grid_add(&pattern->grid, gap < pattern->gap.earliest, now_ns);
}

void k2_pattern_arrival(struct k2_pattern *pattern, u64 now_ns)
{
	if (pattern->arrival_ns)
		learn(pattern, now_ns);
	else
		grid_begin(&pattern->grid, now_ns, now_ns);
	pattern->past_ns[pattern->known % K2_PAST] = now_ns;
	if (++pattern->known == 4 * K2_PAST)
		pattern->known = K2_PAST;
	pattern->outstanding++;
	pattern->arrival_ns = now_ns;
}

void k2_pattern_end(struct k2_pattern *pattern, u64 now_ns)
{
	pattern->outstanding -= !!pattern->outstanding;
	pattern->end_ns = now_ns;
}
