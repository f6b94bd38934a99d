// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an I/O's own thread did while none of its requests was under way, in words.

use steadyio_trace::report::cause::{CpuWait, HadCpu, Sleep, Waker};

use super::words::{count, ns_us, who};

/// How a wait for a CPU went; behind its time.
pub fn cpu_wait(span: &str, times: u64, wait: &CpuWait) -> String {
    let cpu = wait.cpu.map_or("a CPU".into(), |cpu| format!("CPU {cpu}"));
    let had = wait.had_cpu.as_ref().map_or_else(String::new, had_cpu);
    let before = match &wait.woken {
        Some(waker) => woken(waker),
        None => "after it had lost its CPU".into(),
    };
    match times {
        1 => format!("of {span} waiting for {cpu}{had}; {before}"),
        times => format!(
            "of {span} waiting for a CPU, {times} times; longest {} us for {cpu}{had}; {before}",
            ns_us(wait.ns)
        ),
    }
}

/// How it slept; behind the time.
pub fn asleep(span: &str, times: u64, sleep: &Sleep) -> String {
    let by =
        sleep.woken.as_ref().map_or("to the end".into(), |waker| format!("woken {}", by(waker)));
    match times {
        1 => format!("of {span} asleep, {by}"),
        times => {
            let longest = ns_us(sleep.ns);
            format!("of {span} asleep, {times} times; longest {longest} us, {by}")
        }
    }
}

/// Behind the time.
pub fn dirty_throttle(times: u64) -> String {
    format!("asleep in balance_dirty_pages, because too much was dirty ({})", count(times, "pause"))
}

fn had_cpu(had: &HadCpu) -> String {
    let name = match (had.class, had.priority) {
        ("idle", _) => "idle".into(),
        ("real_time", Some(priority)) => {
            format!("{} ({}, real-time {priority})", had.comm, had.pid)
        }
        ("normal", Some(nice)) => format!("{} ({}, nice {nice})", had.comm, had.pid),
        (class, _) => format!("{} ({}, {class})", had.comm, had.pid),
    };
    match (had.class, had.ns) {
        ("idle", Some(ns)) => format!(", which was idle for {} us of it", ns_us(ns)),
        (_, Some(ns)) => format!(", on which {name} ran for {} us of it", ns_us(ns)),
        (_, None) => format!(", which had last been {name}'s"),
    }
}

fn woken(waker: &Waker) -> String {
    match waker.slept_ns {
        Some(ns) => format!("woken after {} us {}", ns_us(ns), by(waker)),
        None => format!("woken before {}", by(waker)),
    }
}

/// An interrupt comes over whoever has the CPU; that thread did nothing for it.
fn by(waker: &Waker) -> String {
    let thread = who(&waker.comm, waker.pid);
    let is_ksoftirqd = waker.comm.starts_with("ksoftirqd/");
    let over = match waker.pid {
        0 => "on an idle CPU".into(),
        _ => format!("over {thread}"),
    };
    match waker.context {
        Some("interrupt") => format!("by an interrupt {over}"),
        Some("softirq") if !is_ksoftirqd => format!("by a softirq {over}"),
        // Idle does nothing itself.
        None if waker.pid == 0 => format!("by an interrupt {over}"),
        None => format!("by {thread}, or an interrupt over it"),
        Some(_) => format!("by {thread}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn waker(comm: &str, pid: u32, context: Option<&'static str>) -> Waker {
        Waker { slept_ns: Some(12 * US), pid, comm: comm.into(), context }
    }

    fn had(class: &'static str, priority: Option<i32>, ns: Option<u64>) -> Option<HadCpu> {
        Some(HadCpu { pid: 31, comm: "loader".into(), class, priority, ns })
    }

    #[test]
    fn a_wait_says_who_woke_it_and_who_had_the_cpu() {
        let irq = Some(waker("loader", 31, Some("interrupt")));
        let wait = |woken, had_cpu| CpuWait { ns: 19_000 * US, cpu: Some(1), woken, had_cpu };
        let ns = Some(18_900 * US);
        for (times, wait, says) in [
            (
                1,
                wait(irq.clone(), had("real_time", Some(50), ns)),
                "of post waiting for CPU 1, on which loader (31, real-time 50) ran for 18900.0 us of it; \
                 woken after 12.0 us by an interrupt over loader (31)",
            ),
            (
                3,
                wait(None, had("normal", Some(-5), None)),
                "of post waiting for a CPU, 3 times; longest 19000.0 us for CPU 1, which had last been \
                 loader (31, nice -5)'s; after it had lost its CPU",
            ),
            (
                1,
                CpuWait { cpu: None, ..wait(irq, None) },
                "of post waiting for a CPU; woken after 12.0 us by an interrupt over loader (31)",
            ),
            (
                1,
                wait(None, had("idle", None, ns)),
                "of post waiting for CPU 1, which was idle for 18900.0 us of it; after it had lost its CPU",
            ),
        ] {
            assert_eq!(cpu_wait("post", times, &wait), says);
        }
    }

    #[test]
    fn who_ends_a_sleep_is_named_only_as_far_as_it_is_known() {
        for (waker, says) in [
            (waker("kworker/0:1H", 58, Some("thread")), "by kworker/0:1H (58)"),
            (waker("ksoftirqd/0", 16, Some("softirq")), "by ksoftirqd/0 (16)"),
            (waker("dd", 60, Some("softirq")), "by a softirq over dd (60)"),
            (waker("dd", 60, None), "by dd (60), or an interrupt over it"),
            (waker("swapper/0", 0, None), "by an interrupt on an idle CPU"),
        ] {
            assert_eq!(by(&waker), says);
        }
        let sleep = |woken| Sleep { ns: 200 * US, woken };
        assert_eq!(asleep("submission", 1, &sleep(None)), "of submission asleep, to the end");
        let woken = Some(waker("jbd2/loop0-8", 70, Some("thread")));
        let says = "of submission asleep, 2 times; longest 200.0 us, woken by jbd2/loop0-8 (70)";
        assert_eq!(asleep("submission", 2, &sleep(woken)), says);
    }
}
