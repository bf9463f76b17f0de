//! Which processes are ours, and their certain end.
//!
//! A process is owned when it stands below one that we started, or carries our mark in its environment
//! (`SMOKES_RUN=<unique>`, which forked children inherit). Never by name: two runs on one machine
//! must not end each other's servers.
//! Invariant: [`end`] returns when no owned process is left, or names those that would not go.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid as NixPid;

use crate::proc::{self, Pid, Stat};
use crate::until::until;

/// Name of the variable that carries the mark.
pub const MARK: &str = "SMOKES_RUN";

/// Name of the variable that carries the mark of a whole phase, which its servers inherit.
pub const PHASE_MARK: &str = "SMOKES_PHASE";

/// A mark that no other server on this machine carries: our pid, our start and a counter.
pub fn new_mark(index: u32) -> String {
    let own = own_pid();
    let started = proc::stat(own).map_or(0, |stat| stat.started);
    format!("{own}-{started}-{index}")
}

/// Our own pid.
pub fn own_pid() -> Pid {
    Pid::try_from(std::process::id()).expect("the kernel's pids fit in 31 bits")
}

/// Every live or dead process that belongs to the server with this mark, below `root` or marked.
pub fn of(root: Option<Pid>, mark: &str) -> Vec<Stat> {
    let mut found: BTreeMap<Pid, Stat> = proc::marked(MARK, mark)
        .into_iter()
        .map(|stat| (stat.pid, stat))
        .collect();
    if let Some(root) = root {
        found.extend(
            proc::descendants(root)
                .into_iter()
                .map(|stat| (stat.pid, stat)),
        );
        found.extend(proc::stat(root).map(|stat| (stat.pid, stat)));
    }
    found.into_values().collect()
}

/// Sends a signal to one process. `false` when there is no such process.
///
/// Only to a pid above 1: 0 and below are process groups (kill(2)), and a slot without a worker may well be
/// told as pid 0.
pub fn send(pid: Pid, signal: Signal) -> bool {
    pid > 1 && kill(NixPid::from_raw(pid), signal).is_ok()
}

/// Reaps `pid` if it is a dead child of ours. `true` when it is no longer a zombie of ours.
pub fn reap(pid: Pid) -> bool {
    match waitpid(NixPid::from_raw(pid), Some(WaitPidFlag::WNOHANG)) {
        Ok(status) => status.pid().is_some(),
        Err(Errno::ECHILD) => true,
        Err(_) => false,
    }
}

/// Kills everything owned by a server, again and again until nothing is left, at most for two seconds.
pub fn end(root: Option<Pid>, mark: &str) -> anyhow::Result<()> {
    end_all(|| of(root, mark))
}

/// Kills everything that a phase's process left: all that carries the phase's own mark.
pub fn end_phase(mark: &str) -> anyhow::Result<()> {
    end_all(|| proc::marked(PHASE_MARK, mark))
}

/// Kills everything below this process. For a process that was made for one phase: all of it is ours, also
/// what carries no mark.
pub fn end_below() -> anyhow::Result<()> {
    end_all(|| proc::descendants(own_pid()))
}

/// Kills orphans that came to us, with all below them: our children but those that `ours` names.
pub fn end_adopted(ours: impl Fn(Pid) -> bool) -> anyhow::Result<()> {
    end_all(|| {
        let mut found = Vec::new();
        for child in proc::children(own_pid())
            .into_iter()
            .filter(|stat| !ours(stat.pid))
        {
            found.extend(proc::descendants(child.pid));
            found.push(child);
        }
        found
    })
}

fn end_all(find: impl Fn() -> Vec<Stat>) -> anyhow::Result<()> {
    until(
        "every owned process to be gone",
        Duration::from_secs(2),
        || {
            let left = find();
            for each in &left {
                if each.is_zombie() {
                    reap(each.pid);
                } else {
                    // A stopped process needs no SIGCONT: SIGKILL acts all the same.
                    send(each.pid, Signal::SIGKILL);
                }
            }
            let alive: Vec<String> = left
                .iter()
                .filter(|each| !each.is_zombie())
                .map(describe)
                .collect();
            if alive.is_empty() {
                Ok(())
            } else {
                Err(alive.join(", "))
            }
        },
    )
}

/// `name[pid] state` for a message.
pub fn describe(stat: &Stat) -> String {
    format!("{}[{}] {}", stat.name, stat.pid, stat.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H21)]
    #[test]
    fn a_signal_never_goes_to_a_group_or_to_process_one() {
        // Were it sent, it would end this very test run.
        for pid in [0, -1, 1, -own_pid()] {
            assert!(!send(pid, Signal::SIGKILL), "{pid}");
        }
        assert!(!send(Pid::MAX, Signal::SIGKILL), "no such process");
    }

    #[m0_spec::row(H21)]
    #[test]
    fn marks_differ_and_find_their_own_process_only() {
        let (one, two) = (new_mark(1), new_mark(2));
        assert_ne!(one, two);
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .env(MARK, &one)
            .spawn()
            .expect("sleep is there");
        let pid = Pid::try_from(child.id()).expect("a pid");
        let found = until("the marked child", Duration::from_secs(5), || {
            let found = of(None, &one);
            if found.len() == 1 {
                Ok(found[0].pid)
            } else {
                Err(format!("{found:?}"))
            }
        });
        assert_eq!(found.expect("it runs"), pid);
        assert!(of(None, &two).is_empty());
        end(None, &one).expect("it can be killed");
        // Whoever reaped it first: it is dead.
        let _ = child.wait();
        assert!(proc::stat(pid).is_none_or(|stat| stat.is_zombie()));
    }
}
