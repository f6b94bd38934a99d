// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of system calls, against the kernel's own description of their events where it can be read.

use steadyio_testing::skip;
use steadyio_trace::calls::{CALLS, CallEvents};
use steadyio_trace::source::tracefs::Tracefs;

#[test]
fn every_call_is_there_once() {
    for events in CALLS {
        let alike = |other: &&CallEvents| other.call == events.call || other.name == events.name;
        assert_eq!(CALLS.iter().filter(alike).count(), 1);
    }
}

#[test]
fn this_kernel_has_these_calls_and_arguments() {
    let tracefs = match Tracefs::find() {
        Ok(tracefs) => tracefs,
        Err(error) => {
            skip(&error.to_string());
            return;
        }
    };
    let folder = tracefs.root.join("events/syscalls");
    if !folder.exists() {
        skip("this kernel has no events of system calls");
        return;
    }
    for events in CALLS {
        let path = folder.join(format!("sys_enter_{}/format", events.name));
        let format = std::fs::read_to_string(&path).expect(events.name);
        if let Some(argument) = events.fd {
            assert!(format.contains(&format!(" {argument};")), "{argument} is not in {format}");
        }
    }
}
