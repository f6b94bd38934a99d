// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady direct bind` and `unbind`: moves a card from the block layer to chario, and back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use steadyio_core::device_name;
use steadyio_direct::card::{Card, driver_dir};
use steadyio_direct::taking::{check_free, give, take};

use crate::exit::{Failure, Status};
use crate::output::{print, print_done};

const SYS: &str = "/sys";

/// Move a card from the block layer to chario, as /dev/chardiskN
///
/// The block devices of the card disappear. The command fails if any of them is mounted, used as
/// swap, or part of another device.
#[derive(clap::Args)]
pub struct BindArguments {
    /// Card (mmc0:0001), or one of its block devices (mmcblk0)
    #[arg(value_name = "CARD", value_parser = NonEmptyStringValueParser::new())]
    card: String,
    /// Limit access to this region: START+LENGTH, or START+LENGTHro for read-only access
    /// (repeatable)
    #[arg(long, value_name = "REGION", value_parser = region)]
    region: Vec<String>,
    /// Only print the users of the card, and change nothing
    #[arg(long)]
    check: bool,
}

/// Return a card to the block layer
#[derive(clap::Args)]
pub struct UnbindArguments {
    /// Card (mmc0:0001), or its chardiskN
    #[arg(value_name = "CARD", value_parser = NonEmptyStringValueParser::new())]
    card: String,
}

/// The region in the driver's form. The driver checks the numbers against the card.
fn region(text: &str) -> Result<String, String> {
    // Without a sign, which a number may have, too.
    let part = |text: &str| {
        let digits = text.strip_suffix(['K', 'M', 'G']).unwrap_or(text);
        digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u64>().is_ok()
    };
    match text.strip_suffix("ro").unwrap_or(text).split_once('+') {
        Some((start, length)) if part(start) && part(length) => Ok(text.into()),
        _ => Err("must be START+LENGTH in bytes, or with K, M, G, such as 1M+64M or 0+1Mro".into()),
    }
}

pub fn bind(arguments: &BindArguments) -> Result<Status, Failure> {
    let sys = Path::new(SYS);
    let card = find(&arguments.card).map_err(Failure::with(Status::Usage))?;
    check_free(sys, Path::new("/proc"), &card).map_err(Failure::with(Status::Usage))?;
    if arguments.check {
        let devices = card.devices.join(", ");
        print(&format!("{}: nothing uses it; these would vanish: {devices}\n", card.name))?;
        return Ok(Status::Done);
    }
    driver_dir(sys).map_err(Failure::with(Status::Usage))?;
    let node = take(sys, &card, &arguments.region).map_err(Failure::with(Status::Failed))?;
    print_done(&format!("{}\n", node.display()));
    Ok(Status::Done)
}

pub fn unbind(arguments: &UnbindArguments) -> Result<Status, Failure> {
    let card = card_of_node(&arguments.card).map_err(Failure::with(Status::Usage))?;
    let card = find(&card).map_err(Failure::with(Status::Usage))?;
    driver_dir(Path::new(SYS)).map_err(Failure::with(Status::Usage))?;
    give(Path::new(SYS), &card.name).map_err(Failure::with(Status::Failed))?;
    let card = find(&card.name).map_err(Failure::with(Status::Failed))?;
    print_done(&format!("{}\n", card.devices.join(" ")));
    Ok(Status::Done)
}

/// Finds a card by its own name, or by any name of one of its block devices.
fn find(given: &str) -> anyhow::Result<Card> {
    let found = device_name::find(Path::new(SYS), Path::new(given));
    let name = found.map_or_else(|_| given.into(), |found| found.name);
    Card::find(Path::new(SYS), &name).with_context(|| given.to_string())
}

/// The card of `/dev/chardiskN`; another name is returned unchanged.
fn card_of_node(name: &str) -> anyhow::Result<String> {
    let node = Path::new(name).canonicalize().unwrap_or_else(|_| name.into());
    let short = node.file_name().unwrap_or_default().to_string_lossy();
    if !short.starts_with("chardisk") {
        return Ok(name.into());
    }
    let link = PathBuf::from(format!("{SYS}/class/chardisk/{short}/device"));
    let card = fs::canonicalize(&link).with_context(|| format!("{name}: no such device"))?;
    Ok(card.file_name().unwrap_or_default().to_string_lossy().into_owned())
}
