//! What is refused, by name, before anything is bound; and refusals by the application.
//!
//! The address is occupied by us while a configuration is refused: a host that bound first would end with
//! 71 and not with 78. Knows the variables by their text alone.
//! Invariant: every refusal of the table is driven, and each must name itself.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{D6, E7, E8, E9, E10, E11, E13, E27, E28, E79, E113};

use crate::ends::{Ending, code};
use crate::events::EventStream;
use crate::launch::free_port;
use crate::peer::PATIENCE;
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::until;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("refuse-modes-that-do-not-exist", 30, &[E7, E11, E13], modes),
    beside("refuse-bad-values", 60, &[E8, E13], bad_values),
    beside("refuse-unknown-names", 30, &[E10, E13], unknown_names),
    beside("refuse-contradictions", 30, &[E9, E13], contradictions),
    beside("refuse-bad-flags", 30, &[E8, E10, E13], bad_flags),
    beside("refuse-everything-at-once", 20, &[E13], everything_at_once),
    beside(
        "refuse-an-occupied-port",
        20,
        &[m0_spec::E89],
        occupied_port,
    ),
    beside(
        "refuse-by-the-application",
        60,
        &[E27, E28],
        by_the_application,
    ),
    beside("refuse-by-one-worker", 30, &[D6, E27], by_one_worker),
    beside("doctor-binds-nothing", 20, &[E79, E113], doctor),
];

/// Starts a server with these settings while its address is occupied, and checks that it refuses with 78
/// and one line whose text holds each of `parts`.
pub(super) fn refused(
    run: &Run,
    env: &[(&str, &str)],
    arguments: &[&str],
    parts: &[&str],
) -> Result<()> {
    let shown = format!("{env:?} {arguments:?}");
    let occupant = TcpListener::bind((Run::own_address(0), 0))?;
    let mut launch = Server::launch(run)
        .bind(occupant.local_addr()?)
        .args(arguments);
    for (name, value) in env {
        launch = launch.env(name, value);
    }
    let mut server = launch.spawn()?;
    server
        .await_exit(Duration::from_secs(5))
        .with_context(|| shown.clone())?;
    drop(occupant);
    let log = server.log().clone();
    server
        .finish(&Ending::code(code::CONFIG))
        .with_context(|| shown.clone())?;
    let lines = log.events("refused");
    let line = lines
        .first()
        .with_context(|| format!("{shown}: no line says why"))?;
    ensure!(
        lines.len() == 1,
        "{shown}: {} lines for one cause",
        lines.len()
    );
    let text = line.to_string();
    for part in parts {
        ensure!(text.contains(part), "{shown}: {part:?} is not in {text}");
    }
    ensure!(
        log.events("listening").is_empty(),
        "{shown}: a banner beside a refusal"
    );
    Ok(())
}

fn modes(run: &Run) -> Result<Witness> {
    let cases = [
        ("M0_THREADS", "4"),
        ("M0_THREADS", "1"),
        ("M0_BLOCKING_THREADS", "4"),
        ("M0_SPAWN_WORKERS", "1"),
        ("M0_WORKER_SPAWNED", "1"),
    ];
    for workers in ["1", "2"] {
        for (name, value) in cases {
            refused(
                run,
                &[(name, value), ("M0_WORKERS", workers)],
                &[],
                &[name, value],
            )?;
        }
    }
    Ok(Witness::of("refusals", cases.len() * 2))
}

fn bad_values(run: &Run) -> Result<Witness> {
    let numbers = [
        "M0_WORKERS",
        "M0_DRAIN_MS",
        "M0_BACKLOG",
        "M0_HTTP2_MAX_STREAMS",
        "M0_HEAD_TIMEOUT_MS",
        "M0_BODY_TIMEOUT_MS",
        "M0_IDLE_TIMEOUT_MS",
        "M0_FIRST_BYTE_TIMEOUT_MS",
        "M0_WRITE_TIMEOUT_MS",
        "M0_LINGER_MS",
        "M0_MAX_HEAD_BYTES",
        "M0_MAX_URI_BYTES",
        "M0_MAX_HEADERS",
        "M0_MAX_BODY_BYTES",
        "M0_MAX_CONNECTIONS",
        "M0_MAX_REQUESTS_PER_CONNECTION",
        "M0_MAX_STREAMS",
        "M0_OUTBOX_BYTES",
        "M0_REPLAY_BYTES",
        "M0_HEARTBEAT_MS",
        "M0_BACKOFF_MS",
        "M0_BACKOFF_MAX_MS",
        "M0_HEALTHY_MS",
        "M0_CRASH_LIMIT",
    ];
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for name in numbers {
        cases.extend([
            (name, "many"),
            (name, "-1"),
            (name, "99999999999999999999999"),
        ]);
    }
    cases.extend([
        ("M0_WORKERS", "0"),
        ("M0_WORKERS", "65"),
        ("M0_WORKERS", "2.5"),
        ("M0_WORKERS", " 2"),
        ("M0_WORKERS", ""),
        ("M0_WORKERS", "+2"),
        ("M0_ACCEPT_SHARE", "2"),
        ("M0_ACCEPT_SHARE", "yes"),
        ("M0_ACCESS_LOG", "true"),
        ("M0_HEALTH", ""),
        ("M0_HTTP2", "on"),
        ("M0_LOG", "loud"),
        ("M0_BIND", "nonsense"),
        ("M0_BIND", "127.0.0.1"),
        ("M0_BIND", "127.0.0.1:99999"),
        ("M0_BIND", "unix:"),
        ("M0_BIND", ""),
        ("M0_BIND", "127.0.0.1:0,"),
        ("M0_BIND", "127.0.0.1:0,unix:"),
        ("M0_PROXY_FROM", "10.0.0.1/8"),
        ("M0_PROXY_FROM", "proxy.example"),
        ("M0_PROXY_REQUIRED", "2"),
    ]);
    for (name, value) in &cases {
        refused(run, &[(name, value)], &[], &[name, value])?;
    }
    Ok(Witness::of("refusals", cases.len()))
}

