// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares published values with the model's results for the published spans. `steady model`
//! prints the comparison.
//!
//! A printed value is the same if the model's value, rounded to as many decimals, is. Printed spans
//! are rounded, too, so a value may also follow from spans within that rounding. Any other
//! difference needs a reason.

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::report::{Overlap, gain, limits, software_percent};
use super::spans::{Entry, Span, Spans, SpansFile};

/// The only schema this version reads.
pub const PUBLISHED_SCHEMA: &str = "steadyio.published-model/1";

/// Published values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    schema: String,
    /// The largest difference of a printed span from the measured one.
    span_rounding_us: f64,
    value: Vec<Value>,
}

/// A published value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    r#where: String,
    spans: String,
    quantity: Quantity,
    printed: String,
    /// The upper end, if a range is printed.
    to: Option<String>,
    reason: Option<String>,
}

/// The quantity of a published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
// The names are the fields of report::Limits and Prediction, and halving the device span.
pub enum Quantity {
    SingleThreadMibS,
    NoDeviceMibS,
    OneCoreMibS,
    ManyCoresMibS,
    ManyCoresNoDeviceMibS,
    SoftwarePercent,
    DeviceHalvedMibS,
    DeviceHalvedGainPercent,
}

impl Quantity {
    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Quantity::SingleThreadMibS => "single thread MiB/s",
            Quantity::NoDeviceMibS => "no device time MiB/s",
            Quantity::OneCoreMibS => "one core MiB/s",
            Quantity::ManyCoresMibS => "many cores MiB/s",
            Quantity::ManyCoresNoDeviceMibS => "many cores, no device time MiB/s",
            Quantity::SoftwarePercent => "software %",
            Quantity::DeviceHalvedMibS => "device halved MiB/s",
            Quantity::DeviceHalvedGainPercent => "device halved gain %",
        }
    }

    fn of(self, size_bytes: u64, spans: &Spans) -> Option<f64> {
        let limits = limits(size_bytes, spans.stages());
        let halved = gain(size_bytes, spans, Span::Device, Overlap::SingleThread);
        match self {
            Quantity::SingleThreadMibS => limits.single_thread,
            Quantity::NoDeviceMibS => limits.no_device,
            Quantity::OneCoreMibS => limits.one_core,
            Quantity::ManyCoresMibS => limits.many_cores,
            Quantity::ManyCoresNoDeviceMibS => limits.many_cores_no_device,
            Quantity::SoftwarePercent => Some(software_percent(spans.stages())),
            Quantity::DeviceHalvedMibS => halved.mib_s,
            Quantity::DeviceHalvedGainPercent => halved.gain_percent,
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same to the last printed digit.
    Same,
    /// It follows from spans that round to the printed ones.
    WithinSpanRounding,
    /// It does not follow from the printed spans.
    Differs,
}

impl Verdict {
    /// The result in tables.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::WithinSpanRounding => "within span rounding",
            Verdict::Differs => "differs",
        }
    }
}

/// A published value and the model's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The table or section.
    pub r#where: String,
    /// The name of the entry.
    pub spans: String,
    pub quantity: Quantity,
    /// The printed value; a range as `LOW-HIGH`.
    pub printed: String,
    /// The model's value with all digits.
    pub ours: f64,
    /// The model's value, with as many decimals as printed.
    pub ours_rounded: String,
    /// The lowest and the highest value from spans that round to the printed ones, rounded
    /// likewise.
    pub possible: [String; 2],
    pub verdict: Verdict,
    /// The reason for the difference.
    pub reason: Option<String>,
}

impl Compared {
    /// Whether it differs and the file gives no reason.
    pub fn unexplained(&self) -> bool {
        self.verdict == Verdict::Differs && self.reason.is_none()
    }
}

