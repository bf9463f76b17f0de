//! What a figure was measured on: the commit, the machine, its load.
//!
//! Refuses to judge. Invariant: what cannot be told is said to be unknown, never left out.

use std::fs;
use std::path::Path;
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
    /// The commit as people read it: twelve digits, and whether the tree had changes.
    pub fn short_commit(&self) -> String {
        match self.commit.split_once('-') {
            Some((hash, rest)) => format!("{hash:.12}-{rest}"),
            None => format!("{:.12}", self.commit),
        }
    }

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
            commit: commit(Path::new(".")).unwrap_or_else(unknown),
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

fn commit(checkout: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        let output = command.args(args).current_dir(checkout).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let hash = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        hash
    } else {
        format!("{hash}-dirty")
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Machine, commit, model_name, one_minute};

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
        let named = |commit: &str| {
            let commit = commit.to_owned();
            Machine {
                commit,
                ..here.clone()
            }
            .short_commit()
        };
        assert_eq!(named(&"ab".repeat(20)), "abababababab");
        assert_eq!(
            named(&format!("{}-dirty", "ab".repeat(20))),
            "abababababab-dirty"
        );
    }

    #[m0_spec::row(H39)]
    #[test]
    fn a_figure_names_the_whole_commit_and_whether_files_differ() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
            let ended = command.args(args).current_dir(place.path()).output();
            assert!(ended.expect("git is there").status.success(), "{args:?}");
        };
        git(&["init", "--quiet"]);
        std::fs::write(&file, "one").expect("written");
        git(&["add", "file"]);
        git(&["commit", "--quiet", "--no-gpg-sign", "--message", "one"]);
        // By less than all of it no result is known to be of this tree.
        let hash = commit(place.path()).expect("a commit");
        assert!(hash.len() >= 40 && !hash.contains('-'), "{hash}");
        std::fs::write(&file, "two").expect("written");
        assert_eq!(commit(place.path()), Some(format!("{hash}-dirty")));
    }
}
