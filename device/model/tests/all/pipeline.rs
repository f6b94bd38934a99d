// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pipeline model: the formulas of the e.MMC analysis paper, and what a spans file may hold.

use std::fs;

use steadyio_model::pipeline::{Queue, Stages};
use steadyio_model::report::{Overlap, predict};
use steadyio_model::spans::{self, Op, Span};

const GOOD: &str = r#"
schema = "steadyio.spans/1"
name = "example"
[[spans]]
name = "4 KiB reads"
op = "read"
size_bytes = 4096
count = 1000
submission_us = 40.25
block_us = 20
device_us = 180
post_us = 35.5
measured_mib_s = 13
detail = { kernel = "6.12" }
"#;

fn experiment(name: &str) -> String {
    fs::read_to_string(format!("{}/../../experiments/spans/{name}", env!("CARGO_MANIFEST_DIR")))
        .unwrap()
}

fn stages(pre_ns: u64, device_ns: u64, post_ns: u64) -> Stages {
    Stages { pre_ns, device_ns, post_ns }
}

fn queue(requests: u64, depth: u64) -> Queue {
    Queue::new(requests, depth).unwrap()
}

fn refused(text: &str) -> String {
    spans::parse(text).unwrap_err().to_string()
}

#[test]
fn n_requests_take_what_the_formulas_of_s5_say() {
    // Figure 9: (N + 2) x D.
    assert_eq!(stages(7, 7, 7).many_cores_queue_ns(queue(32, 32)), (32 + 2) * 7);
    // Figure 11, with the spans of Table 3: Pre_D x N + T_D + Pst_D.
    let read = stages(737_000, 524_000, 383_000);
    assert_eq!(read.many_cores_queue_ns(queue(32, 32)), 737_000 * 32 + 524_000 + 383_000);
    // Figure 10: N requests of Pre + Pst, and the device time that nothing overlaps.
    assert_eq!(stages(9, 2, 4).one_core_queue_ns(queue(1, 32)), 9 + 2 + 4);
    assert_eq!(stages(9, 2, 4).one_core_queue_ns(queue(10, 32)), 10 * (9 + 4));
    // A device slower than all software: it never stops between the first and the last.
    assert_eq!(stages(2, 50, 3).one_core_queue_ns(queue(10, 32)), 2 + 10 * 50 + 3);
}

#[test]
fn three_requests_under_way_are_always_enough_for_three_stages() {
    assert_eq!(stages(5, 5, 5).depth_enough(), 3);
    assert_eq!(stages(2, 9, 2).depth_enough(), 2);
    assert_eq!(stages(0, 9, 0).depth_enough(), 1);
    assert_eq!(stages(5, 5, 5).many_cores_queue_ns(queue(9, 3)), (9 + 2) * 5);
    assert_eq!(stages(5, 5, 5).many_cores_queue_ns(queue(9, 2)), 4 * 15 + 15);
}

#[test]
fn spans_to_halve_come_in_the_order_of_what_they_bring_to_whom() {
    let file = spans::parse(&experiment("s5.toml")).unwrap();
    let order = |rank| {
        let prediction = predict(&file.entries[4], queue(32, 32), rank);
        prediction.halved.iter().map(|halved| halved.span).collect::<Vec<_>>()
    };
    assert_eq!(order(Overlap::SingleThread), [Span::Pre, Span::Device, Span::Post]);
    assert_eq!(order(Overlap::OneCore), [Span::Pre, Span::Post, Span::Device]);
    let halved = predict(&file.entries[4], queue(1, 1), Overlap::ManyCores).halved;
    let gains = halved.iter().map(|halved| halved.many_cores.gain_percent.unwrap());
    // Halving the longest span of 737 us leaves 524 us as the longest.
    assert_eq!(gains.collect::<Vec<_>>(), [100.0 * 213.0 / 524.0, 0.0, 0.0]);
}

#[test]
fn what_takes_no_time_has_no_limit() {
    let no_software = GOOD
        .replace("submission_us = 40.25\nblock_us = 20", "pre_us = 0")
        .replace("post_us = 35.5", "post_us = 0");
    let file = spans::parse(&no_software).unwrap();
    let limits = predict(&file.entries[0], queue(4, 4), Overlap::OneCore).limits_mib_s;
    assert_eq!(limits.no_device, None);
    assert_eq!(limits.single_thread, Some(4096.0 / 1_048_576.0 / 180e-6));
}

