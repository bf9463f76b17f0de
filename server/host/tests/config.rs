//! The reading of variables and flags: what is taken, what is refused, and in which words.

use std::time::Duration;

use m0_host::{AppConfig, Bind, Level, Settings};
use m0_spec::row;

const NO_FLAGS: [&str; 0] = [];

fn from_env(pairs: &[(&str, &str)]) -> Result<Settings, Vec<m0_host::Refusal>> {
    AppConfig::from_parts(pairs.iter().copied(), NO_FLAGS).resolve(&[])
}

fn from_flags(flags: &[&str]) -> Result<Settings, Vec<m0_host::Refusal>> {
    AppConfig::from_parts([("PATH", "/bin")], flags.iter().copied()).resolve(&[])
}

/// The one refusal of this environment, as text.
fn refusal_of(pairs: &[(&str, &str)]) -> String {
    let refusals = from_env(pairs).expect_err("must be refused");
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals[0].to_string()
}

#[row(E8)]
#[test]
fn an_empty_environment_gives_the_documented_defaults() {
    let settings = from_env(&[]).expect("valid");
    assert_eq!(
        settings.bind,
        [Bind::Tcp("127.0.0.1:8080".parse().expect("an address"))]
    );
    assert!(!settings.bind_given);
    assert_eq!(settings.workers, 1);
    assert!(settings.accept_share && settings.health && !settings.access_log);
    assert_eq!(settings.drain, Duration::from_secs(5));
    assert_eq!(settings.log, Level::Info);
    assert_eq!(settings.max_body_bytes, 10 * 1024 * 1024);
    assert_eq!(settings.crash_limit, 10);
    assert_eq!(settings.journal, None);
}

#[row(E8)]
#[test]
fn every_bad_value_is_refused_with_its_name_and_what_is_right() {
    // Name, bad value, what the refusal must say would be right.
    let cases = [
        ("M0_WORKERS", "0", "from 1 to 64"),
        ("M0_WORKERS", "65", "from 1 to 64"),
        ("M0_WORKERS", "", "whole number of workers"),
        ("M0_WORKERS", "two", "whole number"),
        ("M0_WORKERS", "+2", "whole number"),
        ("M0_WORKERS", " 2", "whole number"),
        ("M0_WORKERS", "2.0", "whole number"),
        ("M0_WORKERS", "99999999999999999999", "whole number"),
        ("M0_ACCEPT_SHARE", "2", "0 or 1"),
        ("M0_ACCEPT_SHARE", "yes", "0 or 1"),
        ("M0_HEALTH", "", "0 or 1"),
        ("M0_ACCESS_LOG", "true", "0 or 1"),
        ("M0_DRAIN_MS", "-1", "whole number of ms from 0 to 3600000"),
        ("M0_DRAIN_MS", "5s", "whole number of ms"),
        ("M0_LOG", "loud", "one of error, warn, info, debug"),
        ("M0_LOG", "INFO", "one of error, warn, info, debug"),
        ("M0_BIND", "8080", "ADDRESS:PORT"),
        ("M0_BIND", "localhost:8080", "ADDRESS:PORT"),
        ("M0_BIND", "127.0.0.1", "ADDRESS:PORT"),
        ("M0_BIND", "127.0.0.1:65536", "ADDRESS:PORT"),
        ("M0_BIND", "unix:", "unix:/path"),
        ("M0_BIND", "127.0.0.1:80,", "between commas"),
        ("M0_BIND", "127.0.0.1:80, [::1]:80", "between commas"),
        ("M0_BIND", "127.0.0.1:80,unix:", "between commas"),
        ("M0_BIND", "127.0.0.1:80,[::1]:80,127.0.0.1:80", "twice"),
        ("M0_BIND", "unix:/run/a,unix:/run/a", "twice"),
        ("M0_HEAD_TIMEOUT_MS", "0", "from 1 to"),
        ("M0_HTTP2", "yes", "0 or 1"),
        ("M0_HTTP2_MAX_STREAMS", "0", "from 1 to 4096"),
        ("M0_METRICS", "metrics", "begins with /"),
        ("M0_METRICS", "/met rics", "no blank"),
        ("M0_METRICS", "/metrics?all", "no blank, ? or #"),
        ("M0_METRICS", "/readyz", "M0_HEALTH=0"),
        ("M0_MAX_HEAD_BYTES", "255", "from 256 to"),
        ("M0_REPLAY_BYTES", "1", "from 65536 to"),
        ("M0_HEARTBEAT_MS", "9", "from 10 to"),
        ("M0_CRASH_LIMIT", "0", "from 1 to"),
        ("M0_PROXY_FROM", "10.0.0.1/8", "addresses and networks"),
        ("M0_PROXY_FROM", "all", "addresses and networks"),
        ("M0_PROXY_REQUIRED", "yes", "0 or 1"),
        (
            "M0_MAX_REQUESTS_PER_CONNECTION",
            "4294967297",
            "of requests from 0 to 4294967296",
        ),
    ];
    for (name, value, right) in cases {
        let text = refusal_of(&[(name, value)]);
        assert!(text.starts_with(&format!("{name}={value}:")), "{text}");
        assert!(text.contains(right), "{text:?} does not say {right:?}");
    }
}

