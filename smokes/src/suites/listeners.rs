//! Several listeners of one host: TCP of both families, unix sockets, and sockets that were handed over.
//!
//! Knows the addresses from the banner alone.
//! Invariant: every listener is asked, and at the end none is left.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use m0_spec::{E88, E95, E109, E110, E111, E112, E113};
use nix::sys::signal::Signal;

use super::http::launch;
use super::supervise::short_dir;
use crate::ends::{Ending, code};
use crate::launch::free_port;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::proc;
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "listeners-are-all-served",
        40,
        &[E109, E113, E95],
        all_served,
    ),
    beside(
        "listeners-of-both-families-at-one-port",
        30,
        &[E109],
        both_families,
    ),
    beside(
        "listeners-one-of-them-refused",
        40,
        &[E110, E88],
        one_refused,
    ),
    beside("listeners-handed-over", 40, &[E111, E113], handed_over),
    beside("listeners-take-turns", 30, &[E112], take_turns),
];

/// A listener as the banner names it.
#[derive(Debug, Clone)]
enum At {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl At {
    fn connect(&self) -> Result<Peer> {
        match self {
            At::Tcp(address) => Peer::connect(*address),
            At::Unix(path) => Peer::connect_unix(path),
        }
    }
}

/// The listeners of the banner, in its order.
fn listeners(server: &Server<'_>) -> Result<Vec<At>> {
    let line = server.await_log("listening", PATIENCE, |_| true)?;
    let text = line["address"].as_str().context("no address")?;
    text.split(',')
        .map(|each| match each.strip_prefix("unix:") {
            Some(path) => Ok(At::Unix(path.into())),
            None => Ok(At::Tcp(each.parse().with_context(|| text.to_owned())?)),
        })
        .collect()
}

/// A port of `[::1]`; of 127.0.0.1 on a machine without IPv6.
fn newer_loopback(run: &Run) -> &'static str {
    if has_ipv6(run) {
        "[::1]:0"
    } else {
        "127.0.0.1:0"
    }
}

fn has_ipv6(run: &Run) -> bool {
    let there = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !there {
        run.note("this machine has no IPv6");
    }
    there
}

fn all_served(run: &Run) -> Result<Witness> {
    let sockets = short_dir()?;
    let mut answers = 0;
    for workers in [1, 2] {
        let path = |name: &str| sockets.path().join(format!("{name}-{workers}"));
        let paths = [path("a"), path("b")];
        let list = format!(
            "unix:{},{}:0,{},unix:{},{}:0",
            paths[0].display(),
            Run::own_address(0),
            newer_loopback(run),
            paths[1].display(),
            Run::own_address(1),
        );
        let server = launch(run).workers(workers).env("M0_BIND", &list).start()?;
        let all = listeners(&server)?;
        ensure!(all.len() == 5, "the banner names {all:?}");
        let mut idle = Vec::new();
        for at in &all {
            let mut slots = BTreeSet::new();
            // As many as it takes: who accepts is the workers' business, that each does is the promise.
            until("every worker to answer", PATIENCE, || {
                let mut peer = at.connect().map_err(|error| format!("{at:?}: {error:#}"))?;
                let answer = peer
                    .get("/")
                    .map_err(|error| format!("{at:?}: {error:#}"))?;
                slots.insert(answer.slot().map_err(|error| error.to_string())?);
                idle.push(peer);
                holds(slots.len() == workers as usize, || {
                    format!("{at:?}: slots {slots:?}")
                })
            })?;
            answers += slots.len();
        }
        // In the drain who comes is answered at each of them while a request is in flight; with a sibling
        // that serves nobody comes to a worker that drains.
        let mut asking = all[0].connect()?;
        asking.send(request("GET", "/sleep?ms=1500", &[], b""))?;
        let busy = |server: &Server<'_>| -> Result<()> {
            until("the request to be in flight", PATIENCE, || {
                let stats = server.stats().map_err(|error| format!("{error:#}"))?;
                let requests: u64 = (0..workers)
                    .filter_map(|slot| stats["shares"][slot as usize]["requests"].as_u64())
                    .sum();
                holds(requests > idle.len() as u64, || {
                    format!("{requests} requests")
                })
            })
        };
        busy(&server)?;
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        server.await_log("stopping", PATIENCE, |_| true)?;
        if workers == 1 {
            for at in &all {
                until("the drain to be told", PATIENCE, || {
                    let told = at.connect().and_then(|mut late| late.get("/readyz"));
                    let status = told
                        .map(|answer| answer.status())
                        .map_err(|error| format!("{at:?}: {error:#}"))?;
                    holds(status == 503, || format!("{at:?}: {status}"))
                })?;
                answers += 1;
            }
        }
        asking.answer()?.expect(200)?;
        server.finish(&Ending::clean())?;
        for at in &all {
            ensure!(at.connect().is_err(), "{at:?} is left behind");
        }
        ensure!(
            !paths.iter().any(|path| path.exists()),
            "a socket file is left behind"
        );
    }
    Ok(Witness::of("answers", answers))
}

