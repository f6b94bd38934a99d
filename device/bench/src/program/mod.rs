// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of a program that measures itself. `steady with` makes it from the files of the
//! program.
//!
//! [`source`] assigns files to classes; [`sysbench`], [`dd`] and [`recording`] parse one format
//! each.

pub mod dd;
pub mod recording;
pub mod source;
pub mod sysbench;

use std::collections::BTreeMap;

use serde_json::json;
use steadyio_core::device::Device;
use steadyio_core::kernel::Kernel;
use steadyio_core::knobs::KnobReading;
use steadyio_core::value::Value;

use crate::record::{PointResult, RECORD_SCHEMA, Record, Tool};
use crate::spec::workload::Class;
use source::{ClassSource, SourceError};

const PROGRAM_SCHEMA: &str = "steadyio.program/1";

/// A program that has run, and the sources of its classes.
#[derive(Debug)]
pub struct Program<'a> {
    /// The program's name and arguments.
    pub words: &'a [String],
    /// The name of its settings in the record.
    pub variant: &'a str,
    pub classes: &'a [ClassSource],
}

impl Program<'_> {
    /// The record. `queue` has the present values, so it also shows changes by the program itself.
    pub fn record(
        &self,
        device: &Device,
        knobs: BTreeMap<String, KnobReading>,
        queue: BTreeMap<String, Value>,
    ) -> Result<Record, SourceError> {
        let mut tool = Tool { steady: env!("CARGO_PKG_VERSION"), fio: None, sysbench: None };
        let mut classes = BTreeMap::new();
        for source in self.classes {
            let name = match source.class {
                Class::Rt => "rt",
                Class::Bg => "bg",
            };
            classes.insert(name, source.read(&mut tool)?);
        }
        let variant = self.variant.to_string();
        Ok(Record {
            schema: RECORD_SCHEMA,
            spec: json!({ "schema": PROGRAM_SCHEMA, "program": self.words }),
            seed: None,
            tool,
            kernel: Kernel::running(),
            device: device.info(),
            unmet: Vec::new(),
            results: vec![PointResult {
                variant,
                point: None,
                knobs,
                queue,
                duration_ns: None,
                blocked: None,
                jobs: None,
                classes,
            }],
        })
    }
}
