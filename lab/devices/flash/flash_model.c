// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Timing model of managed flash; the header states problem, model and limits. */
#include "flash_draw.h"
#include "flash_fault.h"
#include "flash_model.h"

/* One stream of random numbers per purpose, so that adding one does not shift another. */
enum flash_stream {
	FLASH_STREAM_JITTER = 1,
	FLASH_STREAM_EPISODE = 2,
	FLASH_STREAM_STALL = 3,
	FLASH_STREAM_STALL_LENGTH = 4,
	/* From 16 on: faults, flash_fault.c */
};

static u64 max_time(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 sectors_ns(u64 sectors, u32 per_kib_ns)
{
	return sectors * per_kib_ns / 2;
}

/*
 * There is one episode per period, with a random start in the period's first quarter. Runs of more
 * than 1.25 periods therefore meet one, which keeps the p99 of a few thousand requests stable.
 */
bool flash_is_slow(const struct flash_params *params, u64 time_ns)
{
	u64 window, offset_ns, into_ns;

	if (!params->slow_length_ns)
		return false;
	window = time_ns / params->slow_period_ns;
	into_ns = time_ns % params->slow_period_ns;
	offset_ns = flash_draw(params->seed, FLASH_STREAM_EPISODE, window,
			       params->slow_period_ns / 4 + 1);
	return into_ns >= offset_ns && into_ns - offset_ns < params->slow_length_ns;
}

u64 flash_after_stall(const struct flash_params *params, u64 time_ns)
{
	u64 window, begin_ns, length_ns;

	if (!params->stall_period_ns)
		return time_ns;
	window = time_ns / params->stall_period_ns;
	begin_ns = window * params->stall_period_ns + flash_draw(params->seed, FLASH_STREAM_STALL,
								 window,
								 params->stall_period_ns / 4 + 1);
	length_ns =
		params->stall_low_ns + flash_draw(params->seed, FLASH_STREAM_STALL_LENGTH, window,
						  params->stall_high_ns - params->stall_low_ns + 1);
	if (time_ns < begin_ns || time_ns >= begin_ns + length_ns)
		return time_ns;
	return begin_ns + length_ns;
}

static bool rare_valid(const struct flash_params *params)
{
	if (params->write_runs > FLASH_RUNS_MAX || params->stall_low_ns > params->stall_high_ns)
		return false;
	if (params->stall_high_ns > params->stall_period_ns / 4 * 3)
		return false;
	return !params->hot_after_ns || params->hot_percent >= 100;
}

static bool params_valid(const struct flash_params *params)
{
	u32 i;

	if (!params->depth || params->depth > FLASH_DEPTH_MAX || !params->units ||
	    params->units > FLASH_UNITS_MAX || !params->stripe_sectors)
		return false;
	if (params->slow_length_ns > params->slow_period_ns / 4 * 3)
		return false;
	if (params->fault_count > FLASH_FAULTS_MAX || !rare_valid(params))
		return false;
	for (i = 0; i < FLASH_OPS; i++)
		if (params->cost[i].jitter_ns > params->cost[i].base_ns)
			return false;
	for (i = 0; i < params->fault_count; i++)
		if (!flash_fault_valid(&params->fault[i]))
			return false;
	return true;
}

bool flash_init(struct flash_model *model, const struct flash_params *params)
{
	if (!params_valid(params))
		return false;
	*model = (struct flash_model){.params = *params};
	flash_power_off(model);
	return true;
}

void flash_power_off(struct flash_model *model)
{
	u32 i;

	for (i = 0; i < FLASH_DEPTH_MAX; i++)
		model->slot_free_ns[i] = 0;
	for (i = 0; i < FLASH_UNITS_MAX; i++)
		model->unit_free_ns[i] = 0;
	model->bus_free_ns = 0;
	model->cached_sectors = 0;
	model->last_op = FLASH_OPS;
	for (i = 0; i < FLASH_RUNS_MAX; i++)
		model->run_end[i] = ~0ull;
}

static enum flash_outcome outcome_of(struct flash_model *model, const struct flash_request *request)
{
	const struct flash_faults faults = {
		.seed = model->params.seed,
		.count = model->params.fault_count,
		.fault = model->params.fault,
		.seen = model->fault_seen,
	};

	return flash_faults_outcome(&faults, request->op, request->sector, request->sectors);
}

/* Does the write continue an open run? That run becomes the latest one. */
static bool continues_run(struct flash_model *model, const struct flash_request *request)
{
	u32 last = model->params.write_runs - 1;
	u32 i = 0;
	bool yes;

	while (i < last && model->run_end[i] != request->sector)
		i++;
	yes = model->run_end[i] == request->sector;
	for (; i; i--)
		model->run_end[i] = model->run_end[i - 1];
	model->run_end[0] = request->sector + request->sectors;
	return yes;
}

/* Does the request continue where the last read or write ended? Stores the end of this one. */
static bool continues(struct flash_model *model, const struct flash_request *request)
{
	bool yes = model->last_op == request->op && model->next_sector == request->sector;

	if (request->op == FLASH_WRITE && model->params.write_runs)
		return continues_run(model, request);
	model->last_op = request->op;
	model->next_sector = request->sector + request->sectors;
	return yes;
}

/* The time of the pauses while this many sectors are written to the flash. */
static u64 pauses_ns(struct flash_model *model, u64 sectors)
{
	const struct flash_params *params = &model->params;
	u64 before = model->written_sectors;

	model->written_sectors += sectors;
	if (!params->pause_sectors)
		return 0;
	return (model->written_sectors / params->pause_sectors - before / params->pause_sectors) *
	       params->pause_ns;
}

/* The time of the data in the array; a hot card is slower. */
static u64 array_ns_of(const struct flash_model *model, enum flash_op op, u64 sectors)
{
	u64 ns = sectors_ns(sectors, model->params.cost[op].per_kib_ns);

	return model->hot ? ns * model->params.hot_percent / 100 : ns;
}

/* A command starts now: the idle time before it has cooled the card. */
static void cool(struct flash_model *model, u64 start_ns)
{
	u64 idle_ns = start_ns > model->worked_until_ns ? start_ns - model->worked_until_ns : 0;

	model->heat_ns = model->heat_ns > idle_ns ? model->heat_ns - idle_ns : 0;
	if (model->heat_ns < model->params.hot_after_ns / 2)
		model->hot = false;
}

/* The command's own time heats the card; time shared with others counts once. */
static void heat(struct flash_model *model, u64 start_ns, u64 finish_ns)
{
	u64 from_ns = max_time(start_ns, model->worked_until_ns);

	if (!model->params.hot_after_ns || finish_ns <= from_ns)
		return;
	model->worked_until_ns = finish_ns;
	model->heat_ns += finish_ns - from_ns;
	if (model->heat_ns < model->params.hot_after_ns)
		return;
	model->heat_ns = model->params.hot_after_ns;
	model->hot = true;
}

/* The costs of the first piece on a unit: base, jitter and, in a slow episode, the slow time. */
static u64 first_piece_ns(const struct flash_model *model, enum flash_op op, u64 start_ns)
{
	const struct flash_cost *cost = &model->params.cost[op];
	u64 ns = cost->base_ns;

	if (cost->jitter_ns)
		ns = ns - cost->jitter_ns +
		     flash_draw(model->params.seed, FLASH_STREAM_JITTER, model->submitted,
				2ull * cost->jitter_ns + 1);
	if (flash_is_slow(&model->params, start_ns))
		ns += cost->slow_ns;
	return ns;
}

/* A read leaves the array and then crosses the bus; a write crosses the bus first. */
static u64 move_piece(struct flash_model *model, enum flash_op op, u32 unit, u64 start_ns,
		      u64 array_ns, u64 bus_ns)
{
	u64 *unit_free = &model->unit_free_ns[unit];
	u64 *bus_free = &model->bus_free_ns;

	if (op == FLASH_WRITE) {
		if (bus_ns) {
			*bus_free = max_time(*bus_free, start_ns) + bus_ns;
			start_ns = *bus_free;
		}
		*unit_free = max_time(*unit_free, start_ns) + array_ns;
		return *unit_free;
	}
	*unit_free = max_time(*unit_free, start_ns) + array_ns;
	if (!bus_ns)
		return *unit_free;
	*bus_free = max_time(*bus_free, *unit_free) + bus_ns;
	return *bus_free;
}

/* Reads, and writes that reach the flash, move piece by piece along the stripes. */
static u64 transfer(struct flash_model *model, const struct flash_request *request, u64 start_ns)
{
	const struct flash_params *params = &model->params;
	u64 first_ns = first_piece_ns(model, request->op, start_ns);
	u64 sector = request->sector, left = request->sectors, finish_ns = start_ns;
	u32 paid = 0;

	if (!continues(model, request))
		first_ns += params->cost[request->op].jump_ns;
	if (request->op == FLASH_WRITE)
		first_ns += pauses_ns(model, request->sectors);
	while (left) {
		u64 stripe = sector / params->stripe_sectors;
		u32 unit = stripe % params->units;
		u64 sectors = left;
		u64 array_ns;

		if (params->units > 1)
			sectors = params->stripe_sectors - sector % params->stripe_sectors;
		if (sectors > left)
			sectors = left;
		array_ns = array_ns_of(model, request->op, sectors);
		if (!(paid & (1u << unit)))
			array_ns += first_ns;
		paid |= 1u << unit;
		finish_ns = max_time(finish_ns,
				     move_piece(model, request->op, unit, start_ns, array_ns,
						sectors_ns(sectors, params->bus_per_kib_ns)));
		sector += sectors;
		left -= sectors;
	}
	return finish_ns;
}

/* Erase and flush occupy the whole card, after all operations in flight. */
static u64 occupy_all(struct flash_model *model, u64 start_ns, u64 ns)
{
	u32 i;

	for (i = 0; i < model->params.units; i++)
		start_ns = max_time(start_ns, model->unit_free_ns[i]);
	start_ns = max_time(start_ns, model->bus_free_ns) + ns;
	for (i = 0; i < model->params.units; i++)
		model->unit_free_ns[i] = start_ns;
	model->bus_free_ns = start_ns;
	return start_ns;
}

static u64 erase(struct flash_model *model, const struct flash_request *request, u64 start_ns)
{
	u32 per_kib_ns = model->params.cost[FLASH_ERASE].per_kib_ns;

	return occupy_all(model, start_ns,
			  first_piece_ns(model, FLASH_ERASE, start_ns) +
				  sectors_ns(request->sectors, per_kib_ns));
}

static u64 flush(struct flash_model *model, u64 start_ns)
{
	u64 drain_ns = array_ns_of(model, FLASH_WRITE, model->cached_sectors) +
		       pauses_ns(model, model->cached_sectors);

	model->cached_sectors = 0;
	return occupy_all(model, start_ns, first_piece_ns(model, FLASH_FLUSH, start_ns) + drain_ns);
}

/* A write that finds the cache full waits until the card has emptied the whole cache. */
static u64 accept(struct flash_model *model, const struct flash_request *request, u64 start_ns,
		  struct flash_result *result)
{
	const struct flash_params *params = &model->params;
	u64 accept_ns = params->cache_base_ns +
			sectors_ns(request->sectors, params->cache_per_kib_ns) +
			sectors_ns(request->sectors, params->bus_per_kib_ns);

	if (model->cached_sectors + request->sectors > 2ull * params->cache_kib) {
		start_ns = flush(model, start_ns);
		result->drained = true;
	}
	continues(model, request);
	model->cached_sectors += request->sectors;
	result->cached = true;
	model->bus_free_ns = max_time(model->bus_free_ns, start_ns) + accept_ns;
	return model->bus_free_ns;
}

static u64 write(struct flash_model *model, const struct flash_request *request, u64 start_ns,
		 struct flash_result *result)
{
	if (!request->durable && request->sectors <= 2ull * model->params.cache_kib)
		return accept(model, request, start_ns, result);
	return transfer(model, request, start_ns);
}

void flash_submit(struct flash_model *model, const struct flash_request *request, u64 now_ns,
		  struct flash_result *result)
{
	u64 *slot = &model->slot_free_ns[0];
	u32 i;

	for (i = 1; i < model->params.depth; i++)
		if (model->slot_free_ns[i] < *slot)
			slot = &model->slot_free_ns[i];
	model->submitted++;
	*result = (struct flash_result){
		.start_ns = flash_after_stall(&model->params, max_time(now_ns, *slot)),
		.outcome = outcome_of(model, request),
	};
	cool(model, result->start_ns);
	switch (request->op) {
	case FLASH_WRITE:
		result->finish_ns = write(model, request, result->start_ns, result);
		break;
	case FLASH_ERASE:
		result->finish_ns = erase(model, request, result->start_ns);
		break;
	case FLASH_FLUSH:
		result->finish_ns = flush(model, result->start_ns);
		result->drained = true;
		break;
	default:
		result->finish_ns = transfer(model, request, result->start_ns);
		break;
	}
	heat(model, result->start_ns, result->finish_ns);
	*slot = result->finish_ns;
}