fn both_families(run: &Run) -> Result<Witness> {
    let mut answers = 0;
    for turned in [false, true] {
        let port = free_port(Ipv4Addr::UNSPECIFIED)?.port();
        let mut both = vec![(format!("0.0.0.0:{port}"), "127.0.0.1")];
        if has_ipv6(run) {
            both.push((format!("[::]:{port}"), "[::1]"));
        }
        if turned {
            both.reverse();
        }
        let list: Vec<_> = both.iter().map(|(bind, _)| bind.as_str()).collect();
        let server = launch(run).env("M0_BIND", list.join(",")).spawn()?;
        ensure!(listeners(&server)?.len() == both.len(), "not all listeners");
        for (_, address) in &both {
            let mut peer = Peer::connect(format!("{address}:{port}").parse()?)?;
            let own = peer.local_addr()?.to_string();
            // The IPv4 client is one at the IPv4 socket: at the other it would have a mapped address.
            ensure!(peer.get("/peer")?.expect(200)?.text() == own, "not {own}");
            answers += 1;
        }
        server.signal(Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("answers", answers))
}

fn one_refused(run: &Run) -> Result<Witness> {
    let sockets = short_dir()?;
    let mut refused = 0;
    for workers in [1, 2] {
        let occupant = TcpListener::bind((Run::own_address(0), 0))?;
        let occupied = occupant.local_addr()?.to_string();
        let taken = sockets.path().join(format!("taken-{workers}"));
        let _occupant = std::os::unix::net::UnixListener::bind(&taken)?;
        let file = sockets.path().join(format!("file-{workers}"));
        std::fs::write(&file, "not a socket")?;
        let unix = |path: &Path| format!("unix:{}", path.display());
        for second in [occupied, unix(&taken), unix(&file)] {
            let first = sockets.path().join("first");
            let list = format!("{},{}:0,{second}", unix(&first), Run::own_address(1));
            let server = launch(run).workers(workers).env("M0_BIND", list).spawn()?;
            let log = server.log().clone();
            server
                .finish(&Ending::code(code::OS))
                .with_context(|| second.clone())?;
            let lines = log.events("os-refused");
            ensure!(
                lines.len() == 1 && lines[0]["what"] == format!("listening on {second}"),
                "{second}: {lines:?}"
            );
            ensure!(
                log.events("listening").is_empty(),
                "a banner beside a refusal"
            );
            ensure!(!first.exists(), "{second}: the first socket file is left");
            refused += 1;
        }
        ensure!(taken.exists() && file.exists(), "another's file is gone");
    }
    Ok(Witness::of("hosts refused", refused))
}

fn handed_over(run: &Run) -> Result<Witness> {
    let sockets = short_dir()?;
    let mut answers = 0;
    for workers in [1, 2] {
        let path = sockets.path().join(format!("socket-{workers}"));
        let handed = [
            format!("web@{}:0", Run::own_address(0)),
            format!("admin@unix:{}", path.display()),
            format!("web@{}", newer_loopback(run)),
        ];
        let server = launch(run)
            .workers(workers)
            .activate(&handed, None)
            .start()?;
        let all = listeners(&server)?;
        let names = server.log().events("listening")[0]["names"].clone();
        ensure!(
            all.len() == 3 && names == serde_json::json!(["web", "admin", "web"]),
            "{names} at {all:?}"
        );
        for at in &all {
            at.connect()?.get("/")?.expect(200)?;
            answers += 1;
        }
        server.stop()?;
        ensure!(
            path.exists(),
            "it removed the service manager's socket file"
        );
        std::fs::remove_file(&path)?;
        for names in ["web", "a:b:c:d", ""] {
            let wrong = launch(run)
                .workers(workers)
                .activate(&handed, Some(names))
                .spawn()?;
            let log = wrong.log().clone();
            wrong
                .finish(&Ending::code(code::CONFIG))
                .with_context(|| names.to_owned())?;
            let lines = log.events("refused");
            ensure!(
                lines.len() == 1 && lines[0]["name"] == "LISTEN_FDNAMES",
                "{names:?}: {lines:?}"
            );
            std::fs::remove_file(&path)?;
        }
    }
    Ok(Witness::of("answers", answers))
}

fn take_turns(run: &Run) -> Result<Witness> {
    const FLOOD: usize = 200;
    const ROOM: usize = 100;
    let list = format!("{}:0,{}:0", Run::own_address(0), Run::own_address(1));
    let mut refused = 0;
    for (flooded, other) in [(0, 1), (1, 0)] {
        // Whoever is accepted first finds room, and the others get 503: so it shows who was.
        let server = launch(run)
            .env("M0_BIND", &list)
            .env("M0_MAX_CONNECTIONS", ROOM)
            .start()?;
        let all = listeners(&server)?;
        // While the process is stopped both queues fill: many first at the one, then a few at the other.
        server.signal(Signal::SIGSTOP)?;
        until("the process to be stopped", PATIENCE, || {
            let stat = proc::stat(server.pid());
            holds(stat.as_ref().is_some_and(proc::Stat::is_stopped), || {
                format!("{stat:?}")
            })
        })?;
        let ask = |at: &At| -> Result<Peer> {
            let mut peer = at.connect()?;
            peer.send(request("GET", "/", &[], b""))?;
            Ok(peer)
        };
        let mut many = Vec::new();
        for _ in 0..FLOOD {
            many.push(ask(&all[flooded])?);
        }
        let mut few = Vec::new();
        for _ in 0..3 {
            few.push(ask(&all[other])?);
        }
        server.signal(Signal::SIGCONT)?;
        for peer in &mut few {
            let answer = peer.answer().context("at the other listener")?;
            ensure!(
                answer.status() == 200,
                "accepted behind the flood at the other: {}",
                answer.status()
            );
        }
        let mut turned_away = 0;
        for peer in &mut many {
            turned_away += usize::from(peer.answer()?.status() == 503);
        }
        ensure!(turned_away > 0, "no flood: there was room for all");
        refused += turned_away;
        server.stop()?;
    }
    Ok(Witness::of(
        "connections of the floods that found no room",
        refused,
    ))
}
