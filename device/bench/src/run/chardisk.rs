// SPDX-License-Identifier: MIT OR Apache-2.0
//! A variant whose jobs use a card's `/dev/chardiskN`: takes the card from the block layer for a
//! group of points, and returns it. `run` calls it.

use std::path::Path;

use steadyio_core::device::{Device, DeviceError};
use steadyio_direct::taking::{TakeError, TakenCard};

/// The card could not be taken, or did not come back.
#[derive(Debug, thiserror::Error)]
pub enum ChardiskError {
    #[error("chardisk: {0} is a partition: the whole card is needed")]
    Partition(String),
    #[error(transparent)]
    Take(#[from] TakeError),
    #[error("card released, but its block device did not reappear")]
    Lost(#[from] DeviceError),
}

/// A card as a character device.
#[derive(Debug)]
pub struct OnChardisk<'a> {
    block: &'a Device,
    taken: TakenCard,
    /// The device to use in place of the block device; `queue` is the folder of the character
    /// device's own knobs.
    pub device: Device,
}

impl<'a> OnChardisk<'a> {
    pub fn take(block: &'a Device) -> Result<OnChardisk<'a>, ChardiskError> {
        if block.is_partition() {
            return Err(ChardiskError::Partition(block.name.clone()));
        }
        let taken = TakenCard::of_disk(Path::new("/sys"), Path::new("/proc"), &block.disk)?;
        let name = taken.node.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let device = Device {
            node: taken.node.clone(),
            disk: name.clone(),
            name,
            sysfs: taken.sysfs(),
            queue: taken.sysfs(),
            size_bytes: block.size_bytes,
        };
        Ok(OnChardisk { block, taken, device })
    }

    pub fn give(self) -> Result<(), ChardiskError> {
        self.taken.give()?;
        Device::open(&self.block.node)?;
        Ok(())
    }
}
