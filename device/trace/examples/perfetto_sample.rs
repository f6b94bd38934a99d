// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a small known trace as a Perfetto file, for the tests in `tests/trace/` that read it with Perfetto's
//! own programs: `cargo run --example perfetto_sample FILE`.

use std::fs::File;
use std::io::{Error, Result};

#[path = "../tests/all/perfetto/sample.rs"]
mod sample;

fn main() -> Result<()> {
    let file = std::env::args_os().nth(1).ok_or_else(|| Error::other("no FILE is given"))?;
    steadyio_trace::perfetto::write(&sample::trace(), &sample::names(), &[], File::create(file)?)
}
