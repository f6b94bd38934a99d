// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a card says of itself: attributes of an SD card or eMMC in sysfs.
//!
//! Source of the fields: SD Physical Layer Specification, SD status register; JESD84-B51,
//! `DEVICE_LIFE_TIME_EST` and `PRE_EOL_INFO`.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// MB/s of the speed classes 0 to 4 in the register, which is also their name.
const SPEED_CLASSES: [u64; 5] = [0, 2, 4, 6, 10];
/// KiB of an allocation unit, by its number in the register; 0: not defined.
const UNITS_KIB: [u64; 16] = [
    0, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 12_288, 16_384, 24_576, 32_768,
    65_536,
];
/// Bytes of the SD status register that have these fields.
const SPEED_CLASS: usize = 8;
const UNIT: usize = 10;
const UHS_GRADE: usize = 14;
const VIDEO_CLASS: usize = 15;
const APP_CLASS: usize = 21;
const KIB_PER_MB: f64 = 1e6 / 1_024.0;

/// `None`: the card does not say it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Claims {
    /// "SD" or "MMC".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Month and year in which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Sequential writes, in MB/s: of the speed class, the UHS grade and the video class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_class: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uhs_grade: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_class: Option<u64>,
    /// 1 or 2: A1, A2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_class: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_unit_kib: Option<u64>,
    /// Of an eMMC, in tenths: of its two kinds of cells so much is used, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_time: Option<String>,
    /// Of an eMMC: 1 normal, 2 warning, 3 urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_eol_info: Option<String>,
}

impl Claims {
    /// `disk`: its folder in sysfs. `None`: it is no card.
    pub fn read(disk: &Path) -> Option<Claims> {
        let read = |name: &str| {
            let text = fs::read_to_string(disk.join("device").join(name)).ok()?;
            Some(text.trim().to_string()).filter(|text| !text.is_empty())
        };
        let kind = read("type").filter(|kind| ["SD", "MMC"].contains(&kind.as_str()))?;
        let status = read("ssr").and_then(|text| bytes(&text)).unwrap_or_default();
        let field = |at: usize| status.get(at).copied().map(usize::from);
        let above_0 = |number: u64| (number > 0).then_some(number);
        let listed = |list: &[u64], at: usize| list.get(at).copied().and_then(above_0);
        Some(Claims {
            kind: Some(kind),
            date: read("date"),
            speed_class: field(SPEED_CLASS).and_then(|class| listed(&SPEED_CLASSES, class)),
            uhs_grade: field(UHS_GRADE).and_then(|byte| above_0(byte as u64 >> 4)),
            video_class: field(VIDEO_CLASS).and_then(|class| above_0(class as u64)),
            app_class: field(APP_CLASS).and_then(|byte| above_0(byte as u64 & 15)),
            allocation_unit_kib: field(UNIT).and_then(|byte| listed(&UNITS_KIB, byte >> 4)),
            life_time: read("life_time"),
            pre_eol_info: read("pre_eol_info"),
        })
    }

    /// What sequential writes reach at least, as the card says; `None`: it does not.
    pub fn written_kib_s(&self) -> Option<u64> {
        let grade = self.uhs_grade.map(|grade| grade * 10);
        let mb_s = [self.speed_class, grade, self.video_class].into_iter().flatten().max()?;
        Some((mb_s as f64 * KIB_PER_MB) as u64)
    }

    /// In words, one claim each.
    pub fn words(&self) -> Vec<String> {
        let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}{value}"));
        let text = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{name}{value}"))
        };
        let unit = self.allocation_unit_kib.map(|kib| format!("allocation unit {kib} KiB"));
        let all = [
            text("", &self.kind),
            text("made ", &self.date),
            number("class ", self.speed_class),
            number("U", self.uhs_grade),
            number("V", self.video_class),
            number("A", self.app_class),
            unit,
            text("life time ", &self.life_time),
            text("end of life ", &self.pre_eol_info),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Of hexadecimal digits; `None`: there are others.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
