//! The command `probes`: asks the questions that the command line names.
//!
//! Owns the flags and the exit code. Refuses to measure: each probe is a file under `questions`.
//! Invariant: exit 0 when everything that was asked was measured, 1 when something was not (or, with `--strict`, when
//! a goal is missed), 2 for a wrong command line.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use probes::machine::Machine;
use probes::peak;
use probes::questions::{QUESTIONS, Question, named};
use probes::report::{Report, verdict};
use probes::session::{Session, raise_descriptor_limit};
use probes::trace::trace;

/// Measures the real server, each figure beside a peer in the same run.
///
/// Start it as `cargo xtask probe NAME`, which builds the server, the peers and this program in release.
#[derive(Parser)]
#[command(name = "probes", bin_name = "cargo xtask probe", after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Rounds instead of the probe's own number.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Seconds instead of the probe's own number, where it measures for a time (loris).
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: Option<u16>,
    /// Append one JSON object a figure to this file, and one with the verdict of each probe.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write what was measured to this file as Markdown: servers that are compared in a table, with commit and machine.
    #[arg(long, global = true, value_name = "FILE")]
    md: Option<PathBuf>,
    /// A goal that is missed is a failure; ask for it on a quiet machine only.
    #[arg(long, global = true)]
    strict: bool,
    /// Keep pictures of what a browser showed in this directory.
    #[arg(long, global = true, value_name = "DIR")]
    shots: Option<PathBuf>,
    /// Where host_check, examples/router, examples/service, peer_axum, peer_actix, peer_ntex, peer_nginx, peer_raw and trace are; by default beside this program.
    #[arg(long, global = true, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  cargo xtask probe list
  cargo xtask probe drain --rounds 5
  cargo xtask probe all --json figures.jsonl

Exit: 0 measured, 1 something could not be measured (or a goal is missed, with --strict), 2 wrong command line.
Times by the clock mean little while other work runs; the table says `crowded` then. Processor time stays usable.";

#[derive(Subcommand, Clone, Copy)]
enum Command {
    /// Kill the producer's worker: when does a stream on its sibling beat again?
    Respawn,
    /// Bursts of connections: how evenly are they shared, beside the bare race?
    #[command(name = "accept_spread", alias = "accept-spread")]
    AcceptSpread,
    /// SIGTERM with idle connections and held streams: when has the host exited?
    Drain,
    /// Bytes for each held stream, beside axum, actix-web, ntex and a bare epoll loop.
    Memory,
    /// Processor time of a keep-alive request, beside axum, actix-web, ntex, nginx and a bare epoll loop.
    Rps,
    /// Processor time that the access log adds to a request.
    #[command(name = "access_log", alias = "access-log")]
    AccessLog,
    /// Processor time of a delivered event, beside axum, actix-web, ntex, nchan and a bare epoll loop.
    Fanout,
    /// Ten thousand held streams on one worker and over two: memory, time to the last delivery, processor time.
    Crowd,
    /// Six hundred slow peers on a worker: does a good client wait at most twice as long, and is each of them cut?
    Loris,
    /// Instructions of a keep-alive request, beside axum, actix-web, ntex and a bare epoll loop (needs valgrind).
    Instructions,
    /// `trace` on a grown repository of 1,000 rows and on one of ten times the size: time and memory.
    #[command(name = "trace_scale", alias = "trace-scale")]
    TraceScale,
    /// The report of 1,000 rows in Chromium: does it work, and how fast is its search?
    #[command(name = "report_search", alias = "report-search")]
    ReportSearch,
    /// `trace` on a repository of Python and one of TypeScript, whose own runners are run: what does it find?
    #[command(name = "trace_runners", alias = "trace-runners")]
    TraceRunners,
    /// Every probe, one after the other.
    All,
    /// Every probe with its question and its rows; measures nothing.
    List,
}

impl Command {
    fn questions(self) -> Vec<&'static Question> {
        let name = match self {
            Self::Respawn => "respawn",
            Self::AcceptSpread => "accept_spread",
            Self::Drain => "drain",
            Self::Memory => "memory",
            Self::Rps => "rps",
            Self::AccessLog => "access_log",
            Self::Fanout => "fanout",
            Self::Crowd => "crowd",
            Self::Loris => "loris",
            Self::Instructions => "instructions",
            Self::TraceScale => "trace_scale",
            Self::ReportSearch => "report_search",
            Self::TraceRunners => "trace_runners",
            Self::All | Self::List => return QUESTIONS.iter().collect(),
        };
        vec![named(name).expect("each command but two is a probe's name")]
    }
}

fn main() -> ExitCode {
    // Not a command of the user's: a probe starts this program so to measure another one.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == peak::WORD) {
        return peak::main(&words.collect::<Vec<_>>());
    }
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let questions = cli.command.questions();
    if matches!(cli.command, Command::List) {
        for question in questions {
            let rows: Vec<&str> = question.rows.iter().map(|row| row.id).collect();
            println!(
                "{:14} {} [{}]",
                question.name,
                question.asks,
                rows.join(", ")
            );
        }
        return Ok(true);
    }
    raise_descriptor_limit()?;
    let mut json = cli.json.as_ref().map(open).transpose()?;
    let machine = Machine::here();
    let mut good = true;
    let mut pages = Vec::new();
    for question in questions {
        if trace(question)? {
            continue;
        }
        let (lines, failure) = match ask(cli, question, &machine) {
            Ok(report) => {
                anstream::println!("{}", report.table());
                let missed = report.missed();
                good &= missed.is_none() || !cli.strict;
                pages.push(report.markdown());
                (report.lines(), missed)
            }
            Err(error) => {
                // The next question may still be answered.
                anstream::eprintln!("error: {}: {error:#}", question.name);
                good = false;
                let name = question.name;
                pages.push(format!("### `{name}`: not measured\n\n{error:#}\n\n"));
                (Vec::new(), Some(format!("{error:#}")))
            }
        };
        if let Some(json) = &mut json {
            let verdict = verdict(question, &machine, failure.as_deref());
            for line in lines.iter().chain([&verdict]) {
                writeln!(json, "{line}").context("cannot write the JSON lines")?;
            }
        }
    }
    // At the end, so that a run that is broken off leaves the page of an earlier one.
    if let Some(path) = cli.md.as_ref().filter(|_| !pages.is_empty()) {
        std::fs::write(path, pages.concat())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(good)
}

fn ask(cli: &Cli, question: &'static Question, machine: &Machine) -> Result<Report> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = own.parent().context("this program stands in a directory")?;
    let bin_dir = cli.bin_dir.clone().unwrap_or_else(|| beside.to_owned());
    let rounds = cli.rounds.map_or(question.rounds, usize::from);
    let session = Session::new(bin_dir, rounds, cli.seconds, cli.shots.clone());
    let mut report = Report::of(question, machine.clone());
    let outcome = (question.run)(&session, &mut report);
    session.close();
    outcome?;
    report.ensure_measured()?;
    Ok(report)
}

fn open(path: &PathBuf) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}
