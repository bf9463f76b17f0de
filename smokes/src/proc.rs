//! What the kernel says about a process, read from `/proc` (proc(5)).
//!
//! Owns the parsing and nothing else: it never sends a signal and never decides what is good.
//! Invariant: a process that is gone yields `None` or an empty list, never an error, because every
//! reader of `/proc` races with the end of what it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// A process id as the kernel counts it in our own pid namespace.
pub type Pid = i32;

/// Clock ticks a second in `/proc/PID/stat`. The kernel's `USER_HZ` is 100 on every architecture
/// that Linux gained since 2.6 (time(7)).
const TICKS_A_SECOND: u64 = 100;

/// One line of `/proc/PID/stat`, as far as the harness needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: Pid,
    /// Command name, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `T` (stopped), `Z` (zombie) …
    pub state: char,
    /// The process that would reap this one.
    pub parent: Pid,
    /// Process group.
    pub group: Pid,
    /// Time on a processor, user and system, with a resolution of 10 ms.
    pub cpu: Duration,
    /// Threads that have not ended.
    pub threads: usize,
    /// Ticks after boot at which it started: with the pid, the identity of a process.
    pub started: u64,
}

impl Stat {
    /// Whether it has ended, all of it, and waits to be reaped. The state is that of the first thread: while
    /// another one still ends, the process holds its descriptors, and the kernel does not let it be reaped
    /// (`delay_group_leader` in the kernel's `exit.c`).
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }

    /// Whether a stop signal holds it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Reads one process. `None` when there is no such process.
pub fn stat(pid: Pid) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Splits the line around the command name, which may hold spaces and parentheses itself.
fn parse_stat(line: &str) -> Option<Stat> {
    let (head, tail) = line.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)?;
    Some(Stat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        cpu: Duration::from_millis(ticks * 1000 / TICKS_A_SECOND),
        threads: usize::try_from(number(17)?).ok()?,
        started: number(19)?,
    })
}

/// Every process that `/proc` shows, in order of pid.
pub fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found: Vec<Stat> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<Pid>().ok())
        .filter_map(stat)
        .collect();
    found.sort_by_key(|each| each.pid);
    found
}

/// The direct children of `pid`, zombies included.
pub fn children(pid: Pid) -> Vec<Stat> {
    all()
        .into_iter()
        .filter(|each| each.parent == pid)
        .collect()
}

/// Everything below `pid`, zombies included, parents before their children.
pub fn descendants(pid: Pid) -> Vec<Stat> {
    let everything = all();
    let mut wanted = BTreeSet::from([pid]);
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for each in &everything {
            if wanted.contains(&each.parent) && wanted.insert(each.pid) {
                found.push(each.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether the process was started with `NAME=value` in its environment (as the kernel kept it:
/// forked children carry their parent's). A process of another user answers `false`.
pub fn environ_has(pid: Pid, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
        bytes
            .split(|&byte| byte == 0)
            .any(|each| each == wanted.as_bytes())
    })
}

/// Every process whose environment carries the mark.
pub fn marked(name: &str, value: &str) -> Vec<Stat> {
    all()
        .into_iter()
        .filter(|each| environ_has(each.pid, name, value))
        .collect()
}

/// The names of the threads of a process.
pub fn threads(pid: Pid) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

/// Open descriptors and what each refers to (`socket:[7]`, `/memfd:m0 (deleted)`).
pub fn fds(pid: Pid) -> BTreeMap<i32, String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            Some((number, target.to_string_lossy().into_owned()))
        })
        .collect()
}

/// One field of `/proc/PID/status` (`VmRSS`, `SigBlk`, …), trimmed.
pub fn status_field(pid: Pid, field: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()?
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name == field).then(|| value.trim().to_owned())
        })
}

/// Anonymous resident memory in bytes: what the process itself holds, without files and shared
/// pages.
pub fn anonymous_bytes(pid: Pid) -> Option<u64> {
    let text = status_field(pid, "RssAnon")?;
    text.trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// Whether the mask in `field` (`SigBlk`, `SigIgn`, `SigCgt`) holds signal number `signal`.
pub fn signal_in(pid: Pid, field: &str, signal: i32) -> Option<bool> {
    let mask = u64::from_str_radix(&status_field(pid, field)?, 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H43)]
    #[test]
    fn a_name_with_spaces_and_parentheses_is_read_whole() {
        let line = "42 (a) (b c) S 7 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 3 0 99 1 1";
        let read = parse_stat(line).expect("a well-formed line");
        assert_eq!(read.name, "a) (b c");
        assert_eq!(
            (read.pid, read.parent, read.group, read.state),
            (42, 7, 42, 'S')
        );
        assert_eq!(
            (read.cpu, read.threads, read.started),
            (Duration::from_secs(2), 3, 99)
        );
    }

    #[m0_spec::row(H43)]
    #[test]
    fn a_process_is_a_zombie_only_when_its_last_thread_has_ended() {
        let with = |state: char, threads: usize| {
            let line =
                format!("42 (a) {state} 7 42 42 0 -1 4 1 0 0 0 1 5 0 0 20 0 {threads} 0 99 1 1");
            parse_stat(&line).expect("a well-formed line").is_zombie()
        };
        assert!(with('Z', 1) && with('X', 0));
        assert!(!with('Z', 2), "a thread that ends holds the descriptors");
        assert!(!with('S', 1));
    }

    #[m0_spec::row(H43)]
    #[test]
    fn this_process_reads_itself() {
        let own = Pid::try_from(std::process::id()).expect("a pid fits");
        let read = stat(own).expect("we exist");
        assert_eq!(read.pid, own);
        assert!(read.threads >= 1 && !read.is_zombie());
        assert!(
            fds(own).len() >= 3,
            "at least the three standard descriptors"
        );
        assert!(anonymous_bytes(own).expect("we have memory") > 4096);
        assert!(!threads(own).is_empty());
    }

    #[m0_spec::row(H43)]
    #[test]
    fn a_process_that_is_gone_is_none_and_empty() {
        assert_eq!(stat(Pid::MAX), None);
        assert!(fds(Pid::MAX).is_empty() && children(Pid::MAX).is_empty());
        assert_eq!(status_field(Pid::MAX, "VmRSS"), None);
    }
}