#[row(E8, E13)]
#[test]
fn every_mistake_is_told_not_only_the_first() {
    let refusals = from_env(&[
        ("M0_WORKERS", "none"),
        ("M0_THREADS", "4"),
        ("M0_DRAIN_MS", "soon"),
    ])
    .expect_err("must be refused");
    let mut names: Vec<_> = refusals.iter().filter_map(m0_host::Refusal::name).collect();
    names.sort_unstable();
    assert_eq!(names, ["M0_DRAIN_MS", "M0_THREADS", "M0_WORKERS"]);
}

#[row(E109)]
#[test]
fn several_addresses_stand_between_commas_in_their_order() {
    let list = "127.0.0.1:0,[::1]:80,unix:/run/a.sock,127.0.0.1:0";
    let settings = from_env(&[("M0_BIND", list)]).expect("valid");
    let shown: Vec<_> = settings.bind.iter().map(Bind::to_string).collect();
    assert_eq!(shown.join(","), list);
    let many = |count| vec!["127.0.0.1:0"; count].join(",");
    assert_eq!(
        from_env(&[("M0_BIND", &many(64))])
            .expect("valid")
            .bind
            .len(),
        64
    );
    assert!(from_env(&[("M0_BIND", &many(65))]).is_err());
}

#[row(E7)]
#[test]
fn a_variable_of_a_mode_that_does_not_exist_is_refused_whatever_its_value() {
    for name in ["M0_THREADS", "M0_BLOCKING_THREADS", "M0_SPAWN_WORKERS"] {
        for value in ["0", "1", "4", ""] {
            let text = refusal_of(&[(name, value)]);
            assert!(text.starts_with(&format!("{name}={value}:")), "{text}");
            assert!(text.contains("in this build"), "{text}");
        }
    }
}

#[row(E11)]
#[test]
fn an_inherited_mark_of_a_spawned_worker_is_refused() {
    let text = refusal_of(&[("M0_WORKER_SPAWNED", "1")]);
    assert!(text.contains("unset it"), "{text}");
}

#[row(E10)]
#[test]
fn an_unknown_name_is_refused_with_the_nearest_right_one() {
    for (wrong, near) in [
        ("M0_WORKER", "M0_WORKERS"),
        ("M0_WROKERS", "M0_WORKERS"),
        ("M0_DRAIN_SEC", "M0_DRAIN_MS"),
        ("M0_BINDS", "M0_BIND"),
    ] {
        let text = refusal_of(&[(wrong, "1")]);
        assert!(text.contains(&format!("did you mean {near}?")), "{text}");
    }
    let text = refusal_of(&[("M0_SOMETHING_QUITE_DIFFERENT", "1")]);
    assert!(text.contains("--help"), "{text}");
}

#[row(E10)]
#[test]
fn the_applications_own_names_are_known_and_their_typos_are_not() {
    let config = AppConfig::from_parts([("M0_BLOBS_RATE", "4")], NO_FLAGS);
    assert!(config.resolve(&["M0_BLOBS_RATE"]).is_ok());
    let typo = AppConfig::from_parts([("M0_BLOBS_RAET", "4")], NO_FLAGS);
    let refusals = typo
        .resolve(&["M0_BLOBS_RATE"])
        .expect_err("must be refused");
    assert!(
        refusals[0]
            .to_string()
            .contains("did you mean M0_BLOBS_RATE?"),
        "{refusals:?}"
    );
}

#[row(E9)]
#[test]
fn settings_that_contradict_each_other_are_refused_with_both_names() {
    let cases = [
        (
            [("M0_BACKOFF_MS", "200"), ("M0_BACKOFF_MAX_MS", "100")],
            "M0_BACKOFF_MAX_MS=100",
        ),
        (
            [("M0_MAX_URI_BYTES", "512"), ("M0_MAX_HEAD_BYTES", "512")],
            "M0_MAX_HEAD_BYTES=512",
        ),
        // A demand on nobody: whoever made it thinks that it holds.
        (
            [("M0_PROXY_REQUIRED", "1"), ("M0_PROXY_FROM", "")],
            "M0_PROXY_FROM=:",
        ),
        (
            [("M0_PROXY_REQUIRED", "0"), ("M0_PROXY_FROM", "")],
            "M0_PROXY_FROM=:",
        ),
    ];
    for (pairs, other) in cases {
        let text = refusal_of(&pairs);
        assert!(
            text.starts_with(&format!("{}={}:", pairs[0].0, pairs[0].1)),
            "{text}"
        );
        assert!(text.contains(other), "{text}");
    }
    for flags in [["--proxy-required", "1"], ["--proxy-required", "0"]] {
        assert!(from_flags(&flags).is_err(), "{flags:?}");
    }
    let named = [("M0_PROXY_FROM", "unix"), ("M0_PROXY_REQUIRED", "1")];
    assert!(from_env(&named).expect("valid").proxy_required);
    assert!(from_env(&[]).expect("valid").proxy_required);
}

