// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three-stage pipeline of the e.MMC analysis paper: the time of requests alone, overlapped on
//! one core, and overlapped on as many cores as there are stages. `report` calls it.
//!
//! All requests are alike. Each stage takes the same time for each of them, keeps their order and
//! serves one at a time. Times are whole ns, so that sums and comparisons are exact.

use std::collections::VecDeque;

use super::ModelError;

const REQUESTS_MAX: u64 = 1_000_000;
const DEPTH_MAX: u64 = 65_536;
const MIB: f64 = 1_048_576.0;
const NS_PER_S: f64 = 1e9;

/// The time of one request in each stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages {
    /// The paper's request-pre (`Pre_D`): software, until the device has the request.
    pub pre_ns: u64,
    /// The paper's hardware transfer (`T_D`).
    pub device_ns: u64,
    /// The paper's request-post (`Pst_D`): software, from the interrupt on.
    pub post_ns: u64,
}

/// The number of requests, and the highest number in flight, from the start of request-pre to the
/// end of request-post: the threads of a synchronous program, or an iodepth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    requests: u64,
    depth: u64,
}

impl Queue {
    /// Checks both.
    pub fn new(requests: u64, depth: u64) -> Result<Queue, ModelError> {
        for (key, value, max) in [("depth", depth, DEPTH_MAX), ("requests", requests, REQUESTS_MAX)]
        {
            if !(1..=max).contains(&value) {
                return Err(ModelError(format!("{key} = {value}: must be 1 to {max}")));
            }
        }
        Ok(Queue { requests, depth })
    }

    pub fn requests(self) -> u64 {
        self.requests
    }

    /// The highest number in flight.
    pub fn depth(self) -> u64 {
        self.depth
    }
}

impl Stages {
    /// The time of a request alone. Its reciprocal is the "theoretical speed" of the paper's Table
    /// 2 and the "single-thread theoretical speed" of its Table 3.
    pub fn total_ns(self) -> u64 {
        self.pre_ns + self.device_ns + self.post_ns
    }

    /// The time without the device.
    pub fn software_ns(self) -> u64 {
        self.pre_ns + self.post_ns
    }

    /// The same software on an infinitely fast device. Then [`Stages::total_ns`] and
    /// [`Stages::one_core_ns`] are both the "theoretical maximum speed" of the paper's Table 2.
    pub fn without_device(self) -> Stages {
        Stages { device_ns: 0, ..self }
    }

    /// The shortest time per request on one core. The software stages never overlap each other, and
    /// the device overlaps both (the paper's Figure 10: "the sum of the overhead durations: Pre +
    /// Pst"). On a device that is not infinitely fast, it is the device's own time if that is
    /// longer.
    pub fn one_core_ns(self) -> u64 {
        self.software_ns().max(self.device_ns)
    }

    /// The shortest time per request if all stages overlap: the longest stage (the paper's Figure
    /// 11, and "multiple-thread theoretical speed" of its Table 3).
    pub fn many_cores_ns(self) -> u64 {
        self.pre_ns.max(self.device_ns).max(self.post_ns)
    }

    /// The smallest depth with the full speed on many cores, at which the longest stage never
    /// waits. It is at most 3, the number of stages; 1 if only one takes any time.
    pub fn depth_enough(self) -> u64 {
        self.total_ns().div_ceil(self.many_cores_ns().max(1)).max(1)
    }

    /// The time for all requests of a queue if all stages overlap.
    ///
    /// The first request passes all stages, and each further one adds the longest stage: total +
    /// (N-1) x longest. That is the paper's (N+2) x D for three equal stages (Figure 9), and its
    /// Pre_D x N + T_D + Pst_D (Figure 11), where request-pre is the longest. A depth too small to
    /// keep the longest stage busy adds a rule: request N+depth starts when request N is done. Then
    /// each `depth` requests take the time of one, alone.
    pub fn many_cores_queue_ns(self, queue: Queue) -> u64 {
        let Queue { requests, depth } = queue;
        let starved = depth < self.depth_enough();
        let rounds = if starved { (requests - 1) / depth } else { 0 };
        let rest = requests - 1 - rounds * depth;
        (1 + rounds) * self.total_ns() + rest * self.many_cores_ns()
    }

    /// The time for all requests of a queue if one core does all the software.
    ///
    /// The paper draws this case (Figure 10) without a formula. Here the core first prepares as
    /// many requests as the depth allows. Then it alternately finishes the oldest and prepares the
    /// next, and waits for the device if it must. No other order of the core's work is faster,
    /// because only preparing gives the device work.
    pub fn one_core_queue_ns(self, queue: Queue) -> u64 {
        let Queue { requests, depth } = queue;
        let depth = depth.min(requests);
        let mut core_ns = 0;
        let mut device_ns = 0;
        let mut transferred_ns = VecDeque::new();
        for step in 0..requests + depth {
            if step >= depth {
                core_ns = core_ns.max(transferred_ns.pop_front().unwrap_or(0)) + self.post_ns;
            }
            if step < requests {
                core_ns += self.pre_ns;
                device_ns = core_ns.max(device_ns) + self.device_ns;
                transferred_ns.push_back(device_ns);
            }
        }
        core_ns
    }
}

/// The speed of requests of one size; None if they take no time. The paper writes MB/s and KB, but
/// its numbers result only from 2^20 and 2^10.
pub fn mib_s(size_bytes: u64, requests: u64, time_ns: u64) -> Option<f64> {
    let mib = size_bytes as f64 * requests as f64 / MIB;
    (time_ns > 0).then(|| mib / (time_ns as f64 / NS_PER_S))
}
