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

/// So many cases; a failing one is kept beside this file and committed.
fn cases(cases: u32) -> Config {
    let kept = FileFailurePersistence::WithSource("regressions");
    Config {
        failure_persistence: Some(Box::new(kept)),
        ..Config::with_cases(cases)
    }
}
