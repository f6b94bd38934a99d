// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses k2's knobs for a device and a load, from few measured points. `steady tune` calls it.
//!
//! More requests in flight, or larger pieces, give more throughput and a longer tail. The right
//! value depends on the device, the load, and the goal. Park and Lee state two objectives
//! ("Analysis of the K2 Scheduler for a Real-Time System with an SSD", Electronics 10, 2021): most
//! throughput with a bounded tail, and the shortest tail with a lower bound on throughput.
//!
//! In reading order, the modules that measure nothing: [`goal`] has the goal, [`grid`] the
//! candidates, [`search`] selects the next to measure and the best, [`confidence`] computes the
//! interval of a quantile. Then [`knob`] has the knobs with their values, `plan` the request and
//! its workload, [`run`] measures with `steadyio-bench`, and [`report`] is the result.

pub mod confidence;
pub mod goal;
pub mod grid;
pub mod knob;
mod plan;
pub mod report;
pub mod run;
pub mod search;
