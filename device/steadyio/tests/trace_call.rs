// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of system calls.

#![allow(missing_docs)]

use steadyio::trace::event::Call;

#[test]
fn each_call_has_its_own_name() {
    for (call, name) in Call::NAMES {
        assert_eq!((call.name(), Call::from_name(name)), (name, Some(call)));
    }
    assert_eq!(Call::from_name("openat"), None);
}
