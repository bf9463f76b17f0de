//! The command line of `trace`.
//!
//! Owns commands, flags and exit codes: 0 the promises are kept, 1 findings, 2 a wrong command line or input
//! that cannot be read, 3 inconclusive. Refuses to judge. Invariant: what programs read goes to stdout, alone.

mod change;
mod compare;
mod split;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::code::Code;
use crate::config::{self, Config};
use crate::files::Open;
use crate::finding::hint;
use crate::judge::{Ask, Judged, judge};
use crate::lsp;
use crate::planted;
use crate::rows::read::{Area, Grade, Row};
use crate::rows::{self, Rows};
use crate::show::stale::Changes;
use crate::show::{html, json, markdown, row, sarif, text};
use crate::workspace::{Given, Workspace};

/// What is promised, what shows it, and what proves that the evidence would notice.
#[derive(Debug, Parser)]
#[command(name = "trace", version, about)]
pub struct Cli {
    /// The repository; the nearest directory upwards with trace.yaml or .git.
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge the repository: rows, tests, results, sabotages.
    Check(Check),
    /// Tell all about a row.
    Explain {
        /// Its id.
        row: String,
        /// Files of results, instead of those of trace.yaml.
        #[arg(long, value_name = "GLOB", num_args = 1..)]
        results: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the rows, or the tests, codes or results.
    List {
        /// What is listed.
        #[arg(value_enum, default_value_t)]
        what: What,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print rows by kinds of evidence and sabotages.
    Matrix {
        /// Files of results, instead of those of trace.yaml.
        #[arg(long, value_name = "GLOB", num_args = 1..)]
        results: Vec<String>,
    },
    /// Write the report.
    Report {
        /// Files of results, instead of those of trace.yaml.
        #[arg(long, value_name = "GLOB", num_args = 1..)]
        results: Vec<String>,
        /// Write the static site into this directory.
        #[arg(long, value_name = "DIR")]
        html: PathBuf,
    },
    /// Check the rows by themselves and write what is generated from them.
    Spec {
        /// Write nothing; exit 1 when a generated file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Add a row with the next free id.
    New(change::New),
    /// Retire a row in favour of others.
    Retire(change::Retire),
    /// Split a row into several, which take over what it needs.
    Split(split::Split),
    /// Tell what changed since a revision: rows, what names them, sabotages.
    Diff(compare::Compare),
    /// Print the share of proven rows as a picture.
    Badge(compare::Badge),
    /// Accept the edges of a row as they are now, or all that are proven.
    Accept(change::Accept),
    /// Serve an editor over standard input and output: hover, go to, completion, findings as you type.
    Lsp,
    /// Print the JSON Schema of trace.yaml.
    Schema,
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// What `list` lists.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum What {
    /// Rows and claims.
    #[default]
    Rows,
    /// Tests and the rows that each names.
    Tests,
    /// Codes of findings.
    Codes,
    /// Files of results and whether they count.
    Results,
}

/// Flags of `check`.
#[derive(Debug, Args)]
struct Check {
    /// Files of results, instead of those of trace.yaml.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    results: Vec<String>,
    /// Ask no row for more than this grade.
    #[arg(long, value_name = "GRADE", default_value = "proven", value_parser = grade)]
    floor: Grade,
    /// Ask every row that changed since this revision, or whose test or sabotage did, to be proven.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Print one JSON object.
    #[arg(long, conflicts_with_all = ["github", "sarif", "md"])]
    json: bool,
    /// Print annotations of GitHub.
    #[arg(long, conflicts_with_all = ["sarif", "md"])]
    github: bool,
    /// Print SARIF.
    #[arg(long, conflicts_with = "md")]
    sarif: bool,
    /// Print Markdown.
    #[arg(long)]
    md: bool,
    /// Print the closing lines and the count of each code, and no single finding.
    #[arg(long)]
    brief: bool,
    /// Judge planted repositories instead, one for each code; exit 2 when a cause is not told.
    #[arg(long)]
    planted: bool,
}

fn grade(text: &str) -> Result<Grade, String> {
    let all = || {
        Grade::ALL
            .into_iter()
            .filter(|grade| *grade != Grade::Hollow)
    };
    all().find(|grade| grade.word() == text).ok_or_else(|| {
        let words: Vec<&str> = all().map(Grade::word).collect();
        format!("one of {}", words.join(", "))
    })
}

/// Runs a command line; the exit code.
///
/// # Errors
///
/// When input cannot be read: the caller prints the chain and exits 2.
pub fn run(cli: Cli) -> Result<u8> {
    match cli.command {
        Command::Schema => {
            println!("{:#}", config::schema());
            return Ok(0);
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "trace", &mut script);
            // A reader that has gone wants no more.
            let _ = std::io::stdout().write_all(&script);
            return Ok(0);
        }
        Command::List {
            what: What::Codes, ..
        } => {
            for code in Code::ALL {
                let severity = code.severity().word();
                anstream::println!("{:<24} {severity:<12} {}", code.word(), code.meaning());
            }
            return Ok(0);
        }
        Command::Check(Check { planted: true, .. }) => return planted(),
        _ => {}
    }
    let root = match cli.root {
        Some(root) => root,
        None => nearest_root(&std::env::current_dir().context("cannot tell where this is")?)?,
    };
    match cli.command {
        Command::Check(check) => {
            let workspace = Workspace::read(&root, &given(&check.results))?;
            let mut ask = ask(check.floor);
            if let Some(rev) = &check.since {
                ask.touched = compare::touched(&root, rev)?;
            }
            let judged = judge(&workspace, &ask);
            print(&workspace, &judged, &check);
            let code = judged.exit();
            // The program ends: the system takes the memory back faster than a walk over all of it.
            std::mem::forget((workspace, judged));
            Ok(code)
        }
        Command::Explain {
            row: id,
            results,
            json,
        } => {
            let workspace = Workspace::read(&root, &given(&results))?;
            let (area, row) = find(&workspace.rows, &id)?;
            let changes = Changes::of(&workspace, Some(&row.id.value));
            let explained = row::explain(&workspace, area, row, &changes);
            if json {
                println!("{}", serde_json::to_string_pretty(&explained)?);
            } else {
                anstream::print!("{}", row::text(&explained));
            }
            Ok(0)
        }
        Command::List { what, json } => list(&Workspace::read(&root, &given(&[]))?, what, json),
        Command::Matrix { results } => {
            let workspace = Workspace::read(&root, &given(&results))?;
            anstream::print!("{}", text::matrix(&workspace));
            Ok(0)
        }
        Command::Report { results, html: dir } => {
            let workspace = Workspace::read(&root, &given(&results))?;
            let judged = judge(&workspace, &ask(Grade::Proven));
            let count = html::write(&workspace, &judged, &dir)?;
            println!("{count} pages in {}", dir.display());
            Ok(0)
        }
        Command::Lsp => lsp::serve(&root, given(&[]), ask(Grade::Passed)).map(|()| 0),
        Command::Spec { check } => spec(&root, check),
        Command::New(new) => change::new(&root, &new),
        Command::Retire(retire) => change::retire(&root, &retire),
        Command::Split(split) => split::split(&root, &split),
        Command::Diff(compare) => compare::compare(&root, &compare),
        Command::Badge(badge) => compare::picture(&root, &badge),
        Command::Accept(accept) => change::accept(&root, &accept),
        Command::Schema | Command::Completions { .. } => Ok(0),
    }
}

/// The results of the command line, and where cargo builds.
fn given(results: &[String]) -> Given {
    Given {
        results: results.to_vec(),
        target: std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from),
        open: Open::new(),
    }
}

fn ask(floor: Grade) -> Ask {
    Ask {
        floor,
        touched: BTreeSet::new(),
        today: jiff::tz::Offset::UTC
            .to_datetime(jiff::Timestamp::now())
            .date()
            .to_string(),
    }
}

fn nearest_root(here: &Path) -> Result<PathBuf> {
    here.ancestors()
        .find(|dir| dir.join(config::FILE).is_file() || dir.join(".git").exists())
        .map(Path::to_owned)
        .with_context(|| format!("no trace.yaml and no .git above {}", here.display()))
}

/// The row of an id, or the nearest right one.
fn find<'a>(rows: &'a Rows, id: &str) -> Result<(&'a Area, &'a Row)> {
    match rows.find(id) {
        Some(found) => Ok(found),
        None => bail!("there is no row {id}{}", hint(id, rows.by_id().into_keys())),
    }
}

