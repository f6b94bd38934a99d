// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of one event by their number in the list of the table's row: of a binary record, whatever their size and
//! place in this kernel's layout, or of a line of text.

use super::format::{DataLocation, Field, Format};
use super::rwbs;
use crate::event::{Comm, Dev, Extent, Op, Priority};

/// Where the wanted fields of one event lie; made once per format.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    slots: Vec<Option<Field>>,
    /// A record must have so many bytes.
    size_min: usize,
}

impl Layout {
    /// Finds `names` in a format; one with `?` before it may be absent. The error says which is.
    pub fn new(format: &Format, names: &[&str]) -> Result<Layout, String> {
        let slots = names.iter().map(|name| match name.strip_prefix('?') {
            Some(name) => Ok(format.field(name).cloned()),
            None => match format.field(name) {
                Some(field) => Ok(Some(field.clone())),
                None => Err(format!("its records have no field {name:?}")),
            },
        });
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let size_min = slots.iter().flatten().map(|field| field.offset + field.size).max();
        Ok(Layout { slots, size_min: size_min.unwrap_or(0) })
    }

    /// The fields of a record; `None` if it is too short to have them.
    pub fn record<'a>(&'a self, data: &'a [u8]) -> Option<Fields<'a>> {
        (data.len() >= self.size_min).then_some(Fields::Record { data, layout: self })
    }
}

/// A value that was read from text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// With the bits of an unsigned one, if it is one.
    Int(i64),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    #[allow(clippy::cast_possible_wrap)]
    pub fn of_u64(bits: u64) -> Value<'static> {
        Value::Int(bits as i64)
    }
}

/// The fields of one event. Each getter takes the number of a field in the list; `None` if this kernel lacks
/// it, or if it is not of a kind that can be read so.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fields<'a> {
    Record { data: &'a [u8], layout: &'a Layout },
    Text(&'a [Option<Value<'a>>]),
}

impl<'a> Fields<'a> {
    /// Of a line, whose values are in the order of the list.
    pub fn of_text(values: &'a [Option<Value<'a>>]) -> Fields<'a> {
        Fields::Text(values)
    }

    /// The bytes of a field.
    pub fn bytes(&self, slot: usize) -> Option<&'a [u8]> {
        match self {
            Fields::Record { data, layout } => bytes_of(data, layout.slots.get(slot)?.as_ref()?),
            Fields::Text(values) => match values.get(slot)?.as_ref()? {
                Value::Bytes(bytes) => Some(bytes),
                Value::Int(_) => None,
            },
        }
    }

    /// An integer of 1, 2, 4 or 8 bytes, its sign kept.
    pub fn int(&self, slot: usize) -> Option<i64> {
        match self {
            Fields::Record { data, layout } => int_of(data, layout.slots.get(slot)?.as_ref()?),
            Fields::Text(values) => match values.get(slot)?.as_ref()? {
                Value::Int(value) => Some(*value),
                Value::Bytes(_) => None,
            },
        }
    }

    /// An integer, its bits as they are.
    #[allow(clippy::cast_sign_loss)]
    pub fn u64(&self, slot: usize) -> Option<u64> {
        self.int(slot).map(|value| value as u64)
    }

    /// An integer that fits.
    pub fn u32(&self, slot: usize) -> Option<u32> {
        self.int(slot)?.try_into().ok()
    }

    /// An integer that fits.
    pub fn u8(&self, slot: usize) -> Option<u8> {
        self.int(slot)?.try_into().ok()
    }

    /// An integer that fits.
    pub fn i32(&self, slot: usize) -> Option<i32> {
        self.int(slot)?.try_into().ok()
    }

    /// A C `int` that the kernel keeps in a longer word: of a system call's arguments.
    #[allow(clippy::cast_possible_truncation)]
    pub fn int_argument(&self, slot: usize) -> Option<i32> {
        self.int(slot).map(|value| value as i32)
    }

    /// A device in the kernel's encoding.
    pub fn dev(&self, slot: usize) -> Option<Dev> {
        Some(Dev::from_kernel(self.u32(slot)?))
    }

    /// The letters of operation and flags.
    pub fn op(&self, slot: usize) -> Option<Op> {
        Some(rwbs::parse(self.bytes(slot)?))
    }

    /// An I/O priority.
    pub fn priority(&self, slot: usize) -> Option<Priority> {
        Priority::from_kernel(self.int(slot)?.try_into().ok()?)
    }

    /// A thread's name.
    pub fn comm(&self, slot: usize) -> Option<Comm> {
        self.bytes(slot).map(Comm::new)
    }

    /// The first four fields are `dev sector nr_sector rwbs`, the fifth, if any, is `ioprio`.
    pub fn extent(&self) -> Option<Extent> {
        let (dev, sector) = (self.dev(0)?, self.u64(1)?);
        Some(Extent {
            dev,
            sector,
            sectors: self.u32(2)?,
            op: self.op(3)?,
            priority: self.priority(4),
        })
    }
}

fn bytes_of<'a>(data: &'a [u8], field: &Field) -> Option<&'a [u8]> {
    let here = data.get(field.offset..field.offset + field.size)?;
    if field.held == DataLocation::Here {
        return Some(here);
    }
    let place = u32::from_le_bytes(*here.first_chunk()?);
    let base = if field.held == DataLocation::Elsewhere { 0 } else { field.offset + field.size };
    let start = base + (place & 0xffff) as usize;
    data.get(start..start + (place >> 16) as usize)
}

fn int_of(data: &[u8], field: &Field) -> Option<i64> {
    if field.held != DataLocation::Here {
        return None;
    }
    let bytes = bytes_of(data, field)?;
    let mut whole = [0; 8];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let bits = match bytes.len() {
        1 | 2 | 4 | 8 => 64 - 8 * bytes.len(),
        _ => return None,
    };
    let value = i64::from_le_bytes(whole);
    Some(if field.signed { value << bits >> bits } else { value })
}
