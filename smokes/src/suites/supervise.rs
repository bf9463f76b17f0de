//! The supervisor as an operator meets it: signals at the worst moment, odd surroundings.
//!
//! Knows nothing of HTTP beyond "it serves".
//! Invariant: each surrounding is verified to be what the phase wants before anything is judged.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use m0_spec::{E14, E16, E20, E39, E42, E47, E80, E88, E141};
use nix::sys::signal::Signal;

use crate::audience::{Audience, visit};
use crate::ends::{Ending, code};
use crate::launch::free_port;
use crate::owned;
use crate::peer::{PATIENCE, Peer};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness, millis};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    alone(
        "supervise-term-at-any-moment-of-start-up",
        60,
        &[E42, E20],
        term_in_start_up,
    ),
    beside(
        "supervise-term-when-the-socket-appears",
        30,
        &[E88],
        term_when_the_socket_appears,
    ),
    beside("supervise-inherited-signals", 30, &[E39], inherited_signals),
    beside("supervise-journal", 20, &[E47], journal),
    beside(
        "supervise-adopted-listener",
        20,
        &[E16, E14, E141],
        adopted_listener,
    ),
    beside("supervise-unix-socket", 30, &[E14, E88], unix_socket),
    beside("supervise-banner", 30, &[E80], banner),
];

/// What the kernel may hold of a connection and has not sent (E141).
const UNSENT_BYTES: u32 = 128 * 1024;

/// A generator of moments (SplitMix64): the same on every run, so that a failure comes back.
struct Moments(u64);

