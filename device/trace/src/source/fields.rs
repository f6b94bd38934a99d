// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the fields of one event by their number in the table's row. A binary record may have
//! them at any place and size; a line of text has them as words. The decoders in `table` use it.

use std::str::{FromStr, from_utf8};

use super::format::{Field, Format};
use super::rwbs;
use crate::calls::URING_OPERATIONS;
use crate::event::{Call, Comm, Dev, Extent, Op, Priority};

/// The places of the wanted fields of one event, by number; `None` for an absent field.
pub(super) type Layout = Vec<Option<Field>>;

/// Finds `names` in a format. A name after `?` may be absent. The error names the missing field.
pub(super) fn layout(format: &Format, names: &[&str]) -> Result<Layout, String> {
    let find = |name: &&str| {
        let field = format.fields.iter().find(|field| field.name == bare(name)).cloned();
        match field {
            None if bare(name) == *name => Err(format!("its records have no field {name:?}")),
            field => Ok(field),
        }
    };
    names.iter().map(find).collect()
}

/// The name, without the `?` of an optional field.
pub(super) fn bare(name: &str) -> &str {
    name.trim_start_matches('?')
}

/// The fields of one event. Each getter takes the number of a field; it returns `None` if this
/// kernel lacks the field, or if the field is of another type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fields<'a> {
    Record { data: &'a [u8], layout: &'a [Option<Field>] },
    Text(&'a [Option<&'a [u8]>]),
}

impl<'a> Fields<'a> {
    /// The fields of a record; `None` if the record is too short.
    pub fn of_record(data: &'a [u8], layout: &'a [Option<Field>]) -> Option<Fields<'a>> {
        let fits = |field: &Field| field.offset + field.size <= data.len();
        layout.iter().flatten().all(fits).then_some(Fields::Record { data, layout })
    }

    pub fn bytes(&self, slot: usize) -> Option<&'a [u8]> {
        match self {
            Fields::Record { data, layout } => bytes_of(data, layout.get(slot)?.as_ref()?),
            Fields::Text(values) => *values.get(slot)?,
        }
    }

    /// The text of a text field.
    fn text(&self, slot: usize) -> Option<&'a str> {
        matches!(self, Fields::Text(_)).then(|| from_utf8(self.bytes(slot)?).ok()).flatten()
    }

    /// A signed or unsigned integer of 1, 2, 4 or 8 bytes. An unsigned one of 64 bits keeps its
    /// bits.
    pub fn int(&self, slot: usize) -> Option<i64> {
        match self {
            Fields::Record { data, layout } => int_of(data, layout.get(slot)?.as_ref()?),
            Fields::Text(_) => {
                let text = self.text(slot)?;
                text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|bits| bits as i64))
            }
        }
    }

    /// An integer that fits into `T`.
    pub fn number<T: TryFrom<i64>>(&self, slot: usize) -> Option<T> {
        self.int(slot)?.try_into().ok()
    }

    /// An integer with its bits unchanged.
    pub fn u64(&self, slot: usize) -> Option<u64> {
        self.int(slot).map(|value| value as u64)
    }

    /// An integer that text prints in hexadecimal.
    pub fn hex(&self, slot: usize) -> Option<u64> {
        match self.text(slot) {
            None => self.u64(slot),
            Some("(nil)" | "(null)") => Some(0),
            Some(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16).ok(),
        }
    }

    /// A device in the kernel's encoding, or as text `8,0` or `8:0`.
    pub fn dev(&self, slot: usize) -> Option<Dev> {
        let Some(text) = self.text(slot) else {
            return Some(Dev::from_kernel(self.number(slot)?));
        };
        let dev = Dev::parse(text)?;
        (Dev::from_kernel(dev.to_kernel()) == dev).then_some(dev)
    }

    /// An I/O priority in the kernel's encoding, or as text `be,0,4 `: class, optional hint, and
    /// level.
    pub fn priority(&self, slot: usize) -> Option<Priority> {
        let Some(text) = self.text(slot) else { return Priority::from_kernel(self.number(slot)?) };
        let mut parts = text.trim_end().split(',');
        let class = parts.next()?;
        let names = [("none", "0x0"), ("rt", "0x1"), ("be", "0x2"), ("idle", "0x3")];
        let class = (0..).zip(names).find(|(_, (name, number))| [*name, *number].contains(&class));
        Priority::from_kernel(class?.0 << 13 | u16::from_str(parts.next_back()?).ok()?)
    }

    /// The call that is equivalent to an operation of io_uring, from the operation's number, or in
    /// text its name.
    pub fn uring_call(&self, slot: usize) -> Option<Call> {
        let (number, name) = (self.u64(slot), self.text(slot));
        let mut all = URING_OPERATIONS.into_iter();
        let found = all.find(|of| number == Some(of.0) || name == Some(of.1));
        found.map(|(.., call)| call)
    }

    /// Whether a thread's state is runnable. Bits above 0xff mark preemption.
    pub fn is_runnable(&self, slot: usize) -> Option<bool> {
        let text = self.text(slot).map(|state| matches!(state, "R" | "R+"));
        text.or_else(|| Some(self.int(slot)? & 0xff == 0))
    }

    /// The operation and flags, from their letters.
    pub fn op(&self, slot: usize) -> Option<Op> {
        Some(rwbs::parse(self.bytes(slot)?))
    }

    pub fn comm(&self, slot: usize) -> Option<Comm> {
        self.bytes(slot).map(Comm::new)
    }

    /// The place, operation and priority. The first four fields must be `dev sector nr_sector
    /// rwbs`; the fifth, if any, is `ioprio`.
    pub fn extent(&self) -> Option<Extent> {
        let (dev, sector, sectors) = (self.dev(0)?, self.u64(1)?, self.number(2)?);
        Some(Extent { dev, sector, sectors, op: self.op(3)?, priority: self.priority(4) })
    }
}

fn bytes_of<'a>(data: &'a [u8], field: &Field) -> Option<&'a [u8]> {
    let here = data.get(field.offset..field.offset + field.size)?;
    let Some(base) = field.elsewhere_from else { return Some(here) };
    let place = u32::from_le_bytes(*here.first_chunk()?);
    let start = base + (place & 0xffff) as usize;
    data.get(start..start + (place >> 16) as usize)
}

fn int_of(data: &[u8], field: &Field) -> Option<i64> {
    let bytes = bytes_of(data, field)?;
    if field.elsewhere_from.is_some() || !matches!(bytes.len(), 1 | 2 | 4 | 8) {
        return None;
    }
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    let (value, unused) = (i64::from_le_bytes(whole), 64 - 8 * bytes.len());
    Some(if field.signed { value << unused >> unused } else { value })
}