fn unknown_names(run: &Run) -> Result<Witness> {
    let cases = [
        ("M0_WORKRES", "M0_WORKERS"),
        ("M0_DRIAN_MS", "M0_DRAIN_MS"),
        ("M0_MAX_BODY_BYTE", "M0_MAX_BODY_BYTES"),
        ("M0_HOSTCHECK_PERIOD", "M0_HOSTCHECK_PERIOD_MS"),
        ("M0_QQQQQQQQQQQQQQ", "M0_QQQQQQQQQQQQQQ"),
    ];
    for (name, near) in cases {
        refused(run, &[(name, "1")], &[], &[name, near])?;
    }
    Ok(Witness::of("refusals", cases.len()))
}

fn contradictions(run: &Run) -> Result<Witness> {
    let cases: &[&[(&str, &str)]] = &[
        &[("M0_BACKOFF_MS", "500"), ("M0_BACKOFF_MAX_MS", "100")],
        &[("M0_MAX_URI_BYTES", "4096"), ("M0_MAX_HEAD_BYTES", "2048")],
        &[("M0_BIND", "[::1]:80,127.0.0.1:80,[::1]:80")],
        &[("M0_PROXY_REQUIRED", "1"), ("M0_PROXY_FROM", "")],
    ];
    for case in cases {
        let names: Vec<&str> = case
            .iter()
            .flat_map(|(name, value)| [*name, *value])
            .collect();
        refused(run, case, &[], &names)?;
    }
    Ok(Witness::of("refusals", cases.len()))
}

fn bad_flags(run: &Run) -> Result<Witness> {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--workers", "many"], &["--workers", "many"]),
        (&["--workers=0"], &["--workers", "0"]),
        (&["--workres=2"], &["--workres", "--workers"]),
        (&["--accept-share", "2"], &["--accept-share", "2"]),
        (&["stray"], &["stray"]),
        (&["--workers"], &["--workers"]),
    ];
    for (arguments, parts) in cases {
        refused(run, &[], arguments, parts)?;
    }
    Ok(Witness::of("refusals", cases.len()))
}

fn everything_at_once(run: &Run) -> Result<Witness> {
    let causes = [
        ("M0_THREADS", "4"),
        ("M0_WORKERS", "none"),
        ("M0_LOGG", "info"),
        ("M0_HEALTH", "7"),
    ];
    let mut launch = Server::launch(run);
    for (name, value) in causes {
        launch = launch.env(name, value);
    }
    let server = launch.spawn()?;
    let log = server.log().clone();
    server.finish(&Ending::code(code::CONFIG))?;
    let lines = log.events("refused");
    ensure!(
        lines.len() == causes.len(),
        "{} lines for {} causes",
        lines.len(),
        causes.len()
    );
    for (name, _) in causes {
        let told = lines.iter().filter(|line| line["name"] == name).count();
        ensure!(told == 1, "{name} is named {told} times in {lines:?}");
    }
    Ok(Witness::of("causes", lines.len()))
}

fn occupied_port(run: &Run) -> Result<Witness> {
    let mut refusals = 0;
    for workers in [1, 2] {
        let occupant = TcpListener::bind((Run::own_address(0), 0))?;
        let address = occupant.local_addr()?;
        let mut server = Server::launch(run).workers(workers).bind(address).spawn()?;
        server.await_exit(Duration::from_secs(5))?;
        drop(occupant);
        let text = server.log().text();
        ensure!(
            text.contains(&address.to_string()),
            "{address} is not named in {text}"
        );
        ensure!(
            server.log().events("listening").is_empty(),
            "a banner on a port of another"
        );
        server.finish(&Ending::code(code::OS))?;
        refusals += 1;
    }
    Ok(Witness::of("refusals", refusals))
}

