// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many cases a property of the trace is tried with: more in `scripts/soak` than in each test run.

use proptest::test_runner::Config;

/// `usual` cases, or $STEADY_TRACE_CASES. What failed is printed, and no file of it is left in the source.
pub fn cases(usual: u32) -> Config {
    let said = std::env::var("STEADY_TRACE_CASES").ok();
    let cases: u32 = said.map_or(usual, |said| said.parse().expect("STEADY_TRACE_CASES: a number"));
    // Some properties pass over cases that say nothing: a part of all, not a fixed number.
    let max_global_rejects = Config::default().max_global_rejects.max(cases);
    Config { cases, max_global_rejects, failure_persistence: None, ..Config::default() }
}
