// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves a card from the block layer to chario, and back. `steady direct bind` and the bench call
//! it.
//!
//! The kernel also releases a card whose file systems are mounted, and they then fail. Therefore
//! this checks the users of the card first, and the driver takes the card in one step that fails if
//! another user has come since.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use steadyio_core::diagnostic;

use crate::card::{Card, InUse, driver_dir, node_of};

const DRIVER: &str = "chario";

/// The reason why a card was not taken, or not returned.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error("{0}: already bound to {DRIVER}")]
    Already(String),
    /// Another driver than mmcblk has the card.
    #[error("{card}: bound to driver {driver}, not to the block layer")]
    Driver { card: String, driver: String },
    #[error("{card} is in use, and would be lost: {}", told(uses))]
    InUse { card: String, uses: Vec<InUse> },
    /// The module is not loaded, or sysfs cannot be read.
    #[error(transparent)]
    Sysfs(#[from] io::Error),
    #[error("{order}: {}", rejected(file, source))]
    Refused { order: String, file: PathBuf, source: io::Error },
    #[error("{0}: taken, but has no chardisk")]
    NoNode(String),
}

fn rejected(file: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{} needs root", file.display()),
        _ => format!("rejected by the driver ({}; reason in the kernel log)", file.display()),
    }
}

fn told(uses: &[InUse]) -> String {
    let told: Vec<String> =
        uses.iter().map(|one| format!("{} is {}", one.device, one.how)).collect();
    told.join("; ")
}

/// Fails if the block layer does not have the card, or anything uses it.
pub fn check_free(sys: &Path, proc: &Path, card: &Card) -> Result<(), TakeError> {
    let name = card.name.clone();
    match card.driver.as_deref() {
        Some("mmcblk") | None => {}
        Some(DRIVER) => return Err(TakeError::Already(name)),
        Some(driver) => return Err(TakeError::Driver { card: name, driver: driver.into() }),
    }
    let uses = card.in_use(sys, proc)?;
    if uses.is_empty() { Ok(()) } else { Err(TakeError::InUse { card: name, uses }) }
}

/// Takes the card, and returns its `/dev/chardiskN`. `regions` are the only accessible parts, as
/// START+LENGTH; none for the whole card.
pub fn take(sys: &Path, card: &Card, regions: &[String]) -> Result<PathBuf, TakeError> {
    let regions: String = regions.iter().map(|region| format!("@{region}")).collect();
    order(&driver_dir(sys)?.join("take"), &format!("{}{regions}", card.name))?;
    node_of(sys, &card.name).ok_or_else(|| TakeError::NoNode(card.name.clone()))
}

/// Returns the card to the block layer.
pub fn give(sys: &Path, card: &str) -> Result<(), TakeError> {
    order(&driver_dir(sys)?.join("give"), card)
}

fn order(file: &Path, order: &str) -> Result<(), TakeError> {
    fs::write(file, order).map_err(|source| TakeError::Refused {
        order: order.into(),
        file: file.into(),
        source,
    })
}

/// A taken card. Dropping this returns it.
#[derive(Debug)]
pub struct TakenCard {
    sys: PathBuf,
    card: String,
    /// `/dev/chardiskN`.
    pub node: PathBuf,
    is_given: bool,
}

impl TakenCard {
    /// Takes the card with this block device, unless anything uses it.
    pub fn of_disk(sys: &Path, proc: &Path, disk: &str) -> Result<TakenCard, TakeError> {
        let card = Card::find(sys, disk)?;
        check_free(sys, proc, &card)?;
        let node = take(sys, &card, &[])?;
        Ok(TakenCard { sys: sys.into(), card: card.name, node, is_given: false })
    }

    /// The directory with the attributes of its `/dev/chardiskN`.
    pub fn sysfs(&self) -> PathBuf {
        self.sys.join("class/chardisk").join(self.node.file_name().unwrap_or_default())
    }

    pub fn give(mut self) -> Result<(), TakeError> {
        self.is_given = true;
        give(&self.sys, &self.card)
    }
}

impl Drop for TakenCard {
    fn drop(&mut self) {
        if self.is_given {
            return;
        }
        if let Err(error) = give(&self.sys, &self.card) {
            diagnostic!("steady: {error}");
        }
    }
}
