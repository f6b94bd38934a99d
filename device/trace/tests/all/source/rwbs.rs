// SPDX-License-Identifier: MIT OR Apache-2.0
//! The letters of block events, against the kernel's way of writing them.

use proptest::prelude::*;
use steadyio_trace::event::{Op, OpKind};
use steadyio_trace::source::rwbs::parse;

/// As `blk_fill_rwbs` writes them.
fn letters(op: Op, atomic: bool) -> String {
    let kind = match op.kind {
        OpKind::Read => "R",
        OpKind::Write => "W",
        OpKind::Flush => "F",
        OpKind::Discard => "D",
        OpKind::Other => "N",
    };
    let flags = [(op.fua, "F"), (op.ahead, "A"), (op.sync, "S"), (op.meta, "M"), (atomic, "U")];
    let flags = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter);
    [if op.preflush { "F" } else { "" }, kind].into_iter().chain(flags).collect()
}

fn any_op() -> impl Strategy<Value = Op> {
    let kinds = vec![OpKind::Read, OpKind::Write, OpKind::Flush, OpKind::Discard, OpKind::Other];
    (proptest::sample::select(kinds), any::<[bool; 5]>()).prop_map(
        |(kind, [preflush, fua, sync, meta, ahead])| Op { kind, preflush, fua, sync, meta, ahead },
    )
}

proptest! {
    #[test]
    fn what_the_kernel_writes_is_read_back(op in any_op(), atomic: bool) {
        // "FF" is the block layer's own flush, which has the preflush flag; a flush with FUA does not exist.
        prop_assume!(op.kind != OpKind::Flush || !op.fua || op.preflush);
        prop_assert_eq!(parse(letters(op, atomic).as_bytes()), op);
    }

    #[test]
    fn no_letters_panic(bytes: Vec<u8>) {
        parse(&bytes);
    }
}

#[test]
fn letters_end_at_the_first_nul() {
    assert_eq!(parse(b"WS\0FM"), Op { kind: OpKind::Write, sync: true, ..Op::default() });
}

#[test]
fn a_flush_of_the_block_layer_is_a_flush_with_preflush() {
    assert_eq!(parse(b"FF"), Op { kind: OpKind::Flush, preflush: true, ..Op::default() });
}

#[test]
fn letters_of_zone_commands_are_no_flags() {
    let other = Op::default();
    for command in ["ZA", "ZR", "ZRA", "ZO", "ZC", "ZF"] {
        assert_eq!(parse(command.as_bytes()), other, "{command}");
    }
    assert_eq!(parse(b"ZAS"), Op { sync: true, ..other });
}

#[test]
fn secure_erase_is_a_discard() {
    assert_eq!(parse(b"DES"), Op { kind: OpKind::Discard, sync: true, ..Op::default() });
}
