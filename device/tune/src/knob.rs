// SPDX-License-Identifier: MIT OR Apache-2.0
//! The knobs of k2 that can be chosen, with the values to choose from. `run` and `steady tune` use
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use steadyio_core::value::Value;

use crate::grid::Grid;

/// The limit of candidates of one search; each measurement takes minutes on slow devices.
pub const CANDIDATES_MAX: usize = 1_024;

/// A knob of k2 that increases both throughput and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// The name in `iosched/`.
    pub name: &'static str,
    /// The unit, for users.
    pub unit: &'static str,
    /// The largest value that k2 accepts; the lowest is 1.
    pub max: i64,
    /// The default values: 15, so that at most 4 of them are measured.
    values: [i64; 15],
    /// Whether 0 turns it off, so that 0 is not a value of a row.
    off_is_0: bool,
}

/// The supported knobs.
pub const KNOBS: [Knob; 3] = [
    Knob {
        name: "inflight_max",
        unit: "requests",
        max: 1_024,
        values: [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64],
        off_is_0: false,
    },
    Knob {
        name: "split_kib",
        unit: "KiB",
        max: 1 << 20,
        values: [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1_024],
        off_is_0: true,
    },
    Knob {
        name: "rt_block_us",
        unit: "us",
        max: 1_000_000,
        values: [
            100, 150, 200, 300, 440, 600, 800, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000,
            20_000,
        ],
        off_is_0: true,
    },
];

/// A knob with the values to choose from, rising; a single one is fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub knob: Knob,
    pub values: Vec<i64>,
}

impl FromStr for Choice {
    type Err = String;

    /// Reads `NAME` or `NAME=VALUE,VALUE`.
    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, list) = match text.split_once('=') {
            Some((name, list)) => (name, Some(list)),
            None => (text, None),
        };
        let knob = KNOBS.into_iter().find(|knob| knob.name == name).ok_or_else(|| {
            let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
            format!("{name}: must be one of {}", names.join(", "))
        })?;
        let mut values = match list {
            Some(list) => list
                .split(',')
                .map(|word| knob.value(word))
                .collect::<Result<Vec<i64>, String>>()?,
            None => knob.values.to_vec(),
        };
        values.sort_unstable();
        if let Some(twice) = values.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("{name}: {} is given twice", twice[0]));
        }
        if values.len() > 1 && values[0] == 0 {
            return Err(format!("{name}: 0 turns it off, and can only be given alone"));
        }
        Ok(Choice { knob, values })
    }
}

impl Knob {
    fn value(&self, word: &str) -> Result<i64, String> {
        let least = if self.off_is_0 { 0 } else { 1 };
        match word.trim().parse() {
            Ok(value) if (least..=self.max).contains(&value) => Ok(value),
            _ => Err(format!("{} = {word}: must be {least} to {}", self.name, self.max)),
        }
    }
}

/// All knobs to choose, and the grid of their values.
#[derive(Debug, Clone)]
pub struct Choices {
    pub all: Vec<Choice>,
    pub grid: Grid,
}

impl Choices {
    /// Makes the choices; `inflight_max` if none is given. The error is for users: the choices
    /// contradict each other.
    pub fn new(mut all: Vec<Choice>) -> Result<Choices, String> {
        if all.is_empty() {
            all = vec!["inflight_max".parse()?];
        }
        for (index, choice) in all.iter().enumerate() {
            if all[..index].iter().any(|other| other.knob == choice.knob) {
                return Err(format!("{} is given twice", choice.knob.name));
            }
        }
        let is_on = |name| all.iter().any(|c| c.knob.name == name && c.values != [0]);
        if is_on("split_kib") && is_on("rt_block_us") {
            return Err("with split_kib set, rt_block_us has no effect: choose one of them".into());
        }
        let grid = Grid::new(all.iter().map(|choice| choice.values.len()).collect());
        match grid.candidates() {
            0..2 => Err("there is only one candidate: give a knob more values".into()),
            many if many > CANDIDATES_MAX => {
                Err(format!("{many} candidates: must be {CANDIDATES_MAX} at most"))
            }
            _ => Ok(Choices { all, grid }),
        }
    }

    /// The knobs of a candidate.
    pub fn at(&self, candidate: usize) -> Setting {
        let values = self.grid.at(candidate);
        let one = |(choice, value): (&Choice, usize)| (choice.knob.name, choice.values[value]);
        Setting(self.all.iter().zip(values).map(one).collect())
    }
}

/// Values of knobs, in the given order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(pub Vec<(&'static str, i64)>);

impl Setting {
    /// The name of a workload's variant.
    pub fn variant_name(&self) -> String {
        let words: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}-{value}")).collect();
        words.join(".")
    }

    /// The knobs in the form of a workload, with the scheduler.
    pub fn knobs(&self) -> BTreeMap<String, Value> {
        let mut knobs: BTreeMap<String, Value> = self
            .0
            .iter()
            .map(|&(name, value)| (format!("iosched/{name}"), Value::Number(value)))
            .collect();
        knobs.insert("scheduler".into(), Value::Word("k2".into()));
        knobs
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&words.join(" "))
    }
}
