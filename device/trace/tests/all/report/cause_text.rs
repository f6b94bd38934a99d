// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes in words.

use steadyio_trace::event::{Call, OpKind};
use steadyio_trace::report::cause::{Cause, CpuWait, Fact, HadCpu, Other, Sleep, Waker};

use crate::made::{Made, US, request, valid};

const NS: u64 = 250 * US;

fn longest() -> Box<Other> {
    Box::new(Other {
        op: "write",
        bytes: 524_288,
        sector: 8_192,
        pid: 55,
        comm: "kworker".into(),
        origin: "writeback",
        inode: Some(12),
        overlap_ns: 7_000 * US,
        device_ns: 8_500 * US,
        pieces: 2,
    })
}

fn expect(causes: impl IntoIterator<Item = (Cause, &'static str)>) {
    for (cause, text) in causes {
        assert_eq!(cause.text, format!("250.0 us {text}"));
    }
}

#[test]
fn the_record_has_the_text_of_each_cause() {
    let mut made = Made::default();
    let own = request(OpKind::Read, 4096, 2_000, [3_000, 1, 1, 1, 90, 1]);
    made.io(Call::Pread64, 4096, (20, 10), vec![own]);
    let causes = &valid(&made.record())["worst_ios"][0]["causes"];
    assert_eq!(causes[0]["text"], "3000.0 us waiting for a tag, or throttled");
}

#[test]
fn other_requests_are_named_by_the_longest() {
    let named = "longest: write 512 KiB sector 8192 by kworker (55), writeback of inode 12, \
                 2 pieces, 7000.0 of its 8500.0 us in flight";
    let behind = Fact::Behind { requests: 2, longest: longest() }.lasting(NS);
    let says = format!("250.0 us queued in the block layer behind 2 requests in flight, {named}");
    assert_eq!(behind.text, says);
    let shared = Fact::Shared { requests: 1, longest: longest() }.lasting(NS);
    assert_eq!(shared.text, format!("250.0 us in flight together with 1 other request, {named}"));
}

#[test]
fn flushes_and_discards_are_its_own_or_in_flight() {
    let ns = NS;
    expect([
        (Fact::Flush { own: true, requests: 1 }.lasting(ns), "in its own flush"),
        (Fact::Flush { own: false, requests: 2 }.lasting(ns), "with 2 flushes in flight"),
        (Fact::Discard { own: true, requests: 1 }.lasting(ns), "in its own discard"),
        (Fact::Discard { own: false, requests: 1 }.lasting(ns), "with 1 discard in flight"),
    ]);
}

#[test]
fn what_the_block_layer_did_with_the_request_is_said_in_its_terms() {
    let ns = NS;
    expect([
        (Fact::Requeued { times: 2 }.lasting(ns), "requeued by the driver 2 times"),
        (Fact::Pieces { pieces: 4 }.lasting(ns), "between the 4 pieces it was served in"),
        (
            Fact::Cut { requests: 3 }.lasting(ns),
            "between completions: the bio was split into 3 requests",
        ),
        (Fact::Merged { bios: 1 }.lasting(ns), "until the last bio was merged into it (1 merge)"),
        (Fact::TagWait.lasting(ns), "waiting for a tag, or throttled"),
        (
            Fact::Journal { requests: 2 }.lasting(ns),
            "with 2 journal requests pending and none of its own",
        ),
        (
            Fact::Writeback { requests: 1 }.lasting(ns),
            "with 1 writeback request pending and none of its own",
        ),
        (
            Fact::DirtyThrottle { times: 2 }.lasting(ns),
            "throttled in balance_dirty_pages (2 pauses)",
        ),
    ]);
}

#[test]
fn a_slow_device_stands_beside_its_median() {
    let slow = |bytes, others| {
        let (op, device_ns, p50_ns, of_count) = ("read", 340 * US, 90 * US, 21);
        Fact::DeviceSlow { op, bytes, device_ns, p50_ns, of_count, others }.lasting(NS)
    };
    expect([
        (
            slow(4096, 1),
            "because the device was slower than usual: 340.0 us for read 4 KiB \
             (median 90.0 of 21 alike), 1 other in flight",
        ),
        (
            slow(0, 0),
            "because the device was slower than usual: 340.0 us for read \
             (median 90.0 of 21 alike), no other in flight",
        ),
    ]);
}

fn waker(comm: &str, pid: u32, context: Option<&'static str>) -> Option<Waker> {
    Some(Waker { slept_ns: Some(12 * US), pid, comm: comm.into(), context })
}

#[test]
fn a_wait_for_a_cpu_names_who_ran_there_and_who_woke_the_thread() {
    let had =
        |class, priority, ns| Some(HadCpu { pid: 31, comm: "loader".into(), class, priority, ns });
    let irq = || waker("loader", 31, Some("interrupt"));
    let ran_ns = Some(240 * US);
    let wait = |times, cpu, woken, had_cpu| {
        let longest = Box::new(CpuWait { ns: 245 * US, cpu, woken, had_cpu });
        Fact::CpuWait { span: "post", times, longest }.lasting(NS)
    };
    expect([
        (
            wait(1, Some(1), irq(), had("real_time", Some(50), ran_ns)),
            "of post runnable, waiting for CPU 1 where loader (31), real-time 50, ran for 240.0 us \
             of it, woken after 12.0 us by an interrupt on top of loader (31)",
        ),
        (
            wait(3, Some(1), None, had("normal", Some(-5), None)),
            "of post runnable, waiting for a CPU 3 times, longest 245.0 us for CPU 1 where loader \
             (31), nice -5, ran last, preempted",
        ),
        (
            wait(1, None, irq(), None),
            "of post runnable, waiting for a CPU, woken after 12.0 us by an interrupt on top of \
             loader (31)",
        ),
        (
            wait(1, Some(1), None, had("idle", None, ran_ns)),
            "of post runnable, waiting for CPU 1, idle for 240.0 us of it, preempted",
        ),
    ]);
    expect([(Fact::Running { span: "post" }.lasting(NS), "of post running on a CPU")]);
}

#[test]
fn who_ended_a_sleep_is_named_only_as_far_as_it_is_known() {
    let asleep = |times, woken| {
        let longest = Box::new(Sleep { ns: 200 * US, woken });
        Fact::Asleep { span: "submission", times, longest }.lasting(NS)
    };
    expect([
        (asleep(1, None), "of submission asleep, to the end of the I/O"),
        (
            asleep(2, waker("jbd2/loop0-8", 70, Some("thread"))),
            "of submission asleep 2 times, longest 200.0 us, woken by jbd2/loop0-8 (70)",
        ),
        (
            asleep(1, waker("ksoftirqd/0", 16, Some("softirq"))),
            "of submission asleep, woken by ksoftirqd/0 (16)",
        ),
        (
            asleep(1, waker("dd", 60, Some("softirq"))),
            "of submission asleep, woken by a softirq on top of dd (60)",
        ),
        (
            asleep(1, waker("dd", 60, None)),
            "of submission asleep, woken by dd (60) or an interrupt on top of it",
        ),
        (
            asleep(1, waker("swapper/0", 0, None)),
            "of submission asleep, woken by an interrupt on an idle CPU",
        ),
    ]);
}