#[row(E162)]
#[test]
fn half_of_a_pair_and_a_pair_for_nobody_are_refused() {
    let pair = [("M0_TLS_CERT", "/etc/a.pem"), ("M0_TLS_KEY", "/etc/a.pem")];
    for (given, other) in [(0, "M0_TLS_KEY"), (1, "M0_TLS_CERT")] {
        let text = refusal_of(&[pair[given]]);
        assert!(
            text.starts_with(&format!("{}=/etc/a.pem:", pair[given].0)),
            "{text}"
        );
        assert!(
            text.contains(&format!("want {other} too, or neither")),
            "{text}"
        );
    }
    let bound = |list| [pair[0], pair[1], ("M0_BIND", list)];
    let text = refusal_of(&bound("unix:/run/a,unix:/run/b"));
    assert!(text.contains("M0_BIND names unix sockets alone"), "{text}");
    let both = from_env(&bound("unix:/run/a,127.0.0.1:0")).expect("somebody is served over TLS");
    assert_eq!(both.tls_cert, Some("/etc/a.pem".into()));
    assert_eq!(from_env(&[("M0_TLS_KEY", "")]).expect("none").tls_key, None);
}

#[row(E9)]
#[test]
fn a_name_that_is_no_text_is_refused_like_any_other_unknown_one() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let name = OsString::from_vec(b"M0_WORKER\xff".to_vec());
    let config = AppConfig::from_parts([(name, OsString::from("2"))], NO_FLAGS);
    let refusals = config.resolve(&[]).expect_err("must be refused");
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let text = refusals[0].to_string();
    assert!(
        text.contains("is not a variable of this host") && text.contains("M0_WORKERS"),
        "{text}"
    );
    let foreign = OsString::from_vec(b"OTHER_M0_\xff".to_vec());
    AppConfig::from_parts([(foreign, OsString::from("2"))], NO_FLAGS)
        .resolve(&[])
        .expect("not ours");
}

#[row(E78)]
#[test]
fn each_variable_is_a_flag_and_the_flag_wins() {
    let settings = from_flags(&[
        "--workers",
        "3",
        "--drain-ms=250",
        "--bind",
        "unix:/run/app.sock",
        "--log",
        "warn",
    ])
    .expect("valid");
    assert_eq!(settings.workers, 3);
    assert_eq!(settings.drain, Duration::from_millis(250));
    assert_eq!(settings.bind, [Bind::Unix("/run/app.sock".into())]);
    assert!(settings.bind_given);
    assert_eq!(settings.log, Level::Warn);

    let both = AppConfig::from_parts([("M0_WORKERS", "2")], ["--workers", "4"]);
    assert_eq!(both.resolve(&[]).expect("valid").workers, 4);
    // A flag also wins over a variable that would not parse.
    let mended = AppConfig::from_parts([("M0_WORKERS", "many")], ["--workers", "4"]);
    assert_eq!(mended.resolve(&[]).expect("valid").workers, 4);
}

#[row(E78, E8)]
#[test]
fn a_bad_flag_is_refused_in_its_own_words() {
    for (flags, must_say) in [
        (&["--workers", "-1"][..], "--workers=-1:"),
        (&["--wrokers", "2"][..], "did you mean --workers?"),
        (&["--workers"][..], "--workers: wants a value"),
        (&["--doctor=yes"][..], "--doctor=yes: unexpected value"),
        (&["serve"][..], "serve"),
        (&["--bind", "nowhere"][..], "--bind=nowhere:"),
    ] {
        let refusals = from_flags(flags).expect_err("must be refused");
        let text = refusals[0].to_string();
        assert!(text.contains(must_say), "{flags:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[row(E8)]
#[test]
fn an_environment_that_is_not_ours_is_not_read() {
    assert!(
        from_env(&[
            ("M1_WORKERS", "x"),
            ("XM0_WORKERS", "x"),
            ("M0", "x"),
            ("m0_workers", "x")
        ])
        .is_ok()
    );
}

#[cfg(unix)]
#[row(E8)]
#[test]
fn a_value_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let value = std::ffi::OsString::from_vec(vec![0x32, 0xff]);
    let config = AppConfig::from_parts([(std::ffi::OsString::from("M0_WORKERS"), value)], NO_FLAGS);
    let refusals = config.resolve(&[]).expect_err("must be refused");
    assert!(
        refusals[0].to_string().contains("not UTF-8"),
        "{refusals:?}"
    );
}
