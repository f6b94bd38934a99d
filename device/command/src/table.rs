// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints tables for users. All commands use it.

use steadyio_bench::record::{ClassResult, Record};

const HEAD: [&str; 9] =
    ["variant", "point", "class", "p50 us", "p99 us", "p99.9 us", "max us", "I/Os", "MiB/s"];
/// The text columns. The others have numbers, aligned to the right.
const WORDS: [usize; 2] = [0, 2];

fn us(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1_000.0))
}

fn row(variant: &str, point: &str, class: &str, result: &ClassResult) -> [String; 9] {
    let latency = &result.latency_ns;
    [
        variant.into(),
        point.into(),
        class.into(),
        us(latency.p50),
        us(latency.p99),
        us(latency.p999),
        us(latency.max),
        result.count.to_string(),
        result.mib_s.map_or("-".into(), |mib_s| format!("{mib_s:.2}")),
    ]
}

/// The table of a record, with a line per variant, point and class.
pub fn render(record: &Record) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    for result in &record.results {
        let point = result.point.as_ref().map_or("-".into(), ToString::to_string);
        // The sum differs only if there are two classes.
        let show_total = result.classes.len() > 2;
        for class in ["rt", "bg", "total"].into_iter().filter(|c| *c != "total" || show_total) {
            if let Some(found) = result.classes.get(class) {
                rows.push(row(&result.variant, &point, class, found));
            }
        }
    }
    align(&rows, &WORDS)
}

/// Aligns columns: text to the left, numbers to the right.
pub fn align<R: AsRef<[String]>>(rows: &[R], words: &[usize]) -> String {
    let lengths = |row: &R| row.as_ref().iter().map(String::len).collect::<Vec<usize>>();
    let wider = |left: Vec<usize>, right: Vec<usize>| {
        left.into_iter().zip(right).map(|(left, right)| left.max(right)).collect()
    };
    let widths: Vec<usize> = rows.iter().map(lengths).reduce(wider).unwrap_or_default();
    let cell = |(column, text): (usize, &String)| {
        if words.contains(&column) {
            format!("{text:<0$}", widths[column])
        } else {
            format!("{text:>0$}", widths[column])
        }
    };
    let line = |row: &R| row.as_ref().iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_string() + "\n").collect()
}
