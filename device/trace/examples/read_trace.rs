// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads traces that were made elsewhere, and says how fast and in how much memory: what `steady trace FILE…` does
//! before it follows requests. Called by `tests/bench/trace.py`, and by hand to see what a file holds.

#![allow(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Instant;

use steadyio_trace::source::{Problems, files};

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let began = Instant::now();
    let mut source = match files::open(&paths, None) {
        Ok(source) => source,
        Err(problem) => {
            eprintln!("read_trace: {problem}");
            return ExitCode::from(2);
        }
    };
    let (mut events, mut problems) = (0_u64, Problems::default());
    for item in source.by_ref() {
        match item {
            Ok(_) => events += 1,
            Err(problem) => problems.note(&problem),
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let skipped = source.skipped();
    for problem in &problems.first {
        eprintln!("read_trace: {problem}");
    }
    println!(
        "{{\"events\": {events}, \"skipped\": {}, \"problems\": {}, \"seconds\": {seconds:.3}, \
         \"memory_kib_max\": {}}}",
        skipped,
        problems.count,
        memory_kib_max()
    );
    ExitCode::SUCCESS
}

/// The most memory that this process ever had, or 0 if the kernel does not say.
fn memory_kib_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
