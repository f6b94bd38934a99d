// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --prepare`: makes the pool, or changes its number of segments, without recording.

use serde_json::json;
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::config::RecorderConfig;
use steadyio_recorder::pool::resize_pool;

use super::messages::{failure, note};
use crate::exit::Failure;

const SCHEMA: &str = "steadyio.recording-pool/1";

/// Makes or resizes the pool. Returns the text to print.
pub fn resize(config: &RecorderConfig, as_json: bool, stop: &Interrupt) -> Result<String, Failure> {
    let pool = resize_pool(config, &mut note, stop).map_err(|error| failure(error.into()))?;
    let (segments, segment_bytes) = (pool.count(), config.segment_bytes);
    let ((made, removed), recorded) = (pool.changed(), pool.recorded());
    Ok(if as_json {
        let pool = json!({
            "schema": SCHEMA,
            "segments": segments,
            "segment_bytes": segment_bytes,
            "made": made,
            "removed": removed,
            "recorded": recorded,
            "kept": pool.kept().1,
        });
        format!("{pool}\n")
    } else {
        format!(
            "{segments} segments of {segment_bytes} bytes, {recorded} with records; {made} made, \
             {removed} removed\n"
        )
    })
}
