//! The programs of other people: whether they are there, and how the small ones are fetched.
//!
//! Owns the versions that are fetched. Refuses to install a program of the system: what is missing is an
//! error of one line that says how to get it. Invariant: nothing is fetched outside the directory it is given.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// What is fetched from npm.
const NPM: &str = "eventsource@5.1.5";
/// What is fetched from PyPI.
const PYPI: [&str; 4] = [
    "httpx-sse==0.4.3",
    "httpx",
    "sseclient-py==1.9.0",
    "requests",
];
const KOSOKU: &str = "kosoku==0.1.0";

/// Where programs and clients are.
#[derive(Debug)]
pub struct Tools {
    dir: PathBuf,
}

impl Tools {
    /// Fetched clients are kept in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// npm's `eventsource` in node: the command that runs a script beside it.
    pub fn node(&self) -> Result<PathBuf> {
        let node = program(&["node"], "Debian: nodejs")?;
        if !self
            .dir
            .join("node_modules/eventsource/package.json")
            .is_file()
        {
            let npm = program(&["npm"], "Debian: npm")?;
            let prefix = self.dir()?;
            fetch(
                Command::new(npm)
                    .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
                    .arg("--prefix")
                    .arg(prefix)
                    .arg(NPM),
                NPM,
            )?;
        }
        Ok(node)
    }

    /// A python with the two clients from PyPI.
    pub fn python(&self) -> Result<PathBuf> {
        self.venv("sse", &PYPI)
    }

    /// A python with kosoku.
    pub fn kosoku(&self) -> Result<PathBuf> {
        self.venv("kosoku", &[KOSOKU])
    }

    /// curl.
    pub fn curl() -> Result<PathBuf> {
        program(&["curl"], "Debian: curl")
    }

    /// A browser.
    pub fn chromium() -> Result<PathBuf> {
        program(
            &["chromium", "chromium-browser", "google-chrome"],
            "Debian: chromium",
        )
    }

    /// An empty directory for a browser's profile.
    pub fn profile(&self) -> Result<PathBuf> {
        let profile = self.dir()?.join("profile");
        // One that was never made is as good as one that was removed.
        let _ = std::fs::remove_dir_all(&profile);
        std::fs::create_dir_all(&profile).with_context(|| format!("make {}", profile.display()))?;
        Ok(profile)
    }

    /// Writes a client of ours beside what it imports.
    pub fn script(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir()?.join(name);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    fn dir(&self) -> Result<&Path> {
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("make {}", self.dir.display()))?;
        Ok(&self.dir)
    }

    /// A virtual environment with these packages; its mark says that all of them are in it.
    fn venv(&self, name: &str, packages: &[&str]) -> Result<PathBuf> {
        let venv = self.dir()?.join(name);
        let mark = venv.join("complete");
        let python = venv.join("bin/python");
        let wanted = packages.join("\n");
        if std::fs::read_to_string(&mark).is_ok_and(|has| has == wanted) {
            return Ok(python);
        }
        let system = program(&["python3"], "Debian: python3 python3-venv")?;
        fetch(
            Command::new(system).args(["-m", "venv"]).arg(&venv),
            "a virtual environment",
        )?;
        fetch(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(packages),
            &packages.join(" "),
        )?;
        std::fs::write(&mark, wanted).context("mark the virtual environment")?;
        Ok(python)
    }
}

fn fetch(command: &mut Command, what: &str) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot fetch {what}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "cannot fetch {what}: {last}");
    Ok(())
}

/// The first of these programs on the path.
fn program(names: &[&str], source: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in names {
        let found = std::env::split_paths(&path).find(|dir| dir.join(name).is_file());
        if let Some(dir) = found {
            return Ok(dir.join(name));
        }
    }
    bail!("there is no {} ({source})", names[0])
}
