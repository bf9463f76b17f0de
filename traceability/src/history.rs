//! What the repository was before: the files of a revision, and where each line of a file comes from.
//!
//! Owns the questions to git about the past. Refuses to read what it fetches, and to touch the checkout: files of a
//! revision go to a directory of their own, by an index of their own. Invariant: a revision that is not there is an
//! error that names it; a file that has no past has no origins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// The files of a revision, in a directory that goes with this value.
#[derive(Debug)]
pub struct Checkout {
    home: PathBuf,
    /// The root, as the repository's own.
    pub root: PathBuf,
    /// The commit's hash.
    pub commit: String,
}

impl Checkout {
    /// Fetches a revision: a hash, a branch, a tag, `HEAD~3`.
    ///
    /// # Errors
    ///
    /// When the root is no git checkout or the revision names no commit.
    pub fn of(root: &Path, revision: &str) -> Result<Self> {
        let wanted = format!("{revision}^{{commit}}");
        let verify = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let Some(commit) = line(git(root).args(verify).arg(&wanted)) else {
            bail!("`{revision}` names no commit of {}", root.display());
        };
        let within = line(git(root).args(["rev-parse", "--show-prefix"])).unwrap_or_default();
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("trace-at-{}-{call}", std::process::id()));
        let files = home.join("files");
        std::fs::create_dir_all(&files)
            .with_context(|| format!("cannot make {}", files.display()))?;
        let checkout = Self {
            root: files.join(within),
            commit,
            home,
        };
        let prefix = format!("--prefix={}/", files.display());
        for args in [
            vec!["read-tree", checkout.commit.as_str()],
            vec!["checkout-index", "--all", prefix.as_str()],
        ] {
            let mut command = git(root);
            let command = command
                .args(&args)
                .env("GIT_INDEX_FILE", checkout.home.join("index"));
            line(command).with_context(|| format!("git {} failed", args.join(" ")))?;
        }
        Ok(checkout)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // What is left in the temporary directory does no harm.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The commit that wrote it.
    pub commit: String,
    /// Its day, `2026-11-29`.
    pub day: String,
}

/// The origin of each line, from 1; lines that are not committed, and files without a past, have none.
pub fn origins(root: &Path, path: &Path) -> BTreeMap<usize, Origin> {
    let output = git(root)
        .args(["blame", "--line-porcelain", "--"])
        .arg(path)
        .output();
    let text = output.ok().filter(|output| output.status.success());
    let text = text.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let mut origins = BTreeMap::new();
    let mut head: Option<(String, usize)> = None;
    let mut day = String::new();
    for line in text.unwrap_or_default().lines() {
        if line.starts_with('\t') {
            // The text of the line ends what is said of it.
            if let Some((commit, number)) = head.take()
                && commit.bytes().any(|byte| byte != b'0')
            {
                let day = std::mem::take(&mut day);
                origins.insert(number, Origin { commit, day });
            }
        } else if let Some(time) = line.strip_prefix("committer-time ") {
            let seconds = time.parse().ok();
            let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
            day = time.map_or_else(String::new, |time| {
                jiff::tz::Offset::UTC.to_datetime(time).date().to_string()
            });
        } else if head.is_none() {
            let mut words = line.split(' ');
            let (commit, number) = (words.next(), words.nth(1));
            head = commit
                .zip(number.and_then(|number| number.parse().ok()))
                .map(|(commit, number)| (commit.to_owned(), number));
        }
    }
    origins
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(root);
    command
}

fn line(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
