// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the letters of the `rwbs` field of block events, which are the same in binary records and
//! in text. `fields` calls it.
//!
//! The kernel writes them in this order: `F` for a preflush, the operation, then `F` for FUA, `A`,
//! `S`, `M` and, since 6.11, `U`.

use crate::event::{Op, OpKind};

/// Parses the letters up to a NUL. It skips letters that have no use here. Without a known
/// operation, the result is [`OpKind::Other`].
pub fn parse(letters: &[u8]) -> Op {
    let letters = letters.split(|letter| *letter == 0).next().unwrap_or_default();
    // A first F is the operation itself, unless another operation follows.
    let preflush = matches!(letters, [b'F', b'R' | b'W' | b'D' | b'F' | b'N' | b'Z', ..]);
    let (kind, flags) = operation(if preflush { &letters[1..] } else { letters });
    let has = |letter| flags.contains(&letter);
    Op { kind, preflush, fua: has(b'F'), sync: has(b'S'), meta: has(b'M'), ahead: has(b'A') }
}

/// The operation at the beginning of `letters`, and the flags after it.
fn operation(letters: &[u8]) -> (OpKind, &[u8]) {
    match letters {
        [b'W', b'Z', flags @ ..] => (OpKind::Other, flags),
        // Reset of all zones, then any other zone command: their letters are not flags.
        [b'Z', b'R', b'A', flags @ ..] | [b'Z', _, flags @ ..] => (OpKind::Other, flags),
        [b'D', b'E', flags @ ..] | [b'D', flags @ ..] => (OpKind::Discard, flags),
        [b'R', flags @ ..] => (OpKind::Read, flags),
        [b'W', flags @ ..] => (OpKind::Write, flags),
        [b'F', flags @ ..] => (OpKind::Flush, flags),
        [b'N', flags @ ..] => (OpKind::Other, flags),
        _ => (OpKind::Other, letters),
    }
}
