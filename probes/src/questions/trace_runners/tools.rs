//! The runners of other languages: whether they are there, and how what they need is fetched.
//!
//! Owns the versions that are fetched. Refuses to install a program of the system: one that is missing is an error of one
//! line. Invariant: nothing is fetched outside of the directory that is given, and each thing once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// From PyPI, into an environment of its own.
const PYTEST: &str = "pytest==9.2.0";
/// From npm: node before version 22 runs no TypeScript by itself, and with this it does.
const TSX: &str = "tsx@4.23.15";

/// Where what is fetched is kept.
pub(super) struct Tools(PathBuf);

impl Tools {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// A python with pytest.
    pub(super) fn python(&self) -> Result<PathBuf> {
        let home = self.home("python", PYTEST, |home| {
            let system = program("python3", "Debian: python3 python3-venv")?;
            let mut venv = Command::new(system);
            fetch(venv.args(["-m", "venv"]).arg(home), "a virtual environment")?;
            let mut pip = Command::new(home.join("bin/python"));
            fetch(
                pip.args(["-m", "pip", "install", "--quiet", PYTEST]),
                PYTEST,
            )
        })?;
        Ok(home.join("bin/python"))
    }

    /// node, and the module by which it reads TypeScript.
    pub(super) fn node(&self) -> Result<(PathBuf, PathBuf)> {
        let node = program("node", "Debian: nodejs, 20 or newer")?;
        let home = self.home("node", TSX, |home| {
            let mut npm = Command::new(program("npm", "Debian: npm")?);
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
            fetch(npm.arg("--prefix").arg(home).arg(TSX), TSX)
        })?;
        Ok((node, home.join("node_modules/tsx/dist/loader.mjs")))
    }

    /// A directory that holds what was wanted; what `fill` left half done is made anew.
    fn home(
        &self,
        name: &str,
        wanted: &str,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let cannot = || format!("cannot make {}", self.0.display());
        std::fs::create_dir_all(&self.0).with_context(cannot)?;
        let home = self.0.canonicalize().with_context(cannot)?.join(name);
        let mark = home.join("complete");
        if std::fs::read_to_string(&mark).is_ok_and(|has| has == wanted) {
            return Ok(home);
        }
        // One that was never made is as good as one that was removed.
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir(&home).with_context(cannot)?;
        fill(&home)?;
        std::fs::write(&mark, wanted).with_context(cannot)?;
        Ok(home)
    }
}

fn fetch(command: &mut Command, what: &str) -> Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot fetch {what}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "cannot fetch {what}: {last}");
    Ok(())
}

/// The first program of this name on the path.
fn program(name: &str, source: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|dir| dir.join(name));
    let found = found.find(|path| path.is_file());
    found.with_context(|| format!("cannot start {name}: it is not there ({source})"))
}
