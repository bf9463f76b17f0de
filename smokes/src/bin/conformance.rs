//! The binary `conformance`: plays the table of raw requests, then lets other people's clients judge.
//!
//! Owns the command line, the report and the exit code: 0 all that was asked for ran and was right, 1 something
//! was wrong or did not run, 2 usage. `cargo xtask conformance` builds and starts it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde_json::json;
use smokes::conformance::part::Part;
use smokes::conformance::tools::Tools;
use smokes::conformance::{sse, table, websocket};
use smokes::run::Run;
use smokes::table::{cases::Group, groups};

/// Plays the table of raw requests to the server and lets other people's clients judge it.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Options {
    /// Run only this part. May be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Which>,
    /// Of the table, play only this group. May be repeated.
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Show the cases of the table and run nothing.
    #[arg(long)]
    list: bool,
    /// One JSON object on stdout; all else goes to stderr.
    #[arg(long)]
    json: bool,
    /// The server to drive. Default: `host_check` beside this binary.
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// Where other people's clients are fetched to. Default: `conformance` beside this binary.
    #[arg(long, value_name = "DIR")]
    tools: Option<PathBuf>,
}

/// A part of the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Raw requests; needs nothing.
    Table,
    /// Four clients of event streams; needs node, npm, python3 and curl.
    Sse,
    /// The browser's EventSource; needs chromium.
    Browser,
    /// The Autobahn cases; needs python3.
    Websocket,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let groups = match chosen(&options) {
        Ok(groups) => groups,
        Err(error) => {
            anstream::eprintln!("conformance: {error:#}");
            return ExitCode::from(2);
        }
    };
    match drive(&options, &groups) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chosen(options: &Options) -> Result<Vec<Group>> {
    let all = groups()?;
    for name in &options.group {
        let known = all.iter().any(|group| group.name == *name);
        anyhow::ensure!(known, "no group is named {name} (--list shows them)");
    }
    let wanted = |group: &Group| options.group.is_empty() || options.group.contains(&group.name);
    Ok(all.into_iter().filter(wanted).collect())
}

fn drive(options: &Options, groups: &[Group]) -> Result<bool> {
    if options.list {
        list(groups);
        return Ok(true);
    }
    let own = std::env::current_exe().context("this very binary")?;
    let server = options.server_bin.clone();
    let server = server.unwrap_or_else(|| own.with_file_name("host_check"));
    let server = server.canonicalize().with_context(|| {
        format!(
            "no server at {} (cargo build -p host_check, or --server-bin)",
            server.display()
        )
    })?;
    let dir = tempfile::Builder::new().prefix("conformance-").tempdir()?;
    let run = Run::new(server, own.with_file_name("smokes"), dir.path().to_owned());
    let tools = options.tools.clone();
    let tools = Tools::new(tools.unwrap_or_else(|| own.with_file_name("conformance-tools")));
    let mut parts = Vec::new();
    for which in Which::value_variants() {
        // A group is of the table, so whoever names one asks for the table alone.
        let asked = match (&options.only[..], &options.group[..]) {
            ([], []) => true,
            ([], _) => *which == Which::Table,
            (only, _) => only.contains(which),
        };
        if !asked {
            continue;
        }
        let part = match which {
            Which::Table => table::run(&run, groups)?,
            Which::Sse => sse::clients(&run, &tools)?,
            Which::Browser => sse::browser(&run, &tools)?,
            Which::Websocket => websocket::run(&run, &tools)?,
        };
        if options.json {
            anstream::eprint!("{}", part.text());
        } else {
            anstream::print!("{}", part.text());
        }
        parts.push(part);
    }
    Ok(close(options, &parts))
}

fn close(options: &Options, parts: &[Part]) -> bool {
    let count = |of: fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
    let passed = count(|part| part.count().passed);
    let failed = count(|part| part.count().failed);
    let not_run = count(|part| usize::from(part.not_run.is_some()));
    let line =
        format!("conformance: {passed} passed, {failed} failed, {not_run} part(s) did not run");
    let green = !parts.is_empty() && parts.iter().all(Part::is_green);
    if options.json {
        anstream::eprintln!("{line}");
        println!("{}", json!({ "green": green, "parts": parts }));
    } else {
        anstream::println!("{line}");
    }
    green
}

fn list(groups: &[Group]) {
    for group in groups {
        for case in &group.cases {
            let side = if case.refused { "refused" } else { "served" };
            anstream::println!(
                "{:<14} {side:<8} {:<20} {}",
                group.name,
                case.section,
                case.name
            );
        }
    }
}
