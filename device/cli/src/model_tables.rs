// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the tables of `steady model`.

use steadyio_model::pipeline::Queue;
use steadyio_model::report::{ASSUMED, Gain, Prediction};
use steadyio_model::spans::Span;

use crate::table::align;

/// All tables of the model's results.
pub fn predictions(predictions: &[Prediction], queue: Queue) -> String {
    let (requests, depth) = (queue.requests(), queue.depth());
    [
        section("Spans in us", &spans(predictions), &[0]),
        section(&format!("Limits in MiB/s, if {ASSUMED}"), &limits(predictions), &[0])
            + &exceeded(predictions),
        section(
            &format!("Time for {requests} requests, at most {depth} in flight"),
            &queues(predictions),
            &[0],
        ),
        section(
            &format!("Limits in MiB/s with one span halved, if {ASSUMED}"),
            &halved(predictions),
            &[0, 1],
        ),
    ]
    .join("\n")
}

fn section<const N: usize>(title: &str, rows: &[[String; N]], words: &[usize]) -> String {
    format!("{title}\n{}", align(rows, words))
}

fn spans(predictions: &[Prediction]) -> Vec<[String; 8]> {
    let head =
        ["", "submission", "block", "request-pre", "device", "request-post", "total", "software %"];
    let row = |prediction: &Prediction| {
        let find = |span| prediction.spans.iter().find(|time| time.span == span);
        let us = |span| find(span).map_or("-".into(), |time| format!("{:.1}", time.us));
        let of = |span| find(span).map_or(0.0, |time| time.us);
        let pre_us = of(Span::Submission) + of(Span::Block) + of(Span::Pre);
        [
            prediction.name.clone(),
            us(Span::Submission),
            us(Span::Block),
            format!("{pre_us:.1}"),
            us(Span::Device),
            us(Span::Post),
            format!("{:.1}", prediction.total_us),
            format!("{:.1}", prediction.software_percent),
        ]
    };
    rows(head, predictions.iter().map(row))
}

fn limits(predictions: &[Prediction]) -> Vec<[String; 7]> {
    let head = [
        "",
        "measured",
        "single thread",
        "no device time",
        "one core",
        "many cores",
        "many cores, no device time",
    ];
    let row = |prediction: &Prediction| {
        let limits = &prediction.limits_mib_s;
        [
            prediction.name.clone(),
            two(prediction.measured_mib_s),
            two(limits.single_thread),
            two(limits.no_device),
            two(limits.one_core),
            two(limits.many_cores),
            two(limits.many_cores_no_device),
        ]
    };
    rows(head, predictions.iter().map(row))
}

/// The measured speeds above the limit of many cores, which contradict the model's assumption.
fn exceeded(predictions: &[Prediction]) -> String {
    let line = |prediction: &Prediction| {
        let name = &prediction.name;
        format!("{name}: measured is above many cores: a stage serves several requests at a time\n")
    };
    predictions.iter().filter(|prediction| prediction.exceeds_limits).map(line).collect()
}

fn queues(predictions: &[Prediction]) -> Vec<[String; 6]> {
    let head = ["", "one core ms", "MiB/s", "many cores ms", "MiB/s", "depth enough"];
    let row = |prediction: &Prediction| {
        let queue = &prediction.queue;
        [
            prediction.name.clone(),
            ms(queue.one_core.us),
            two(queue.one_core.mib_s),
            ms(queue.many_cores.us),
            two(queue.many_cores.mib_s),
            queue.depth_enough.to_string(),
        ]
    };
    rows(head, predictions.iter().map(row))
}

fn halved(predictions: &[Prediction]) -> Vec<[String; 9]> {
    let head =
        ["", "span", "us", "single thread", "gain %", "one core", "gain %", "many cores", "gain %"];
    let mut all = Vec::new();
    for prediction in predictions {
        for halved in &prediction.halved {
            let [single, single_gain] = gain(halved.single_thread);
            let [one, one_gain] = gain(halved.one_core);
            let [many, many_gain] = gain(halved.many_cores);
            let (name, span) = (prediction.name.clone(), halved.span.title().into());
            let us = format!("{:.1}", halved.us);
            all.push([name, span, us, single, single_gain, one, one_gain, many, many_gain]);
        }
    }
    rows(head, all)
}

fn rows<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Vec<[String; N]> {
    [head.map(String::from)].into_iter().chain(rows).collect()
}

fn gain(gain: Gain) -> [String; 2] {
    [two(gain.mib_s), gain.gain_percent.map_or("-".into(), |percent| format!("{percent:.1}"))]
}

fn two(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

fn ms(us: f64) -> String {
    format!("{:.3}", us / 1_000.0)
}