fn by_the_application(run: &Run) -> Result<Witness> {
    let mut refusals = 0;
    for workers in [1, 2] {
        for (knob, value) in [
            ("M0_HOSTCHECK_MAKE_RAISES", "1"),
            ("M0_HOSTCHECK_PRODUCER_RAISES", "1"),
            // A variable of the application's own with a bad value, also one that is idle without another.
            ("M0_HOSTCHECK_PERIOD_MS", "many"),
            ("M0_HOSTCHECK_NOFILE_SLOT", "-1"),
        ] {
            let launch = Server::launch(run).workers(workers);
            let server = launch.env(knob, value).spawn()?;
            let log = server.log().clone();
            server
                .finish(&Ending::code(code::CONFIG))
                .with_context(|| format!("{knob} at {workers}"))?;
            let lines = log.events("refused");
            ensure!(!lines.is_empty(), "{knob} at {workers}: no line says why");
            let named = lines.iter().all(|line| line.to_string().contains(knob));
            ensure!(named, "{knob} at {workers} is not named in {lines:?}");
            let respawned = log
                .events("worker-died")
                .into_iter()
                .filter(|line| !line["respawn_ms"].is_null())
                .count();
            ensure!(respawned == 0, "{knob} at {workers}: {respawned} respawns");
            ensure!(
                log.events("listening").is_empty(),
                "{knob} at {workers}: a banner"
            );
            let ready = log.events("worker-ready").len();
            ensure!(
                ready < workers as usize,
                "{knob} at {workers}: {ready} workers became ready"
            );
            refusals += 1;
        }
    }
    Ok(Witness::of("refusals", refusals))
}

fn by_one_worker(run: &Run) -> Result<Witness> {
    // The sibling's port is known beforehand, and the refusing worker takes its time, so that the sibling
    // serves a stream when the refusal comes.
    let address = free_port(Run::own_address(0))?;
    let server = Server::launch(run)
        .workers(3)
        .bind(address)
        .env("M0_HOSTCHECK_PERIOD_MS", 50)
        .env("M0_HOSTCHECK_MAKE_RAISES_SLOT", 2)
        .env("M0_HOSTCHECK_BOOT_MS", 700)
        .env("M0_HOSTCHECK_BOOT_SLOT", 2)
        .spawn()?;
    let log = server.log().clone();
    let mut stream = until("a sibling to hold a stream", PATIENCE, || {
        EventStream::open(address, None).map_err(|error| format!("{error:#}"))
    })?;
    stream.beat(PATIENCE)?;
    let tape = crate::tape::Tape::of(stream)?;
    server.finish(&Ending::code(code::CONFIG))?;
    crate::audience::farewell(&tape, PATIENCE)?;
    let lines = log.events("refused");
    ensure!(
        lines.len() == 1,
        "{} lines about one refusal: {lines:?}",
        lines.len()
    );
    let respawned: Vec<_> = log
        .events("worker-died")
        .into_iter()
        .filter(|line| !line["respawn_ms"].is_null())
        .collect();
    ensure!(
        respawned.is_empty(),
        "respawns beside a refusal: {respawned:?}"
    );
    Ok(Witness::of("refusals", lines.len()).and("streams on a sibling", 1))
}

fn doctor(run: &Run) -> Result<Witness> {
    let address = free_port(Run::own_address(0))?;
    let server = Server::launch(run)
        .workers(2)
        .bind(address)
        .env("M0_BIND", format!("{address},unix:/nowhere/socket"))
        .env("M0_DRAIN_MS", 1234)
        .args(&["--doctor", "--log=warn"])
        .foreign_lines_allowed()
        .spawn()?;
    let (out, log) = (server.out().clone(), server.log().clone());
    server.finish(&Ending::clean())?;
    let text = out.text();
    let line = |name: &str| {
        text.lines()
            .find(|line| line.contains(name))
            .map(str::to_owned)
            .with_context(|| format!("{name} is not in {text}"))
    };
    for (name, value, origin) in [
        ("M0_DRAIN_MS", "1234", "env"),
        ("M0_LOG", "warn", "flag"),
        ("M0_BACKLOG", "1024", "default"),
    ] {
        let shown = line(name)?;
        ensure!(
            shown.contains(value) && shown.contains(origin),
            "{name}: {shown}"
        );
    }
    let listeners: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "listeners")
        .skip(1)
        .take(2)
        .map(str::trim)
        .collect();
    ensure!(
        listeners == [address.to_string().as_str(), "unix:/nowhere/socket"],
        "not its listeners: {listeners:?}"
    );
    ensure!(log.events("listening").is_empty(), "--doctor listens");
    Ok(Witness::of("lines", text.lines().count()))
}
