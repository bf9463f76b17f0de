//! Supervision in simulated worlds: forks fail, workers die at any moment, signals come twice,
//! strangers are reaped, pids are reused, clocks stand still and ticks come late.
//!
//! `script` makes the stories, `world` lets them happen, `ledger` says what every event is owed and
//! `judge` holds the actions against it; the tests are in `properties` and `journals`.

mod journals;
mod judge;
mod ledger;
mod properties;
mod script;
mod world;

use proptest::test_runner::{Config, FileFailurePersistence};

/// Longest search for a smaller story after one failed, ms: a red run must end soon too.
const SHRINK_MS: u32 = 3_000;

/// So many cases; a failing one is kept beside its file and committed.
fn cases(cases: u32) -> Config {
    let kept = FileFailurePersistence::WithSource("regressions");
    Config {
        failure_persistence: Some(Box::new(kept)),
        max_shrink_time: SHRINK_MS,
        ..Config::with_cases(cases)
    }
}
