// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps an incident when the rate of a topic falls below a limit, or exceeds one. `steady record`
//! starts it.
//!
//! A thread reads how many messages each topic has received, so append() and the writer thread do
//! not wait for it.

use std::collections::VecDeque;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use steadyio_core::diagnostic;
use steadyio_recorder::incident::keeper::Keeper;
use steadyio_recorder::ledger::Ledger;
use steadyio_recorder::pool::registry::Registry;
use steadyio_recorder::source::now_ns;

use super::signal::keep_in_thread;

/// The interval between two looks at the counts.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A rate is counted over this time, or over the time of several messages if that is longer.
const WINDOW_NS_MIN: u64 = 1_000_000_000;
const WINDOW_MESSAGES: f64 = 4.0;
/// The rates that a limit may have, per second.
const HZ: (f64, f64) = (0.001, 1e6);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// A limit such as `/scan<5`: fewer than 5 messages per second.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    topic: String,
    side: Side,
    hz: f64,
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<RateLimit, String> {
        let form = || format!("must be TOPIC<HZ or TOPIC>HZ, with HZ from {} to {}", HZ.0, HZ.1);
        let at = text.rfind(['<', '>']).ok_or_else(form)?;
        let side = if text[at..].starts_with('<') { Side::Below } else { Side::Above };
        let (topic, hz) = (text[..at].to_string(), text[at + 1..].parse().map_err(|_| form())?);
        if topic.is_empty() || !(HZ.0..=HZ.1).contains(&hz) {
            return Err(form());
        }
        Ok(RateLimit { topic, side, hz })
    }
}

/// A limit, and the counts of its topic within the window.
struct Watched {
    limit: RateLimit,
    window_ns: u64,
    ledger: Option<Arc<Ledger>>,
    /// Times and counts, the oldest first.
    counts: VecDeque<(u64, u64)>,
    /// When the rate was last beyond the limit.
    beyond_ns: Option<u64>,
}

impl Watched {
    fn new(limit: RateLimit) -> Watched {
        let window_ns = WINDOW_NS_MIN.max((WINDOW_MESSAGES / limit.hz * 1e9) as u64);
        Watched { limit, window_ns, ledger: None, counts: VecDeque::new(), beyond_ns: None }
    }

    /// Takes a count. Returns the number of messages in the window if the rate goes beyond the
    /// limit now, and was not within the last window. A topic is watched from its first message on.
    fn look(&mut self, now_ns: u64, received: u64) -> Option<u64> {
        if received == 0 {
            return None;
        }
        self.counts.push_back((now_ns, received));
        let begin_ns = now_ns.saturating_sub(self.window_ns);
        while self.counts.get(1).is_some_and(|(ns, _)| *ns <= begin_ns) {
            self.counts.pop_front();
        }
        let (since_ns, before) = self.counts.front().copied().filter(|(ns, _)| *ns <= begin_ns)?;
        let (messages, allowed) =
            (received - before, self.limit.hz * (now_ns - since_ns) as f64 / 1e9);
        let is_beyond = match self.limit.side {
            Side::Below => (messages as f64) < allowed.floor(),
            Side::Above => messages as f64 > allowed,
        };
        if !is_beyond {
            return None;
        }
        // A rate near the limit would begin one incident after the other.
        let last_ns = self.beyond_ns.replace(now_ns);
        let begins = last_ns.is_none_or(|last_ns| now_ns - last_ns > self.window_ns);
        begins.then_some(messages)
    }

    fn received(&mut self, registry: &Registry) -> u64 {
        if self.ledger.is_none() {
            self.ledger = registry.ledger_of(&self.limit.topic);
        }
        self.ledger.as_ref().map_or(0, |ledger| ledger.snapshot().received.records)
    }
}

