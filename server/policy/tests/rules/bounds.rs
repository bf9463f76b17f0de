//! The ranges of the configuration.

use std::time::Duration;

use m0_policy::{Config, ConfigError, MAX_WORKERS};
use m0_spec::row;

use crate::desk::{config, ms};

const DAY: Duration = Duration::from_hours(24);

#[row(D40)]
#[test]
fn workers_are_within_1_and_64() {
    assert_eq!(Config::new(0), Err(ConfigError::Workers { workers: 0 }));
    assert_eq!(Config::new(65), Err(ConfigError::Workers { workers: 65 }));
    for workers in [1, MAX_WORKERS] {
        assert_eq!(
            Config::new(workers).map(|config| config.workers()),
            Ok(workers)
        );
    }
}

#[row(D40)]
#[test]
fn durations_are_within_their_ranges() {
    let late = DAY + ms(1);
    let name = |result: Result<Config, ConfigError>| match result {
        Err(ConfigError::Duration { name, .. }) => name,
        other => panic!("a duration out of range is refused: {other:?}"),
    };
    assert_eq!(name(config(1).with_drain(late)), "drain");
    assert_eq!(name(config(1).with_kill_margin(late)), "kill_margin");
    assert_eq!(name(config(1).with_healthy(late)), "healthy");
    assert_eq!(name(config(1).with_healthy(ms(0))), "healthy");
    assert_eq!(name(config(1).with_backoff(ms(0), ms(1))), "backoff");
    assert_eq!(name(config(1).with_backoff(ms(1), late)), "backoff_max");
    assert_eq!(name(config(1).with_drain(Duration::MAX)), "drain");
    assert!(config(1).with_drain(DAY).is_ok());
    assert!(config(1).with_drain(ms(0)).is_ok());
}

#[row(D40)]
#[test]
fn contradictions_are_refused() {
    assert_eq!(
        config(1).with_backoff(ms(2), ms(1)),
        Err(ConfigError::BackoffAboveMax {
            first: ms(2),
            max: ms(1)
        })
    );
    assert!(config(1).with_backoff(ms(2), ms(2)).is_ok());
    assert_eq!(
        config(1).with_crash_limit(0),
        Err(ConfigError::NoCrashLimit)
    );
}

#[row(D40)]
#[test]
fn the_defaults_are_the_documented_ones() {
    let config = config(3);
    assert_eq!(
        config.to_string(),
        "workers=3 drain=5000 kill_margin=250 backoff=100 backoff_max=10000 healthy=10000 \
         crash_limit=10"
    );
}