fn print(workspace: &Workspace, judged: &Judged, check: &Check) {
    if check.json {
        println!("{:#}", json::check(workspace, judged));
    } else if check.sarif {
        println!("{:#}", sarif::log(judged));
    } else if check.md {
        print!("{}", markdown::page(workspace, judged));
    } else {
        for (severity, fault) in judged.found.iter().filter(|_| !check.brief) {
            if check.github {
                println!("{}", text::annotation(*severity, fault));
            } else {
                anstream::println!("{}", text::finding(*severity, fault));
            }
        }
        anstream::print!("{}", text::by_code(judged));
        anstream::print!("{}", text::summary(workspace, judged));
    }
}

fn list(workspace: &Workspace, what: What, json: bool) -> Result<u8> {
    match what {
        What::Rows if json => println!("{:#}", json::rows(workspace)),
        What::Rows => {
            for (_, row) in workspace.rows.all() {
                let state = row.state.word();
                anstream::println!("{:<6} {state:<12} {}", row.id.value, row.claim.value);
            }
        }
        What::Tests => {
            for shown in &workspace.graph.shown {
                let rows = shown.test.rows.iter();
                let rows: Vec<&str> = rows.map(|named| named.id.as_str()).collect();
                if json {
                    let line = serde_json::json!({
                        "suite": shown.test.suite, "test": shown.test.name, "rows": rows,
                        "kind": shown.test.kind, "file": shown.test.at.file, "line": shown.test.at.line,
                        "cfg": shown.test.cfg, "ran": shown.ran(), "verdict": shown.verdict(),
                    });
                    println!("{line}");
                } else {
                    let kind = shown.test.kind.word();
                    anstream::println!("{kind:<9} {} [{}]", shown.test.id(), rows.join(" "));
                }
            }
        }
        What::Results => {
            for file in &workspace.results.files {
                println!("{}", serde_json::to_string(file)?);
            }
        }
        What::Codes => {}
    }
    Ok(0)
}

