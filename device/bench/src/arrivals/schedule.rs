// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the times at which a job's I/Os are due. They depend only on the job and its seed.
//! `load` uses them.

use std::time::Duration;

use steadyio_core::random::draw;

use crate::spec::workload::{Job, Pattern};

/// Separates these random numbers from those of the I/Os' offsets, which have the same seed.
const SEED_APART: u64 = 1 << 63;

/// The times of a job's arrivals since its start, rising, without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    pattern: Pattern,
    gap_ns: u64,
    gap_ns_min: u64,
    jitter_ns: u64,
    /// The lengths of a phase with arrivals and of one without.
    phases_ns: Option<(u64, u64)>,
    seed: u64,
    drawn: u64,
    /// The last time; for periodic arrivals, the one without jitter. Phases without arrivals do not
    /// count.
    time_ns: u64,
}

impl Schedule {
    /// The schedule; None for a job without arrivals.
    pub fn new(job: &Job, seed: u64) -> Option<Schedule> {
        let ns = |us: Option<u64>| us.unwrap_or_default() * 1_000;
        Some(Schedule {
            pattern: job.arrivals?,
            gap_ns: ns(job.gap_us),
            gap_ns_min: ns(job.gap_us_min),
            jitter_ns: ns(job.jitter_us),
            phases_ns: job.on_ms.zip(job.off_ms).map(|(on, off)| (on * 1_000_000, off * 1_000_000)),
            seed: seed ^ SEED_APART,
            drawn: 0,
            time_ns: 0,
        })
    }

    /// A random number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        (draw(self.seed, self.drawn - 1) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random time with this mean. It does not use std's logarithm, whose last digit differs
    /// between processors.
    fn exponential_ns(&mut self, mean_ns: u64) -> u64 {
        (-libm::log(1.0 - self.uniform()) * mean_ns as f64) as u64
    }

    fn next_ns(&mut self) -> u64 {
        match self.pattern {
            Pattern::Periodic => {
                self.time_ns += self.gap_ns;
                let spread_ns = (self.uniform() * (2 * self.jitter_ns) as f64) as u64;
                return self.time_ns - self.jitter_ns + spread_ns;
            }
            Pattern::Sporadic => {
                self.time_ns += self.gap_ns_min;
                self.time_ns += self.exponential_ns(self.gap_ns - self.gap_ns_min);
            }
            Pattern::Poisson => self.time_ns += self.exponential_ns(self.gap_ns),
        }
        self.time_ns
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next_ns = self.next_ns();
        let off_ns = self.phases_ns.map_or(0, |(on_ns, off_ns)| next_ns / on_ns * off_ns);
        Some(Duration::from_nanos(next_ns + off_ns))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spec::expand::{Selection, Spec};

    fn job(keys: &str) -> Job {
        let text = format!(
            "schema = \"steadyio.workload/1\"\nname = \"a\"\nseed = 1\n[length]\nios = 1\n\
             [[variant]]\nname = \"v\"\n[[job]]\nname = \"rt\"\nclass = \"rt\"\n\
             op = \"randread\"\nbs_kib = 4\n{keys}"
        );
        let plan = Spec::parse(&text).unwrap().plan(&Selection::default()).unwrap();
        plan[0].groups[0].points[0].jobs[0].clone()
    }

    fn times_us(keys: &str, count: usize) -> Vec<u64> {
        let schedule = Schedule::new(&job(keys), 7).unwrap();
        schedule.take(count).map(|time| time.as_nanos() as u64 / 1_000).collect()
    }

    fn gaps_us(times_us: &[u64]) -> Vec<u64> {
        times_us.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn mean(values: &[u64]) -> f64 {
        values.iter().sum::<u64>() as f64 / values.len() as f64
    }

    #[test]
    fn periodic_arrivals_do_not_drift() {
        let times = times_us("arrivals = \"periodic\"\ngap_us = 10_000\njitter_us = 200", 10_000);
        let off: Vec<i64> =
            times.iter().zip(1..).map(|(&time, turn)| time as i64 - turn * 10_000).collect();
        assert!(off.iter().all(|off| (-200..=200).contains(off)));
        assert!(off.iter().any(|&off| off < -190) && off.iter().any(|&off| off > 190));
        let even = times_us("arrivals = \"periodic\"\ngap_us = 10_000", 3);
        assert_eq!(even, [10_000, 20_000, 30_000]);
    }

    #[test]
    fn sporadic_arrivals_keep_their_distance_and_their_mean() {
        let keys = "arrivals = \"sporadic\"\ngap_us = 10_000\ngap_us_min = 5_000";
        let gaps = gaps_us(&times_us(keys, 10_000));
        assert!(*gaps.iter().min().unwrap() >= 4_999, "times are cut to us");
        assert!((mean(&gaps) - 10_000.0).abs() < 200.0);
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps() {
        let gaps = gaps_us(&times_us("arrivals = \"poisson\"\ngap_us = 10_000", 20_000));
        assert!((mean(&gaps) - 10_000.0).abs() < 200.0);
        let longer = |us| gaps.iter().filter(|&&gap| gap > us).count() as f64 / 20_000.0;
        // exp(-1) and exp(-3).
        assert!((longer(10_000) - 0.368).abs() < 0.01 && (longer(30_000) - 0.050).abs() < 0.005);
    }

    #[test]
    fn phases_without_arrivals_lie_between_phases_with_them() {
        let keys = "arrivals = \"periodic\"\ngap_us = 10_000\non_ms = 1_000\noff_ms = 2_000";
        let times = times_us(keys, 1_000);
        assert!(times.iter().all(|time| time % 3_000_000 < 1_000_000));
        let gaps = gaps_us(&times);
        assert_eq!(gaps.iter().filter(|&&gap| gap == 2_010_000).count(), 10);
        assert_eq!(gaps.iter().filter(|&&gap| gap == 10_000).count(), 989);
    }

    #[test]
    fn the_seed_decides() {
        let job = job("arrivals = \"poisson\"\ngap_us = 10_000");
        let first = |seed| Schedule::new(&job, seed).unwrap().next().unwrap();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
