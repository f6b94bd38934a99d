// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used, clippy::panic)]

mod analysis;
mod files;
mod random;
mod search;

use steadyio_bound::analysis::{Response, responses};
use steadyio_bound::device::Device;
use steadyio_bound::tasks::TaskSet;

/// Reads take 100 us + 4 us/KiB, writes 200 us + 8 us/KiB; `more` has further tables.
fn card(more: &str) -> Device {
    let text = format!(
        "schema = \"steadyio.device/1\"\nname = \"card\"\n\
         card = {{ capacity_mib = 256 }}\n\
         read = {{ base_ns = 100_000, per_kib_ns = 4_000 }}\n{more}\n"
    );
    let write = "write = { base_ns = 200_000, per_kib_ns = 8_000 }\n";
    let text = if more.contains("write") { text } else { text + write };
    Device::parse(&text).unwrap()
}

/// One command in flight, pieces of 16 KiB; `text` has background and tasks.
fn tasks(text: &str) -> TaskSet {
    TaskSet::parse(&with_k2("inflight_max = 1\nsplit_kib = 16", text)).unwrap()
}

fn with_k2(knobs: &str, text: &str) -> String {
    format!(
        "schema = \"steadyio.tasks/1\"\nname = \"test\"\n{text}\n\
         [k2]\nmax_sectors_kb = 512\nnr_requests = 64\n{knobs}\n"
    )
}

fn found(device: &Device, set: &TaskSet) -> Vec<Response> {
    responses(device, set)
}

fn bounds_us(device: &Device, set: &TaskSet) -> Vec<Option<u64>> {
    let us = |response: &Response| response.job.map(|terms| terms.sum() / 1_000);
    found(device, set).iter().map(us).collect()
}
