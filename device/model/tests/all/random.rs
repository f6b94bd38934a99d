// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pipeline model with random spans: against a recurrence, against every order of one core's
//! work, and against itself with less to do.

use proptest::prelude::*;
use steadyio_model::pipeline::{Queue, Stages};

/// Few distinct values, so that ties and zeroes are frequent; and large ones.
fn span_ns() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..6u64, 1 => 0..60_000_000_000u64]
}

fn any_stages() -> impl Strategy<Value = Stages> {
    let spans = (span_ns(), span_ns(), span_ns());
    let stages =
        spans.prop_map(|(pre_ns, device_ns, post_ns)| Stages { pre_ns, device_ns, post_ns });
    stages.prop_filter("some stage takes time", |stages| stages.total_ns() > 0)
}

fn any_queue() -> impl Strategy<Value = Queue> {
    (1..40u64, 1..45u64).prop_map(|(requests, depth)| queue(requests, depth))
}

fn queue(requests: u64, depth: u64) -> Queue {
    Queue::new(requests, depth).unwrap()
}

/// Each request through each stage, one after the other.
fn many_cores_step_by_step(stages: Stages, queue: Queue) -> u64 {
    let (mut pre, mut device) = (0, 0);
    let mut done = Vec::new();
    for request in 0..queue.requests() as usize {
        let slot = request.checked_sub(queue.depth() as usize).map_or(0, |earlier| done[earlier]);
        pre = u64::max(pre, slot) + stages.pre_ns;
        device = u64::max(device, pre) + stages.device_ns;
        done.push(device.max(done.last().copied().unwrap_or(0)) + stages.post_ns);
    }
    done.pop().unwrap()
}

/// The work of one core so far, in some order.
#[derive(Clone)]
struct OneCore {
    core: u64,
    device: u64,
    transferred: Vec<u64>,
    done: usize,
}

/// Shortest time over all orders in which one core can prepare and finish.
fn one_core_best_order(stages: Stages, queue: Queue, so_far: &OneCore) -> u64 {
    let requests = queue.requests() as usize;
    if so_far.done == requests {
        return so_far.core;
    }
    let mut best = u64::MAX;
    let under_way = so_far.transferred.len() - so_far.done;
    if so_far.transferred.len() < requests && under_way < queue.depth() as usize {
        let mut next = so_far.clone();
        next.core += stages.pre_ns;
        next.device = next.device.max(next.core) + stages.device_ns;
        next.transferred.push(next.device);
        best = one_core_best_order(stages, queue, &next);
    }
    if under_way > 0 {
        let mut next = so_far.clone();
        next.core = next.core.max(next.transferred[next.done]) + stages.post_ns;
        next.done += 1;
        best = best.min(one_core_best_order(stages, queue, &next));
    }
    best
}

proptest! {
    #[test]
    fn many_cores_formula_is_what_step_by_step_gives(stages in any_stages(), queue in any_queue()) {
        prop_assert_eq!(stages.many_cores_queue_ns(queue), many_cores_step_by_step(stages, queue));
    }

    #[test]
    fn no_order_of_one_cores_work_is_faster(
        stages in any_stages(), requests in 1..6u64, depth in 1..7u64
    ) {
        let queue = queue(requests, depth);
        let start = OneCore { core: 0, device: 0, transferred: Vec::new(), done: 0 };
        let best = one_core_best_order(stages, queue, &start);
        prop_assert_eq!(stages.one_core_queue_ns(queue), best);
    }

    #[test]
    fn depth_1_is_a_single_thread(stages in any_stages(), requests in 1..1_000u64) {
        let queue = queue(requests, 1);
        prop_assert_eq!(stages.many_cores_queue_ns(queue), requests * stages.total_ns());
        prop_assert_eq!(stages.one_core_queue_ns(queue), requests * stages.total_ns());
    }

    #[test]
    fn limits_bound_each_other(stages in any_stages()) {
        let Stages { pre_ns, device_ns, post_ns } = stages;
        prop_assert!(stages.many_cores_ns() <= stages.one_core_ns());
        prop_assert!(stages.one_core_ns() <= stages.total_ns());
        prop_assert!(stages.total_ns() <= 3 * stages.many_cores_ns());
        prop_assert!((1..=3).contains(&stages.depth_enough()));
        let no_device = stages.without_device();
        prop_assert_eq!(no_device.total_ns(), no_device.one_core_ns());
        prop_assert_eq!(no_device.total_ns() + device_ns, stages.total_ns());
        prop_assert_eq!(no_device.many_cores_ns(), pre_ns.max(post_ns));
        prop_assert!(no_device.many_cores_ns() <= stages.many_cores_ns());
    }

    #[test]
    fn a_queue_takes_no_less_than_the_limits_and_no_more_than_a_single_thread(
        stages in any_stages(), queue in any_queue()
    ) {
        let (one, many) = (stages.one_core_queue_ns(queue), stages.many_cores_queue_ns(queue));
        prop_assert!(queue.requests() * stages.many_cores_ns() <= many);
        prop_assert!(queue.requests() * stages.one_core_ns() <= one);
        prop_assert!(stages.total_ns() <= many);
        prop_assert!(many <= one);
        prop_assert!(one <= queue.requests() * stages.total_ns());
    }

    #[test]
    fn a_deep_queue_comes_as_near_to_the_limits_as_one_request(
        stages in any_stages(), requests in 1..500u64
    ) {
        let queue = queue(requests, requests);
        let above = |queue_ns: u64, limit_ns: u64| queue_ns - requests * limit_ns;
        let many = above(stages.many_cores_queue_ns(queue), stages.many_cores_ns());
        let one = above(stages.one_core_queue_ns(queue), stages.one_core_ns());
        prop_assert!(many < stages.total_ns());
        prop_assert!(one < stages.total_ns());
    }

    #[test]
    fn shortening_a_span_never_slows(
        stages in any_stages(), queue in any_queue(), shorter in [0..=100u64, 0..=100, 0..=100]
    ) {
        let shorten = |ns: u64, percent: u64| ns * percent / 100;
        let faster = Stages {
            pre_ns: shorten(stages.pre_ns, shorter[0]),
            device_ns: shorten(stages.device_ns, shorter[1]),
            post_ns: shorten(stages.post_ns, shorter[2]),
        };
        prop_assert!(faster.total_ns() <= stages.total_ns());
        prop_assert!(faster.one_core_ns() <= stages.one_core_ns());
        prop_assert!(faster.many_cores_ns() <= stages.many_cores_ns());
        prop_assert!(faster.one_core_queue_ns(queue) <= stages.one_core_queue_ns(queue));
        prop_assert!(faster.many_cores_queue_ns(queue) <= stages.many_cores_queue_ns(queue));
    }

    #[test]
    fn more_depth_never_slows_and_stops_helping_at_depth_enough(
        stages in any_stages(), requests in 1..40u64, depth in 1..40u64
    ) {
        let (shallow, deep) = (queue(requests, depth), queue(requests, depth + 1));
        prop_assert!(stages.one_core_queue_ns(deep) <= stages.one_core_queue_ns(shallow));
        prop_assert!(stages.many_cores_queue_ns(deep) <= stages.many_cores_queue_ns(shallow));
        let enough = stages.depth_enough();
        if depth >= enough {
            let least = stages.many_cores_queue_ns(queue(requests, enough));
            prop_assert_eq!(stages.many_cores_queue_ns(shallow), least);
        } else if requests > 3 {
            let least = stages.many_cores_queue_ns(queue(requests, enough));
            prop_assert!(stages.many_cores_queue_ns(shallow) > least);
        }
    }
}