#[test]
fn a_spans_file_is_read_as_toml_and_as_json() {
    let toml = spans::parse(GOOD).unwrap();
    let entry = &toml.entries[0];
    assert_eq!((entry.op, entry.count, entry.size_bytes), (Some(Op::Read), Some(1000), 4096));
    let spans: Vec<_> = entry.spans.iter().collect();
    let expected = [
        (Span::Submission, 40_250),
        (Span::Block, 20_000),
        (Span::Device, 180_000),
        (Span::Post, 35_500),
    ];
    assert_eq!(spans, expected);
    assert_eq!(entry.spans.stages(), stages(60_250, 180_000, 35_500));
    let value: toml::Value = toml::from_str(GOOD).unwrap();
    assert_eq!(spans::parse(&serde_json::to_string_pretty(&value).unwrap()).unwrap(), toml);
}

#[test]
fn a_wrong_spans_file_is_refused_with_key_value_and_range() {
    for (from, to, says) in [
        ("device_us = 180", "device_us = -1", "device_us = -1: must be 0 to 60000000"),
        ("device_us = 180", "device_us = inf", "device_us = inf: must be 0 to 60000000"),
        ("device_us = 180", "device_us = \"x\"", "line 11"),
        ("device_us = 180", "", "device_us is missing"),
        ("block_us = 20", "", "both submission_us and block_us"),
        ("block_us = 20", "block_us = 20\npre_us = 60", "either pre_us or those two"),
        ("size_bytes = 4096", "size_bytes = 0", "size_bytes = 0: must be 1 to 1073741824"),
        ("size_bytes = 4096", "", "missing field `size_bytes`"),
        ("op = \"read\"", "op = \"flush\"", "unknown variant `flush`, expected `read` or `write`"),
        ("count = 1000", "count = 0", "count = 0: must be 1 or more"),
        ("measured_mib_s = 13", "measured_mib_s = -2", "measured_mib_s = -2: must be 0 to 1000000"),
        ("post_us", "post_ms", "unknown field `post_ms`"),
        ("spans/1", "spans/2", "must be \"steadyio.spans/1\""),
        ("\"4 KiB reads\"", "\" \"", "name = \" \": must be 1 to 64 characters"),
    ] {
        assert!(GOOD.contains(from));
        let said = refused(&GOOD.replacen(from, to, 1));
        assert!(said.contains(says), "{says} is not in: {said}");
    }
    let entry = GOOD.split_once("[[spans]]").unwrap().1;
    assert!(refused(&format!("{GOOD}[[spans]]{entry}")).contains("spans 2 (4 KiB reads): name"));
    assert!(
        refused(&format!("spans = []\n{}", &GOOD[..GOOD.len() - entry.len() - 9]))
            .contains("[[spans]] is missing")
    );
}

#[test]
fn json_of_another_schema_is_refused_by_its_name() {
    let said = refused("{\"schema\": \"steadyio.recording/1\", \"tool\": {}}");
    let says =
        "schema = \"steadyio.recording/1\": must be \"steadyio.spans/1\", or \"steadyio.trace/1\"";
    assert!(said.starts_with(says), "{said}");
}

#[test]
fn a_wrong_json_value_is_refused_with_its_path() {
    let value: toml::Value = toml::from_str(GOOD).unwrap();
    let json = serde_json::to_string(&value).unwrap();
    let said = refused(&json.replace("\"post_us\":35.5", "\"post_us\":\"x\""));
    assert!(said.contains("spans[0].post_us") && said.contains("expected f64"), "{said}");
    assert!(refused(&json[..json.len() - 2]).contains("EOF"));
    assert!(refused(&format!("{json} {{")).contains("trailing"));
}

#[test]
fn a_queue_is_refused_with_key_value_and_range() {
    let said = |requests, depth| Queue::new(requests, depth).unwrap_err().to_string();
    assert_eq!(said(0, 1), "requests = 0: must be 1 to 1000000");
    assert_eq!(said(1, 65_537), "depth = 65537: must be 1 to 65536");
}
