// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers families of metrics from computed values; an empty family is left out. `metrics` uses
//! it.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

pub type Labels = Vec<(&'static str, String)>;
/// The upper bound and the count of each single bucket.
pub type Buckets = Vec<(f64, u64)>;

pub struct Families<'a>(pub DescriptorEncoder<'a>);

impl Families<'_> {
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        self.each(name, help, unit, values, ConstCounter::new)
    }

    pub fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        self.each(name, help, unit, values, ConstGauge::new)
    }

    fn each<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels, f64)>,
        metric: fn(f64) -> M,
    ) -> fmt::Result {
        let mut values =
            values.into_iter().map(|(labels, value)| (labels, metric(value))).peekable();
        let Some((_, first)) = values.peek() else { return Ok(()) };
        let kind = first.metric_type();
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, metric) in values {
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A histogram from labels, sum, count and buckets.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        values: impl IntoIterator<Item = (Labels, f64, u64, Buckets)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let mut family =
            self.0.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
        for (labels, sum, count, buckets) in values {
            let mut encoder = family.encode_family(&labels)?;
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
