// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `steady probe` refuses before it touches anything; what it finds is tested in the lab.

use std::process::Command;

#[test]
fn what_is_no_block_device_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_steady"))
        .args(["probe", file.path().to_str().unwrap(), "--quick"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a regular file"), "{said}");
}
