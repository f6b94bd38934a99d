// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accounts and statistics as structs of C. The functions of `lib` fill them.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use steadyio_recorder::ledger::{Account, Amount};
use steadyio_recorder::pool::meters::{Meters, RecordingState};

use crate::arguments::CStruct;

/// `struct steadyio_amount`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
// In steadyio.h.
pub struct CAmount {
    pub records: u64,
    pub bytes: u64,
}

impl From<Amount> for CAmount {
    fn from(amount: Amount) -> CAmount {
        CAmount { records: amount.records, bytes: amount.bytes }
    }
}

/// `struct steadyio_account`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio.h.
pub struct CAccount {
    pub struct_bytes: usize,
    pub received: CAmount,
    pub buffered: CAmount,
    pub written: CAmount,
    pub durable: CAmount,
    pub lost_ring_full: CAmount,
    pub lost_in_writing: CAmount,
    pub last_received_ns: u64,
    pub last_durable_ns: u64,
    pub first_lost_ns: u64,
    pub last_lost_ns: u64,
    pub ring_used_bytes: u64,
    pub ring_used_bytes_max: u64,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CAccount {
    const NAME: &'static str = "steadyio_account";
}

impl From<Account> for CAccount {
    fn from(account: Account) -> CAccount {
        CAccount {
            struct_bytes: mem::size_of::<CAccount>(),
            received: account.received.into(),
            buffered: account.buffered.into(),
            written: account.written.into(),
            durable: account.durable.into(),
            lost_ring_full: account.lost_ring_full.into(),
            lost_in_writing: account.lost_in_writing.into(),
            last_received_ns: account.last_received_ns.unwrap_or(0),
            last_durable_ns: account.last_durable_ns.unwrap_or(0),
            first_lost_ns: account.first_lost_ns.unwrap_or(0),
            last_lost_ns: account.last_lost_ns.unwrap_or(0),
            ring_used_bytes: account.ring_used_bytes,
            ring_used_bytes_max: account.ring_used_bytes_max,
        }
    }
}

/// `struct steadyio_stats`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
// In steadyio.h.
pub struct CStats {
    pub struct_bytes: usize,
    pub poll_gap_ns_max: u64,
    pub durable_lag_ns: u64,
    pub durable_lag_ns_max: u64,
    pub window_exceeded: u64,
    pub rotations: u64,
    pub device_bytes: u64,
    pub failed_segments: u64,
    pub failures: u64,
    pub waiting_since_ns: u64,
    pub state: u32,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CStats {
    const NAME: &'static str = "steadyio_stats";
}

impl From<&Meters> for CStats {
    fn from(meters: &Meters) -> CStats {
        let (state, waiting_since_ns) = match meters.state() {
            RecordingState::Recording => (0, 0),
            RecordingState::Waiting { since_ns, .. } => (1, since_ns),
            RecordingState::Ended(_) => (2, 0),
        };
        let get = |meter: &AtomicU64| meter.load(Ordering::Relaxed);
        CStats {
            struct_bytes: mem::size_of::<CStats>(),
            poll_gap_ns_max: get(&meters.poll_gap_ns_max),
            durable_lag_ns: get(&meters.durable_lag_ns),
            durable_lag_ns_max: get(&meters.durable_lag_ns_max),
            window_exceeded: get(&meters.window_exceeded),
            rotations: get(&meters.rotations),
            device_bytes: get(&meters.device_bytes),
            failed_segments: get(&meters.failed_segments),
            failures: get(&meters.failures),
            waiting_since_ns,
            state,
        }
    }
}