/// Reads a file of published values.
pub fn parse(text: &str) -> Result<Published, ModelError> {
    let published: Published =
        toml::from_str(text).map_err(|error| ModelError(error.to_string()))?;
    let (schema, rounding_us) = (&published.schema, published.span_rounding_us);
    if schema != PUBLISHED_SCHEMA {
        return Err(ModelError(format!("schema = {schema:?}: must be \"{PUBLISHED_SCHEMA}\"")));
    }
    if !(0.0..=1_000.0).contains(&rounding_us) {
        return Err(ModelError(format!("span_rounding_us = {rounding_us}: must be 0 to 1000")));
    }
    Ok(published)
}

/// Compares each published value with the model's.
pub fn compare(published: &Published, file: &SpansFile) -> Result<Vec<Compared>, ModelError> {
    let one = |value: &Value| {
        let found = file.entries.iter().find(|entry| entry.name == value.spans);
        let entry = found.ok_or_else(|| {
            ModelError(format!("spans = {:?}: not a name in {}", value.spans, file.name))
        })?;
        compare_one(value, entry, published.span_rounding_us)
            .map_err(|ModelError(text)| ModelError(format!("spans = {:?}: {text}", value.spans)))
    };
    published.value.iter().map(one).collect()
}

fn compare_one(value: &Value, entry: &Entry, rounding_us: f64) -> Result<Compared, ModelError> {
    let decimals = count_decimals(&value.printed)?;
    let upper = value.to.as_ref().unwrap_or(&value.printed);
    if count_decimals(upper)? != decimals {
        return Err(ModelError(format!("to = {upper:?}: needs as many decimals as printed")));
    }
    let of = |spans: &Spans| value.quantity.of(entry.size_bytes, spans);
    let unlimited = || ModelError(format!("quantity {:?}: nothing limits it", value.quantity));
    let ours = of(&entry.spans).ok_or_else(unlimited)?;
    let round = |number: f64| format!("{number:.decimals$}");
    let (low, high) = corners(&entry.spans, rounding_us)
        .iter()
        .map(|corner| of(corner).unwrap_or(f64::INFINITY))
        .fold((ours, ours), |(low, high), number| (low.min(number), high.max(number)));
    let possible = [round(low), round(high)];
    let ours_rounded = round(ours);
    Ok(Compared {
        verdict: verdict([&value.printed, upper], &ours_rounded, &possible),
        r#where: value.r#where.clone(),
        spans: value.spans.clone(),
        quantity: value.quantity,
        printed: match &value.to {
            Some(to) => format!("{}-{to}", value.printed),
            None => value.printed.clone(),
        },
        ours,
        ours_rounded,
        possible,
        reason: value.reason.clone(),
    })
}

/// Compares numbers with the same number of decimals.
fn verdict(printed: [&str; 2], ours: &str, possible: &[String; 2]) -> Verdict {
    let [low, high] = printed.map(number);
    let overlaps = |from: &str, to: &str| number(from) <= high && low <= number(to);
    if overlaps(ours, ours) {
        Verdict::Same
    } else if overlaps(&possible[0], &possible[1]) {
        Verdict::WithinSpanRounding
    } else {
        Verdict::Differs
    }
}

/// All combinations of the shortest and the longest value of each span within its rounding. Every
/// quantity only rises or only falls with each span, so its extremes are among them.
fn corners(spans: &Spans, rounding_us: f64) -> Vec<Spans> {
    let rounding_ns = (rounding_us * 1_000.0).round() as u64;
    let combinations = 0..1u32 << spans.iter().count();
    let corner = |combination: u32| {
        let mut bits = combination;
        spans.map(|_, ns| {
            let longer = bits & 1 == 1;
            bits >>= 1;
            if longer { ns + rounding_ns } else { ns.saturating_sub(rounding_ns) }
        })
    };
    combinations.map(corner).collect()
}

fn count_decimals(printed: &str) -> Result<usize, ModelError> {
    let (whole, fraction) = printed.split_once('.').unwrap_or((printed, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(fraction) && printed.len() <= 12 {
        Ok(printed.split_once('.').map_or(0, |(_, fraction)| fraction.len()))
    } else {
        Err(ModelError(format!(
            "printed = {printed:?}: must be a decimal number such as \"38.01\""
        )))
    }
}

/// Parses a number that was checked, or made here.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
