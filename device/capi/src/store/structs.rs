// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structs of `steadyio_store.h`. The functions of [`super`] use them.

use std::mem::size_of;

use steadyio_store::format::records::Extent;
use steadyio_store::store::{ExtentOptions, StoreOptions};

use crate::arguments::CStruct;
use crate::status::Error;

/// A flag of `enum steadyio_store_flags`.
pub const READ_ONLY: u32 = 1;
pub const FORCE: u32 = 2;
/// A flag of `enum steadyio_extent_flags`.
pub const TWICE: u32 = 1;
pub const NO_CHECKSUM: u32 = 2;

/// Rejects unknown flags.
pub fn check_flags(name: &str, flags: u32, known: u32) -> Result<(), Error> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Error::invalid(name, flags, &format!("only the bits of {known} are known")))
}

/// `struct steadyio_store_options`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio_store.h.
pub struct CStoreOptions {
    pub struct_bytes: usize,
    pub align_bytes: u64,
    pub extents_max: u32,
    pub flags: u32,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CStoreOptions {
    const NAME: &'static str = "steadyio_store_options";
}

impl CStoreOptions {
    pub fn to_rust(self) -> Result<StoreOptions, Error> {
        check_flags("options->flags", self.flags, FORCE)?;
        let default = StoreOptions::default();
        Ok(StoreOptions {
            align_bytes: (self.align_bytes != 0).then_some(self.align_bytes),
            extents_max: if self.extents_max == 0 { default.extents_max } else { self.extents_max },
            ..default
        })
    }
}

/// `struct steadyio_extent_options`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio_store.h.
pub struct CExtentOptions {
    pub struct_bytes: usize,
    pub bytes: u64,
    pub flags: u32,
    pub reserved: u32,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CExtentOptions {
    const NAME: &'static str = "steadyio_extent_options";
}

impl CExtentOptions {
    pub fn to_rust(self) -> Result<ExtentOptions, Error> {
        check_flags("options->flags", self.flags, TWICE | NO_CHECKSUM)?;
        if self.reserved != 0 {
            return Err(Error::invalid("options->reserved", self.reserved, "must be 0"));
        }
        let has = |flag| self.flags & flag != 0;
        Ok(ExtentOptions { bytes: self.bytes, twice: has(TWICE), checked: !has(NO_CHECKSUM) })
    }
}

/// `struct steadyio_extent`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio_store.h.
pub struct CExtent {
    pub struct_bytes: usize,
    pub id: u64,
    pub start_bytes: u64,
    pub bytes: u64,
    pub valid_bytes: u64,
    pub load_commands: u64,
    pub crc: u32,
    pub flags: u32,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CExtent {
    const NAME: &'static str = "steadyio_extent";
}

impl CExtent {
    pub fn new(id: u64, extent: &Extent, load_commands: u64) -> CExtent {
        let twice = if extent.spare.is_some() { TWICE } else { 0 };
        let unchecked = if extent.crc.is_none() { NO_CHECKSUM } else { 0 };
        CExtent {
            struct_bytes: size_of::<CExtent>(),
            id,
            start_bytes: extent.start,
            bytes: extent.bytes,
            valid_bytes: extent.valid_bytes,
            load_commands,
            crc: extent.crc.unwrap_or(0),
            flags: twice | unchecked,
        }
    }
}

/// `struct steadyio_store_stats`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio_store.h.
pub struct CStoreStats {
    pub struct_bytes: usize,
    pub store_bytes: u64,
    pub align_bytes: u64,
    pub free_bytes: u64,
    pub free_bytes_max: u64,
    pub command_bytes: u64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub extents: u32,
    pub extents_max: u32,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CStoreStats {
    const NAME: &'static str = "steadyio_store_stats";
}
