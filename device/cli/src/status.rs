// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady status`: prints the state of a running recording.

use std::path::PathBuf;

use serde_json::{Value, json};
use steadyio_recorder::control::client::ask;

use crate::exit::{Failure, Status};
use crate::output::print;
use crate::table;

const HELP: &str = "Exit status: 0 the recorder answered; 1 no answer; 2 usage error.";

/// Show the state of a running recording, and record counts for each topic
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Control socket of the recorder, see steady record --control
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
    /// Print JSON instead of text (the recorder's answer, docs/spec/status-1.schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let answer = ask(&arguments.control, &json!({ "do": "status" }));
    let status = answer.map_err(Failure::with(Status::Failed))?;
    print(&if arguments.json { format!("{status:#}\n") } else { render(&status) })?;
    Ok(Status::Done)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn render(status: &Value) -> String {
    let text = |key: &str| status[key].as_str().unwrap_or("unknown").to_string();
    let elapsed_ns = number(status, "/now_ns").saturating_sub(number(status, "/started_ns"));
    let mut lines = format!(
        "{} for {:.1} s; durable after {:.0} ms (max {:.0}); {} rotations\n",
        text("state"),
        seconds(elapsed_ns),
        number(status, "/writer/durable_lag_ns") as f64 / 1e6,
        number(status, "/writer/durable_lag_ns_max") as f64 / 1e6,
        number(status, "/writer/rotations"),
    );
    if let Some(waiting_ns) = status["waiting_ns"].as_u64() {
        lines += &format!("the device has failed for {:.1} s\n", seconds(waiting_ns));
    }
    if status["trouble"].is_string() {
        lines += &format!("trouble: {}\n", text("trouble"));
    }
    let incidents = number(status, "/incidents/count");
    if incidents > 0 {
        let kept = number(status, "/incidents/kept_segments");
        let all = number(status, "/config/segments");
        lines += &format!("incidents: {incidents}; they keep {kept} of {all} segments\n");
    }
    lines + &table::align(&rows(status), &[0])
}

fn rows(status: &Value) -> Vec<[String; 5]> {
    let row = |topic: &str, account: &Value| {
        let lost = number(account, "/lost_ring_full/records")
            + number(account, "/lost_in_writing/records")
            + number(account, "/lost_ram_full/records");
        let of = |what: &str| number(account, &format!("/{what}/records")).to_string();
        [topic.into(), of("received"), of("buffered"), of("durable"), lost.to_string()]
    };
    let mut rows = vec![["topic", "received", "buffered", "durable", "lost"].map(String::from)];
    for channel in status["channels"].as_array().into_iter().flatten() {
        rows.push(row(channel["topic"].as_str().unwrap_or("-"), &channel["account"]));
    }
    rows.push(row("total", &status["total"]));
    rows
}
