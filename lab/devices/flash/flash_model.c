// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Timing model of managed flash; the header states problem, model and limits. */
#include "flash_draw.h"
#include "flash_fault.h"
#include "flash_model.h"

/* One stream of random numbers per purpose, so that adding one does not shift another. */
enum flash_stream {
	FLASH_STREAM_JITTER = 1,
	FLASH_STREAM_EPISODE = 2,
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
 * One episode per period, its start seeded within the period's first quarter: runs of more than
 * 1.25 periods always meet one, which keeps a 99th percentile of a few thousand requests stable.
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

static bool params_valid(const struct flash_params *params)
{
	u32 i;

	if (!params->depth || params->depth > FLASH_DEPTH_MAX || !params->units ||
	    params->units > FLASH_UNITS_MAX || !params->stripe_sectors)
		return false;
	if (params->slow_length_ns > params->slow_period_ns / 4 * 3)
		return false;
	if (params->fault_count > FLASH_FAULTS_MAX)
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
	*model = (struct flash_model){.params = *params, .last_op = FLASH_OPS};
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

/* Whether the request continues where the last read or write ended; stores this one's end. */
static bool continues(struct flash_model *model, const struct flash_request *request)
{
	bool yes = model->last_op == request->op && model->next_sector == request->sector;

	model->last_op = request->op;
	model->next_sector = request->sector + request->sectors;
	return yes;
}

/* The pauses that writing this many sectors to the flash runs into. */
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

/* What the first piece on a unit pays: base, jitter and, in a slow episode, the slow time. */
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

/* A read leaves the array first and crosses the bus then; a write the other way round. */
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

/* Reads, and writes that reach the flash: piece by piece along the stripes. */
static u64 transfer(struct flash_model *model, const struct flash_request *request, u64 start_ns)
{
	const struct flash_params *params = &model->params;
	const struct flash_cost *cost = &params->cost[request->op];
	u64 first_ns = first_piece_ns(model, request->op, start_ns);
	u64 sector = request->sector, left = request->sectors, finish_ns = start_ns;
	u32 paid = 0;

	if (!continues(model, request))
		first_ns += cost->jump_ns;
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
		array_ns = sectors_ns(sectors, cost->per_kib_ns);
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

/* Erase and flush: the whole card, after everything in flight. */
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
	u64 drain_ns =
		sectors_ns(model->cached_sectors, model->params.cost[FLASH_WRITE].per_kib_ns) +
		pauses_ns(model, model->cached_sectors);

	model->cached_sectors = 0;
	return occupy_all(model, start_ns, first_piece_ns(model, FLASH_FLUSH, start_ns) + drain_ns);
}

/* The write that finds the cache full waits until the card has emptied all of it. */
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
		.start_ns = max_time(now_ns, *slot),
		.outcome = outcome_of(model, request),
	};
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
	*slot = result->finish_ns;
}
