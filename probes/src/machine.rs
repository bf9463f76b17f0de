//! What a figure was measured on: the commit, the machine, its load.
//!
//! Refuses to judge. Invariant: what cannot be told is said to be unknown, never left out.

use std::fs;
use std::process::Command;

/// The place of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Commit of the checkout that the command was given in; `-dirty` behind it when tracked files differ.
    pub commit: String,
    /// Model and number of the processors, and the kernel.
    pub name: String,
    /// Processors that this process may use.
    pub cores: usize,
}

impl Machine {
    /// Asks git, `/proc` and the standard library.
    pub fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let model = fs::read_to_string("/proc/cpuinfo").ok();
        let model = model
            .as_deref()
            .and_then(model_name)
            .unwrap_or("unknown processor");
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            commit: commit().unwrap_or_else(unknown),
            name: format!("{model}, {cores} cores, Linux {}", kernel.trim()),
            cores,
        }
    }
}

/// Runnable processes, averaged over the last minute (proc(5), loadavg); none where `/proc` does not tell.
pub fn load_average() -> Option<f64> {
    one_minute(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn one_minute(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn model_name(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        hash
    } else {
        format!("{hash}-dirty")
    })
}

#[cfg(test)]
mod tests {
    use super::{Machine, model_name, one_minute};

    #[m0_spec::row(H39)]
    #[test]
    fn the_machine_is_named_from_what_the_kernel_tells() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nflags\t: a b\n";
        assert_eq!(model_name(cpuinfo), Some("A Processor @ 2 GHz"));
        assert_eq!(model_name("processor\t: 0\n"), None);
        assert_eq!(one_minute("19.72 17.25 11.46 27/247 8236\n"), Some(19.72));
        assert_eq!(one_minute(""), None);
        let here = Machine::here();
        assert!(
            here.cores > 0 && here.name.contains("cores, Linux "),
            "{here:?}"
        );
        assert!(!here.commit.is_empty(), "{here:?}");
    }
}