impl Moments {
    fn next(&mut self, below: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        below.mul_f64(((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

fn term_in_start_up(run: &Run) -> Result<Witness> {
    const RUNS: usize = 50;
    let mut moments = Moments(20_261_129);
    let (mut early, mut by_signal, mut in_order) = (0, 0, 0);
    let mut start_up = Duration::ZERO;
    for workers in [1, 3] {
        let mut server = Server::launch(run).workers(workers).spawn()?;
        server.await_exec()?;
        let began = Instant::now();
        server.await_ready(PATIENCE)?;
        start_up = start_up.max(began.elapsed());
        server.stop()?;
    }
    run.record("start-up", millis(start_up), "ms");
    for index in 0..RUNS {
        let workers = if index % 5 == 0 { 1 } else { 3 };
        let address = free_port(Run::own_address(0))?;
        let mut server = Server::launch(run).workers(workers).bind(address).spawn()?;
        server.await_exec()?;
        let moment = moments.next(start_up.mul_f64(1.2));
        // The moment is the phase's subject.
        std::thread::sleep(moment);
        server.signal(Signal::SIGTERM)?;
        let log = server.log().clone();
        // Before the host has taken its signals the default action ends it; that is no fault of its own.
        let ended = server
            .finish(&Ending::clean().or_signal(15).within(Duration::from_secs(3)))
            .with_context(|| format!("run {index}, TERM after {:.1} ms", millis(moment)))?;
        early += usize::from(log.events("listening").is_empty());
        by_signal += usize::from(ended.code.is_none());
        in_order += usize::from(ended.code.is_some());
    }
    run.record(
        "ended by the signal's default action",
        by_signal as f64,
        "runs",
    );
    Ok(Witness::of("stopped before the banner", early).and("stopped in order", in_order))
}

/// A directory whose path leaves room: a socket's path has 107 bytes at the most (unix(7)), and the
/// directory of a run may lie deep.
pub(super) fn short_dir() -> Result<tempfile::TempDir> {
    let builder = tempfile::Builder::new().prefix("m0-").tempdir_in("/tmp");
    builder.context("a directory below /tmp")
}

fn term_when_the_socket_appears(run: &Run) -> Result<Witness> {
    const RUNS: usize = 10;
    let mut early = 0;
    let sockets = short_dir()?;
    for index in 0..RUNS {
        let path = sockets.path().join(format!("socket-{index}"));
        let workers = if index % 2 == 0 { 1 } else { 2 };
        let server = Server::launch(run)
            .workers(workers)
            .bind_unix(&path)
            .spawn()?;
        // Without the pause of `until`: the moment right behind the bind is the subject.
        while !path.exists() {
            ensure!(
                server.age() < PATIENCE,
                "no socket after {} ms",
                millis(server.age())
            );
            std::hint::spin_loop();
        }
        server.signal(Signal::SIGTERM)?;
        let log = server.log().clone();
        server
            .finish(&Ending::clean().or_signal(15).within(Duration::from_secs(3)))
            .with_context(|| format!("run {index}"))?;
        ensure!(
            !path.exists(),
            "run {index} at {workers}: the socket file is left behind"
        );
        early += usize::from(log.events("listening").is_empty());
    }
    Ok(Witness::of(
        "stopped between the bind and the banner",
        early,
    ))
}

fn inherited_signals(run: &Run) -> Result<Witness> {
    let mut kills = 0;
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 50)
            .with_blocked_signals()
            .with_ignored_child_signal()
            .start()?;
        let audience = Audience::gather(&server, 1, 2)?;
        audience.await_beats(2, PATIENCE)?;
        if workers > 1 {
            let pid = server.pid_of_slot(1)?;
            ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
            server.await_log("worker-died", PATIENCE, |line| line["worker"] == pid)?;
            until("the slot to be filled again", PATIENCE, || {
                let now = server.worker_pids();
                let two = now.len() == 2 && !now.contains(&pid);
                holds(two, || format!("workers {now:?}"))
            })?;
            kills += 1;
        }
        // The dead worker's streams are cut; the others are told.
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        for tape in audience
            .tapes()
            .iter()
            .filter(|tape| workers == 1 || tape.slot() == 0)
        {
            crate::audience::farewell(tape, PATIENCE)?;
        }
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("workers killed", kills))
}

fn journal(run: &Run) -> Result<Witness> {
    let path = run.dir().join("journal");
    let server = Server::launch(run)
        .workers(2)
        .env("M0_JOURNAL", path.display())
        .start()?;
    let pid = server.pid_of_slot(1)?;
    ensure!(owned::send(pid, Signal::SIGKILL), "no worker {pid}");
    server.await_log("worker-died", PATIENCE, |line| line["worker"] == pid)?;
    server.signal(Signal::SIGUSR1)?;
    let text = until("the journal to name the death", PATIENCE, || {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let told = text.contains(&pid.to_string());
        holds(told, || format!("{} bytes without pid {pid}", text.len())).map(|()| text)
    })?;
    visit(server.addr(), PATIENCE)?;
    server.stop()?;
    Ok(Witness::of("lines of the journal", text.lines().count()))
}

fn adopted_listener(run: &Run) -> Result<Witness> {
    let mut adopted = 0;
    for workers in [1, 2] {
        let listener = TcpListener::bind((Run::own_address(200 + workers), 0))?;
        let address = listener.local_addr()?;
        // The same socket: what the host sets is seen here.
        let same = socket2::Socket::from(listener.try_clone()?);
        let server = Server::launch(run)
            .workers(workers)
            .adopt(listener)
            .start()?;
        ensure!(
            server.addr() == address,
            "it listens on {}, not on {address}",
            server.addr()
        );
        visit(address, PATIENCE)?;
        let unsent = same.tcp_notsent_lowat()?;
        ensure!(
            unsent == UNSENT_BYTES,
            "the kernel may hold {unsent} bytes unsent"
        );
        drop(same);
        server.stop()?;
        adopted += 1;
    }
    Ok(Witness::of("adopted listeners", adopted))
}

fn unix_socket(run: &Run) -> Result<Witness> {
    let mut answers = 0;
    let sockets = short_dir()?;
    for workers in [1, 2] {
        let path = sockets.path().join(format!("socket-{workers}"));
        let ask = |path: &Path| -> Result<()> {
            let mut peer = Peer::connect_unix(path)?;
            peer.get("/")?.expect(200)?;
            Ok(())
        };
        let start = || -> Result<Server<'_>> {
            let server = Server::launch(run)
                .workers(workers)
                .bind_unix(&path)
                .spawn()?;
            let line = server.await_log("listening", PATIENCE, |_| true)?;
            let told = line["address"].as_str().unwrap_or_default();
            ensure!(
                told == format!("unix:{}", path.display()),
                "the banner names {told}"
            );
            Ok(server)
        };
        let server = start()?;
        ask(&path)?;
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
        ensure!(!path.exists(), "a socket file is left behind");
        // One that was killed leaves its file; it must not refuse the next start.
        let killed = start()?;
        killed.signal(Signal::SIGKILL)?;
        killed.finish(&Ending::signal(9, Duration::from_secs(1)))?;
        ensure!(path.exists(), "nothing is stale here");
        let server = start()?;
        ask(&path)?;
        answers += 2;
        // A live one is not taken over by a second host.
        let second = Server::launch(run)
            .workers(workers)
            .bind_unix(&path)
            .spawn()?;
        second.finish(&Ending::code(code::OS))?;
        ask(&path).context("after a second host was refused")?;
        server.signal(Signal::SIGTERM)?;
        server.finish(&Ending::clean())?;
        ensure!(!path.exists(), "a socket file is left behind");
    }
    Ok(Witness::of("answers over unix sockets", answers))
}

fn banner(run: &Run) -> Result<Witness> {
    let mut banners = 0;
    for workers in [1, 3] {
        let spawned = Instant::now();
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_BOOT_MS", 400)
            .start()?;
        run.at_least(
            &format!("banner after the handlers stand at {workers}"),
            millis(spawned.elapsed()),
            "ms",
            400.0,
        )?;
        let ready = server.log().events("worker-ready").len();
        ensure!(
            ready == workers as usize,
            "{ready} of {workers} workers ready at the banner"
        );
        let told = server.log().events("listening");
        ensure!(told.len() == 1 && told[0]["workers"] == workers, "{told:?}");
        ensure!(server.addr().port() != 0, "the banner names port 0");
        visit(server.addr(), PATIENCE)?;
        banners += told.len();
        server.stop()?;
    }
    Ok(Witness::of("banners", banners))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H22)]
    #[test]
    fn moments_are_within_their_bound_spread_and_the_same_each_time() {
        let all = |seed| {
            let mut moments = Moments(seed);
            (0..100)
                .map(|_| moments.next(Duration::from_millis(100)))
                .collect::<Vec<_>>()
        };
        let first = all(7);
        assert_eq!(first, all(7));
        assert!(
            first
                .iter()
                .all(|moment| *moment < Duration::from_millis(100))
        );
        let early = first
            .iter()
            .filter(|moment| **moment < Duration::from_millis(50))
            .count();
        assert!(
            (30..70).contains(&early),
            "{early} of 100 in the first half"
        );
    }
}
