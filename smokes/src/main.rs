//! The binary `smokes`: chooses phases, runs them, shows the results.
//!
//! Owns the command line, progress on a terminal and the exit code: 0 all passed, 1 a phase failed, 2 usage.
//! Hidden modes (`helper`, `stranger`, `fake`, `run-phase`, `run-planted`) are what the harness starts
//! itself as; they are no interface.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use smokes::phase::{Phase, matches};
use smokes::run::Run;
use smokes::runner::{Plan, Ran, Watcher};
use smokes::{fake, headroom, helper, outcome, planted, report, runner, suites};

/// Drives the server as real processes and checks what it promises.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Options {
    /// Show the phases, their rows and bounds, and run nothing.
    #[arg(long)]
    list: bool,
    /// Run only phases of this name; `*` and `?` match as in a shell. May be repeated.
    #[arg(long = "phase", value_name = "NAME")]
    phases: Vec<String>,
    /// Run everything this many times and show the spread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Write verdicts and measured quantities as JSON lines.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show TAP on stdout; the report for people goes to stderr.
    #[arg(long)]
    tap: bool,
    /// Write JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Append Markdown to this file: the bounded quantities, the least headroom first.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// The server to drive. Default: `host_check` beside this binary.
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// Phases at once, where they may run side by side.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Keep the logs of phases that passed, too.
    #[arg(long)]
    keep: bool,
    /// Run the planted defects instead: every phase but `planted-good` must fail.
    #[arg(long, hide = true)]
    planted: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("helper") => return helper::main(&words[1..]),
        Some("stranger") => return helper::stranger(&words[1..]),
        Some("fake") => return fake::main(&words[1..]),
        Some(mode @ ("run-phase" | "run-planted")) => {
            return run_phase(mode == "run-planted", &words[1..]);
        }
        _ => {}
    }
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            let usage = error.use_stderr();
            // Nothing is left to tell when even the terminal is closed.
            let _ = error.print();
            return if usage {
                ExitCode::from(2)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match drive(&options) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("smokes: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The process of one phase: NAME DIR SERVER PARENT.
fn run_phase(from_planted: bool, words: &[String]) -> ExitCode {
    let [name, dir, server_bin, parent] = words else {
        return ExitCode::from(2);
    };
    let registry = if from_planted {
        planted::all()
    } else {
        suites::all()
    };
    let Some(phase) = registry.into_iter().find(|phase| phase.name == name) else {
        return ExitCode::from(2);
    };
    // When the runner goes, so do we, and with us (by the same means) our servers.
    let bound = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    if bound.is_err() || nix::unistd::getppid().to_string() != *parent {
        return ExitCode::from(2);
    }
    let helper_bin = std::env::current_exe().unwrap_or_default();
    let run = Run::new(PathBuf::from(server_bin), helper_bin, PathBuf::from(dir));
    outcome::run_here(&phase, &run)
}

fn chosen(options: &Options) -> Result<Vec<Phase>> {
    let registry = if options.planted {
        planted::all()
    } else {
        suites::all()
    };
    if options.phases.is_empty() {
        return Ok(registry);
    }
    for pattern in &options.phases {
        if !registry.iter().any(|phase| matches(pattern, phase.name)) {
            bail!("no phase is named {pattern} (--list shows them)");
        }
    }
    let wanted = |phase: &Phase| options.phases.iter().any(|glob| matches(glob, phase.name));
    Ok(registry.into_iter().filter(wanted).collect())
}

fn drive(options: &Options) -> Result<ExitCode> {
    let phases = chosen(options)?;
    if options.list {
        list(&phases);
        return Ok(ExitCode::SUCCESS);
    }
    if runner::trace(&phases)? {
        return Ok(ExitCode::SUCCESS);
    }
    let helper_bin = std::env::current_exe().context("this very binary")?;
    let server_bin = match &options.server_bin {
        Some(path) => path.clone(),
        None if options.planted => helper_bin.clone(),
        None => helper_bin.with_file_name("host_check"),
    };
    let server_bin = server_bin.canonicalize().with_context(|| {
        format!(
            "no server at {} (cargo build -p host_check, or --server-bin)",
            server_bin.display()
        )
    })?;
    let dir = tempfile::Builder::new().prefix("smokes-").tempdir()?;
    nix::sys::prctl::set_child_subreaper(true).context("become the subreaper")?;
    let plan = Plan {
        server_bin,
        helper_bin,
        jobs: usize::from(options.jobs),
        repeat: usize::from(options.repeat),
        dir: dir.path().to_owned(),
        keep: options.keep,
        planted: options.planted,
    };
    let screen = Screen::new(phases.len() * plan.repeat, options.tap);
    let all = runner::run_all(&phases, &plan, &screen);
    screen.bar.finish_and_clear();
    if all.iter().any(|ran| ran.dir.is_some()) {
        let kept = dir.keep();
        screen.say(&format!("logs are kept in {}\n", kept.display()));
    }
    show(options, &all, &screen)
}

fn show(options: &Options, all: &[Ran], screen: &Screen) -> Result<ExitCode> {
    let tree = report::Tree::of(Path::new("."));
    let (passed, failed) = report::totals(all);
    if options.repeat > 1 {
        screen.say(&report::spread(all));
    }
    if let Some(path) = &options.json {
        write(path, &report::json_lines(all, &tree))?;
    }
    if let Some(path) = &options.junit {
        write(path, &report::junit(all, &tree))?;
    }
    if let Some(path) = &options.summary {
        headroom::summarise(all, path)?;
    }
    if options.tap {
        anstream::print!("{}", report::tap(all));
    }
    screen.say(&headroom::table(all, 10));
    for ran in all.iter().filter(|ran| !ran.outcome.passed()) {
        let why = ran.outcome.failure.as_deref().unwrap_or_default();
        let first = why.lines().next().unwrap_or_default();
        screen.say(&format!(
            "failed: {} (round {}): {first}\n",
            ran.phase.name, ran.round
        ));
    }
    screen.say(&format!("{passed} passed, {failed} failed\n"));
    Ok(if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn list(phases: &[Phase]) {
    for phase in phases {
        let rows: Vec<&str> = phase.rows.iter().map(|row| row.id).collect();
        let how = if phase.parallel_safe {
            "beside others"
        } else {
            "alone"
        };
        anstream::println!(
            "{:<44} {how:<14} at most {:>3} s  {}",
            phase.name,
            phase.bound.as_secs(),
            rows.join(" ")
        );
    }
}

/// Progress for people: a moving line on a terminal, and one report a phase.
struct Screen {
    bar: ProgressBar,
    running: Mutex<Vec<&'static str>>,
    to_stderr: bool,
}

impl Screen {
    fn new(count: usize, to_stderr: bool) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(count as u64);
            let style = ProgressStyle::with_template("{spinner} {pos}/{len} {elapsed} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            running: Mutex::default(),
            to_stderr,
        }
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| {
            // A reader that has gone changes nothing about the verdict.
            let _ = if self.to_stderr {
                anstream::stderr().write_all(text.as_bytes())
            } else {
                anstream::stdout().write_all(text.as_bytes())
            };
        });
    }

    fn change(&self, change: impl FnOnce(&mut Vec<&'static str>)) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut running);
        self.bar.set_message(running.join(", "));
    }
}

impl Watcher for Screen {
    fn started(&self, phase: &Phase) {
        self.change(|running| running.push(phase.name));
    }

    fn ended(&self, ran: &Ran) {
        self.change(|running| running.retain(|name| *name != ran.phase.name));
        self.bar.inc(1);
        let text = report::text(ran);
        let style = if ran.outcome.passed() {
            anstyle::AnsiColor::Green.on_default()
        } else {
            anstyle::AnsiColor::Red.on_default().bold()
        };
        let (word, rest) = text.split_at(6);
        self.say(&format!("{style}{word}{style:#}{rest}"));
    }
}