fn planted() -> Result<u8> {
    let dir = std::env::temp_dir().join(format!("trace-planted-{}", std::process::id()));
    let missed = planted::missed(&dir);
    // What is left in the temporary directory does no harm.
    let _ = std::fs::remove_dir_all(&dir);
    let missed = missed?;
    for line in &missed {
        anstream::eprintln!("{line}");
    }
    let codes = Code::ALL.len();
    anstream::println!("planted: {codes} causes, {} not told", missed.len());
    Ok(if missed.is_empty() { 0 } else { 2 })
}

fn spec(root: &Path, check: bool) -> Result<u8> {
    let config = Config::read(root)?;
    let (all, faults) = Rows::read(root, &config.spec)?;
    let files = all.generated(config.constants.as_deref());
    let faults = match (faults.is_empty(), check) {
        (true, true) => rows::stale(root, &files, true),
        _ => faults,
    };
    for fault in &faults {
        anstream::eprintln!("{fault}");
    }
    if !faults.is_empty() {
        let unreadable = faults.iter().any(|fault| fault.code == Code::RowUnreadable);
        return Ok(if unreadable { 2 } else { 1 });
    }
    if !check {
        for path in rows::write(root, &files)? {
            println!("wrote {}", path.display());
        }
    }
    println!("{} rows in {} areas", all.all().count(), all.areas.len());
    Ok(0)
}
