// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the result of `steady record --out`: its caller, and the recorder's changes from file to
//! file. `source` calls it.

use serde::Deserialize;
use steadyio_recorder::ledger::Account;

use crate::record::ClassResult;
use crate::recording::result::{Distribution, RESULT_SCHEMA};

const KIB: u64 = 1 << 10;

#[derive(Deserialize)]
struct Head {
    schema: String,
    ended: String,
}

#[derive(Deserialize)]
struct Found {
    config: Config,
    payload_mib_s: f64,
    caller: Caller,
    pool: Option<Pool>,
    caller_writes: Option<CallerWrites>,
    ledger: Ledger,
}

#[derive(Deserialize)]
struct Config {
    record_bytes: u64,
}

#[derive(Deserialize)]
struct Caller {
    call: String,
    calls: Distribution,
}

#[derive(Deserialize)]
struct Pool {
    rotations: Distribution,
}

#[derive(Deserialize)]
struct CallerWrites {
    file_changes: Distribution,
}

#[derive(Deserialize)]
struct Ledger {
    total: Account,
}

/// The caller as a class. An I/O is a write() or an append(); a lost record is an error.
pub fn caller(text: &str) -> Result<ClassResult, String> {
    let found = finished(text)?;
    let record_bytes = found.config.record_bytes;
    let total = found.ledger.total;
    Ok(ClassResult {
        op: found.caller.call,
        bs_kib: (record_bytes % KIB == 0).then_some(record_bytes / KIB),
        bytes: Some(total.received.bytes),
        mib_s: Some(found.payload_mib_s),
        errors: total.lost().records,
        ..class(found.caller.calls)
    })
}

/// The changes from one file, or segment of a pool, to the next, as a class.
pub fn changes(text: &str) -> Result<ClassResult, String> {
    let found = finished(text)?;
    let pool = found.pool.map(|pool| ("rotation", pool.rotations));
    let files = found.caller_writes.map(|writes| ("file_change", writes.file_changes));
    let (op, times) = pool.or(files).ok_or("has neither pool nor caller_writes")?;
    Ok(ClassResult { op: op.into(), ..class(times) })
}

fn finished(text: &str) -> Result<Found, String> {
    let not_read = |error: serde_json::Error| format!("not a {RESULT_SCHEMA} result: {error}");
    let Head { schema, ended } = serde_json::from_str(text).map_err(not_read)?;
    if schema != RESULT_SCHEMA || ended != "finished" {
        return Err(format!(
            "schema \"{schema}\", ended \"{ended}\": must be \"{RESULT_SCHEMA}\", \"finished\""
        ));
    }
    serde_json::from_str(text).map_err(not_read)
}

fn class(times: Distribution) -> ClassResult {
    ClassResult {
        op: String::new(),
        bs_kib: None,
        count: times.count,
        bytes: None,
        mib_s: None,
        errors: 0,
        latency_ns: times.latency_ns,
        histogram_ns: times.histogram_ns,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn times(count: u64, ns: Option<u64>) -> Value {
        let histogram: Vec<(u64, u64)> = ns.into_iter().map(|ns| (ns, count)).collect();
        let latency =
            json!({"min": ns, "p50": ns, "p95": ns, "p99": ns, "p999": ns, "p9999": ns, "max": ns});
        json!({"count": count, "latency_ns": latency, "histogram_ns": histogram})
    }

    fn result() -> Value {
        let amount = |records: u64| json!({"records": records, "bytes": records * 16_384});
        let total = json!({
            "received": amount(200), "buffered": amount(0), "written": amount(195),
            "durable": amount(195), "lost_ring_full": amount(3), "lost_in_writing": amount(2),
            "last_received_ns": 9, "last_durable_ns": 8, "first_lost_ns": 1, "last_lost_ns": 7,
            "ring_used_bytes": 0, "ring_used_bytes_max": 0,
        });
        json!({
            "schema": "steadyio.recording/1", "ended": "finished",
            "config": {"record_bytes": 16_384}, "payload_mib_s": 2.713,
            "caller": {"call": "append", "calls": times(200, Some(256))},
            "pool": {"rotations": times(2, Some(5_000))}, "caller_writes": null,
            "ledger": {"total": total},
        })
    }

    #[test]
    fn lost_records_are_errors_of_the_caller() {
        let found = caller(&result().to_string()).unwrap();
        assert_eq!((found.op.as_str(), found.bs_kib, found.count), ("append", Some(16), 200));
        assert_eq!((found.mib_s, found.bytes, found.errors), (Some(2.713), Some(3_276_800), 5));
        assert_eq!((found.latency_ns.p95, found.histogram_ns), (Some(256), vec![(256, 200)]));
    }

    #[test]
    fn changes_are_the_pools_or_the_callers() {
        let rotations = changes(&result().to_string()).unwrap();
        assert_eq!((rotations.op.as_str(), rotations.count), ("rotation", 2));
        assert_eq!((rotations.latency_ns.max, rotations.mib_s), (Some(5_000), None));
        let mut files = result();
        files["pool"] = Value::Null;
        files["caller_writes"] = json!({"file_changes": times(0, None)});
        let changed = changes(&files.to_string()).unwrap();
        assert_eq!((changed.op.as_str(), changed.count), ("file_change", 0));
    }

    #[test]
    fn what_did_not_end_well_or_is_no_recording_is_refused() {
        for (key, value, says) in [
            ("ended", json!("full"), "ended \"full\": must be"),
            ("schema", json!("steadyio.bench/1"), "schema \"steadyio.bench/1\""),
            ("caller", json!({"call": "append"}), "missing field `calls`"),
        ] {
            let mut wrong = result();
            wrong[key] = value;
            let said = caller(&wrong.to_string()).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
        assert!(caller("{").unwrap_err().starts_with("not a steadyio.recording/1 result: "));
    }
}
