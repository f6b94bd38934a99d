// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks k2 (k2_lane.h) whether a command of a lane may go before the requests of mmcblk's queue. If
 * k2 is not the scheduler of that queue, the two have no order.
 */
#include <linux/module.h>

#include "chario.h"

static_assert(K2_LANE_BACKGROUND == CHARIO_BACKGROUND);

void chario_order_init(struct chario_order *order, struct request_queue *queue,
		       void (*may_go)(struct k2_lane *lane))
{
	order->lane.queue = queue;
	order->lane.may_go = may_go;
}

/* Called with queue.turn held. After K2_LANE_GO or _WAIT, chario_order_give() must follow. */
enum k2_lane_answer chario_order_ask(struct chario_order *order, u8 level, u64 since_ns)
{
	enum k2_lane_answer answer;

	if (!order->k2)
		order->k2 = symbol_get(k2_lane_order);
	if (!order->k2)
		return K2_LANE_NO_K2;
	answer = order->k2->ask(&order->lane, level, since_ns);
	/* A lane that has the card keeps it until it gives it back, whatever k2 answers. */
	order->has_card |= answer == K2_LANE_GO;
	if (answer == K2_LANE_NO_K2 || answer == K2_LANE_FROZEN) {
		symbol_put(k2_lane_order);
		order->k2 = NULL;
	}
	return answer;
}

/* Called with queue.turn held, after the host was released. waits: the command still waits. */
void chario_order_give(struct chario_order *order, bool waits)
{
	if (!order->k2 || (waits && !order->has_card))
		return;
	order->has_card = false;
	order->k2->give(&order->lane, waits);
	if (waits)
		return;
	symbol_put(k2_lane_order);
	order->k2 = NULL;
}