/// The thread that watches the rates; dropping this ends it.
pub struct RateWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RateWatch {
    /// Starts the thread, if there are limits. An incident has the length `last`.
    pub fn start(
        limits: &[RateLimit],
        registry: Arc<Registry>,
        keeper: Arc<Keeper>,
        last: Duration,
    ) -> io::Result<RateWatch> {
        if limits.is_empty() {
            return Ok(RateWatch { stop: None, thread: None });
        }
        let (stop, stopped) = channel();
        let mut watched: Vec<Watched> = limits.iter().cloned().map(Watched::new).collect();
        let watch = move || watch(&mut watched, &stopped, &registry, &keeper, last);
        let thread = Builder::new().name("steady-rate".into()).spawn(watch)?;
        Ok(RateWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for RateWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

fn watch(
    watched: &mut [Watched],
    stopped: &Receiver<()>,
    registry: &Registry,
    keeper: &Arc<Keeper>,
    last: Duration,
) {
    let mut taking: Vec<JoinHandle<()>> = Vec::new();
    while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        taking.retain(|thread| !thread.is_finished());
        for one in watched.iter_mut() {
            let (now_ns, received) = (now_ns(), one.received(registry));
            let Some(messages) = one.look(now_ns, received) else { continue };
            let RateLimit { topic, side, hz } = &one.limit;
            let than = if *side == Side::Below { "fewer" } else { "more" };
            let window_s = one.window_ns as f64 / 1e9;
            diagnostic!(
                "steady: {topic}: {messages} messages in {window_s} s, {than} than {hz} per second"
            );
            taking.extend(keep_in_thread(keeper, last));
        }
    }
    for one in watched.iter_mut() {
        one.received(registry);
        if one.ledger.is_none() {
            diagnostic!("steady: --incident-rate: no topic {:?} was recorded", one.limit.topic);
        }
    }
    taking.into_iter().for_each(|thread| drop(thread.join()));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When a limit is exceeded, in ms, if messages come at these times and it looks every 100 ms.
    fn found(limit: &str, times_ms: &[u64], end_ms: u64) -> Vec<u64> {
        let mut watched = Watched::new(limit.parse().unwrap());
        let looks = (0..=end_ms).step_by(100);
        let received = |at: u64| times_ms.iter().filter(|time| **time <= at).count() as u64;
        looks.filter(|at| watched.look(at * MS, received(*at)).is_some()).collect()
    }

    #[test]
    fn a_topic_that_falls_silent_is_found_once_until_it_comes_back() {
        let mut times: Vec<u64> = (0..2_000).step_by(100).collect();
        times.extend((4_000..6_000).step_by(100));
        let found = found("/a<5", &times, 9_000);
        assert_eq!(found, [2_500, 6_500]);
    }

    #[test]
    fn a_topic_without_a_message_yet_is_not_watched() {
        assert_eq!(found("/a<5", &[], 5_000), [0; 0]);
    }

    #[test]
    fn a_burst_is_found_and_the_usual_rate_is_not() {
        let mut times: Vec<u64> = (0..5_000).step_by(100).collect();
        assert_eq!(found("/a>15", &times, 5_000), [0; 0]);
        times.extend(3_000..3_020);
        assert_eq!(found("/a>15", &times, 5_000), [3_100]);
    }

    #[test]
    fn a_slow_topic_is_watched_over_several_of_its_messages() {
        let times: Vec<u64> = (0..60_000).step_by(2_000).collect();
        assert_eq!(found("/a<0.4", &times, 60_000), [0; 0]);
        assert_eq!(found("/a<0.6", &times, 60_000).len(), 1);
    }

    #[test]
    fn a_limit_names_topic_side_and_rate() {
        let limit: RateLimit = "/a/<b>0.5".parse().unwrap();
        assert_eq!((limit.topic.as_str(), limit.side, limit.hz), ("/a/<b", Side::Above, 0.5));
        for wrong in ["/a", "<5", "/a<", "/a<x", "/a<0", "/a<1e9", "/a<nan"] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }
}
