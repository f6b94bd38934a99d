// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the device usually takes for a request of one operation and size.

use std::collections::HashMap;

use super::distribution::Distribution;
use crate::event::{Dev, OpKind};
use crate::io::{Request, Trace};

/// With fewer requests there is no usual time.
const COUNT_MIN: u64 = 10;

type Key = (Dev, OpKind, u64);

/// Median times in the device.
pub struct DeviceMedians(HashMap<Key, (u64, u64)>);

impl DeviceMedians {
    /// Over all requests of a trace, of any origin.
    pub fn of_trace(trace: &Trace) -> DeviceMedians {
        let mut times_ns: HashMap<Key, Vec<u64>> = HashMap::new();
        for request in &trace.requests {
            times_ns.entry(key(request)).or_default().push(request.with_device().total_ns());
        }
        let median = |(key, times_ns)| {
            let times = Distribution::of(times_ns)?;
            (times.count >= COUNT_MIN).then_some((key, (times.p50_ns, times.count)))
        };
        DeviceMedians(times_ns.into_iter().filter_map(median).collect())
    }

    /// The median in ns for requests like this one, and over how many it is.
    pub fn of(&self, request: &Request) -> Option<(u64, u64)> {
        self.0.get(&key(request)).copied()
    }
}

fn key(request: &Request) -> Key {
    (request.dev, request.op.kind, request.bytes)
}
