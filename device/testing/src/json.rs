// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON that a program printed, checked against its published schema.

use std::process::Output;

use serde_json::Value;

/// The JSON on standard output, checked against the text of a schema.
///
/// # Panics
///
/// If it is no JSON, or breaks the schema.
pub fn valid_json(output: &Output, schema: &str) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let record: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let schema: Value = serde_json::from_str(schema).expect("schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("schema is a schema");
    let faults: Vec<String> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "record breaks the schema: {faults:?}");
    record
}
