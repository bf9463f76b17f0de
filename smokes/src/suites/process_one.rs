//! The host as process 1 of a pid namespace: the only init that a container has.
//!
//! Knows that strangers become its children; nothing of what they are.
//! Invariant: a stranger has become a child of process 1 before it is awaited to be gone.

use anyhow::{Context, Result, ensure};
use m0_spec::{D15, E41};
use nix::sys::signal::Signal;

use crate::audience::Audience;
use crate::ends::Ending;
use crate::owned;
use crate::peer::PATIENCE;
use crate::phase::{Phase, beside};
use crate::proc;
use crate::run::{Run, Witness};
use crate::server::Server;
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[beside(
    "supervise-as-process-one",
    30,
    &[E41, D15],
    as_process_one,
)];

fn as_process_one(run: &Run) -> Result<Witness> {
    let (mut strangers, mut told) = (0, 0);
    for workers in [1, 2] {
        let server = Server::launch(run)
            .workers(workers)
            .env("M0_HOSTCHECK_PERIOD_MS", 50)
            .as_process_one()
            .start()?;
        let pid = server.pid();
        let inner = proc::status_field(pid, "NSpid").context("NSpid")?;
        ensure!(
            inner.split_whitespace().last() == Some("1"),
            "it is not process 1: NSpid {inner}"
        );
        let before = server.worker_pids();
        strangers += reaps_strangers(run, &server, &before)
            .with_context(|| format!("process 1 at {workers}"))?;
        ensure!(
            before.len() == workers as usize,
            "workers {before:?}, {workers} were asked for"
        );
        // A worker's death is still told apart from a stranger's.
        let killed = *before.last().context("a worker")?;
        ensure!(owned::send(killed, Signal::SIGKILL), "no worker {killed}");
        server.await_log("worker-died", PATIENCE, |line| {
            !line["respawn_ms"].is_null()
        })?;
        until("every slot to be filled again", PATIENCE, || {
            let now = server.worker_pids();
            holds(now.len() == before.len() && !now.contains(&killed), || {
                format!("{now:?}")
            })
        })?;
        let audience = Audience::gather(&server, 1, 2)?;
        audience.await_beats(2, PATIENCE)?;
        server.check_running()?;
        server.signal(Signal::SIGTERM)?;
        audience.await_farewell(PATIENCE)?;
        told += audience.tapes().len();
        server.finish(&Ending::clean())?;
    }
    Ok(Witness::of("strangers", strangers).and("streams told", told))
}

/// Leaves three strangers to process 1, sees them come and go, and answers how many there were.
fn reaps_strangers(run: &Run, server: &Server<'_>, workers: &[i32]) -> Result<usize> {
    let pid = server.pid();
    let mut left_behind = 0;
    for _ in 0..3 {
        let status = std::process::Command::new(run.helper_bin())
            .args(["stranger", &pid.to_string(), "0.3"])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .status()?;
        ensure!(status.success(), "a stranger could not be left: {status}");
        left_behind += 1;
    }
    let orphans = || -> Vec<proc::Stat> {
        proc::children(pid)
            .into_iter()
            .filter(|stat| !workers.contains(&stat.pid))
            .collect()
    };
    ensure!(
        !orphans().is_empty(),
        "no stranger became a child of process 1"
    );
    until("every stranger to be reaped", PATIENCE, || {
        let left = orphans();
        holds(left.is_empty(), || {
            left.iter()
                .map(owned::describe)
                .collect::<Vec<_>>()
                .join(", ")
        })
    })?;
    ensure!(
        server.worker_pids() == workers,
        "the strangers cost a worker"
    );
    let told = server.log().events("worker-died");
    ensure!(
        told.is_empty(),
        "a stranger's end was logged as a worker's: {told:?}"
    );
    Ok(left_behind)
}
