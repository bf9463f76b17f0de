//! Memory that a process would give back if it ended.
//!
//! Owns the reading of `/proc/PID/smaps_rollup` (proc(5)). Refuses to count what the kernel holds for sockets: it is
//! the same for every server. Invariant: figures are bytes.

use std::fs;

use anyhow::{Context, Result};

/// What one process holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident pages.
    pub rss: u64,
    /// Resident pages, those shared with others divided by the sharers.
    pub pss: u64,
    /// Pages that stand for no file: heap and stacks, and what it has changed of its files' private pages.
    pub anonymous: u64,
}

impl Memory {
    /// Reads one process.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        parse(&text).with_context(|| format!("{path} lacks a figure: {text:?}"))
    }
}

fn parse(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(Memory {
        rss: field("Rss")?,
        pss: field("Pss")?,
        anonymous: field("Anonymous")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Memory, parse};

    #[m0_spec::row(S18)]
    #[test]
    fn figures_are_bytes_and_a_longer_name_is_another_field() {
        let text = "5580-7ffc ---p 00000000 00:00 0 [rollup]\nRss:                1752 kB\n\
            Pss_Dirty:           112 kB\nPss:                 180 kB\nAnonymous:       111 kB\n";
        let wanted = Memory {
            rss: 1752 * 1024,
            pss: 180 * 1024,
            anonymous: 111 * 1024,
        };
        assert_eq!(parse(text), Some(wanted));
        assert_eq!(parse("Rss: 1 kB\nPss: 2 kB\n"), None);
        assert_eq!(parse(""), None);
    }

    #[m0_spec::row(S18)]
    #[test]
    fn memory_that_is_written_is_seen() {
        let before = Memory::of(std::process::id()).expect("this process lives");
        let written = vec![1_u8; 32 << 20];
        let after = Memory::of(std::process::id()).expect("this process lives");
        assert!(std::hint::black_box(&written).iter().all(|&byte| byte == 1));
        assert!(
            after.anonymous >= before.anonymous + (30 << 20),
            "{before:?} {after:?}"
        );
    }
}
