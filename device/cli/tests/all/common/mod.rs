// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop device with knobs of its own, and the real command run on it.

pub mod tracing;

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use steadyio_testing::LoopDisk;

pub const DISK_MIB: u64 = 64;

pub struct Loop(LoopDisk);

/// A loop device, or None with the reason told if this machine cannot have one.
pub fn loop_device() -> Option<Loop> {
    LoopDisk::new(DISK_MIB, &["--direct-io=on"]).map(Loop)
}

impl Deref for Loop {
    type Target = LoopDisk;

    fn deref(&self) -> &LoopDisk {
        &self.0
    }
}

impl Loop {
    /// Directory of the knobs.
    pub fn queue(&self) -> PathBuf {
        Path::new("/sys/block").join(self.name()).join("queue")
    }

    pub fn knob(&self, attribute: &str) -> String {
        let text = fs::read_to_string(self.queue().join(attribute)).unwrap_or_default();
        text.trim().to_string()
    }

    pub fn set_knob(&self, attribute: &str, value: &str) {
        fs::write(self.queue().join(attribute), value).expect("knob");
    }

    /// `steady bench` on this device with a workload given as text.
    pub fn bench(&self, workload: &str) -> Command {
        self.bench_on(&self.node, workload)
    }

    /// The same on another node, such as a partition.
    pub fn bench_on(&self, node: &str, workload: &str) -> Command {
        let spec = self.dir.path().join("workload.toml");
        fs::write(&spec, workload).expect("workload");
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        command.args(["bench", "--device", node]).arg(spec);
        command
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The bench record on standard output, checked against the published schema.
pub fn valid_record(output: &Output) -> Value {
    valid_json(output, "bench-record-1.schema.json")
}

/// The JSON on standard output, checked against a schema in docs/spec.
pub fn valid_json(output: &Output, schema: &str) -> Value {
    let text = fs::read_to_string(Path::new("../../docs/spec").join(schema)).expect("schema");
    steadyio_testing::valid_json(output, &text)
}
