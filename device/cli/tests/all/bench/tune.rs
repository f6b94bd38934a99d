// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady tune` on a device of a kernel that has no k2, and with workloads that do not suit.

use std::fs;
use std::process::Command;

use crate::common::{loop_device, stderr};

const LOAD: &str = r#"
schema = "steadyio.workload/1"
name = "load"
seed = 1
length = { ios = 10 }
variant = [{ name = "as-is" }]

[[job]]
name = "one"
class = "rt"
op = "randread"
bs_kib = 4
"#;

#[test]
fn tune_refuses_a_device_without_k2_and_a_load_without_real_time() {
    let Some(disk) = loop_device() else { return };
    let sweep = format!("{LOAD}[sweep]\nkey = \"one.bs_kib\"\nvalues = [4, 8]\n");
    for (load, says) in [
        (LOAD.to_string(), "no scheduler k2, offered: "),
        (LOAD.replace("\"rt\"", "\"bg\""), "no job of class \"rt\""),
        (sweep, "choose one load with --point: 4, 8"),
    ] {
        let spec = disk.dir.path().join("load.toml");
        fs::write(&spec, load).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
        let output =
            command.args(["tune", "--tail-max=50%", &disk.node]).arg(spec).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
