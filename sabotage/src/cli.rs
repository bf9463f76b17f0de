//! The command line: what can be asked, and the exit code of the answer.
//!
//! Owns flags and words; each command is a function below `cli`. Invariant: exit 0 only when what was
//! asked for is as declared; 2 for a wrong command line or files that cannot be read.

mod author;
mod fix;
mod look;
mod manual;
mod outputs;
mod red;
mod retell;
mod shell;
mod start;

pub(crate) use start::gate_for;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::report::told::Told;
use crate::run::jail;
use crate::session::{Options, Session, Unreadable};
use crate::verdict::Exit;

const EXIT_CODES: &str = "\
Exit codes, most serious first:
 70  a defect of this program
130  interrupted: what was judged is told, the rest is PENDING
  2  the command line is wrong, or a file cannot be read
  4  a gate is not green on the clean tree, so there is no verdict
  3  a rule is BROKEN: it proves nothing
  1  a rule was MISSED, or caught elsewhere
  6  a ledger is out of date: a known gap is closed, a pin drifted, evidence is stale
  5  INFRA, TIMEOUT or FLAKY: nothing can be concluded
  8  incomplete: rules or shards without a verdict
  7  nothing ran
  0  all is as declared

Start: sabotage init, then sabotage run; sabotage COMMAND --help shows an example.";

/// Breaks one promise at a time in a copy of your repository, and says which gate noticed.
///
/// Start with `sabotage init`, then `sabotage run`. Your working tree is never changed by a run.
#[derive(Debug, Parser)]
#[command(
    name = "sabotage",
    version,
    about,
    after_help = EXIT_CODES
)]
struct Cli {
    /// A directory of the repository; the default is the present one.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make sabotage/gates.yaml and a first rule for this repository.
    Init,
    /// Print a new rule to fill in; with --from-diff, made from your uncommitted changes.
    New {
        /// Its id: lower-case words joined by `-`.
        id: String,
        /// Take the edits from `git diff` (which stays as it is).
        #[arg(long)]
        from_diff: bool,
    },
    /// Print a rule drafted from a fix: its product hunks taken back, its tests expected to notice.
    FromFix {
        /// The commit of the fix.
        commit: String,
    },
    /// Check rules, gates and pins without a build; 6 when a rule's surroundings have changed.
    Lint,
    /// List rules with their rows and the checks that should notice.
    List {
        /// Names, patterns, `tag:`, `row:`, `gate:`.
        selectors: Vec<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Apply rules one at a time to a copy, and run the gates that should notice.
    Run(Box<RunOptions>),
    /// Show a rule as a diff, and its last verdict.
    Show {
        /// Its id.
        id: String,
    },
    /// Apply a rule to a directory that is a copy of the repository.
    Apply {
        /// Its id.
        id: String,
        /// The copy; the repository itself is refused.
        #[arg(long)]
        dir: PathBuf,
    },
    /// Open a shell in a copy with the rule applied; exit 0 when it has ended, whatever it ended with.
    Shell {
        /// Its id.
        id: String,
        /// A command instead of your shell.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Pin rules to their present surroundings, after a look (writes sabotage/known.lock).
    Accept {
        /// Names, patterns, `tag:`, `row:`, `gate:`; none means all.
        selectors: Vec<String>,
    },
    /// Say what this machine and this repository give to work with.
    Doctor {
        /// Show for each gate that it goes red when its files are emptied; 4 when one does not.
        #[arg(long)]
        prove_gates: bool,
    },
    /// Say which part of a commit or branch is held by its tests.
    Prove(ProveOptions),
    /// Tell the last run again, in any form, without running anything.
    Report(retell::ReportOptions),
    /// Put the shards of one run together, with the exit code of the whole.
    Merge(retell::MergeOptions),
    /// Print evidence.json of the last run; `verify` says whether it is still true of the tree.
    Evidence {
        #[command(subcommand)]
        what: Option<retell::Evidence>,
    },
    /// Print the JSON Schema of a file that you write or that a run writes.
    Schema {
        /// Which file.
        #[arg(value_parser = author::SCHEMAS.map(|(name, _)| name))]
        which: String,
    },
    /// Remove everything kept for this repository in the cache.
    Clean,
    /// Print completions of these commands for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one for each command.
    Man {
        /// Write sabotage.1, sabotage-run.1 and so on here.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct RunOptions {
    /// Names, patterns (`publish-*`), `tag:WORD`, `row:E22`, `gate:NAME`; none means all.
    selectors: Vec<String>,
    /// Only rules that a change since this revision touches.
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Only part K of N.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Begin no rule after this time (`10m`); the rest is PENDING.
    #[arg(long, value_name = "TIME", value_parser = time)]
    budget: Option<Duration>,
    /// Runs of each expected check; when they disagree the verdict is FLAKY.
    #[arg(long, default_value_t = 1, value_name = "N")]
    repeat: u32,
    /// Clean runs of each gate before any rule.
    #[arg(long, default_value_t = 2, value_name = "N")]
    baseline: u32,
    /// Keep the verdicts of the last run, if it was of the same tree.
    #[arg(long)]
    resume: bool,
    /// Judge every rule anew, and keep no verdict for later runs.
    #[arg(long)]
    no_cache: bool,
    /// Look at the clean tree again after so many rules; 0 looks at the end only.
    #[arg(long, default_value_t = 200, value_name = "N")]
    sentinel: usize,
    /// A build for each rule, also where one build could serve all.
    #[arg(long)]
    per_rule: bool,
    /// When the expected check misses, do not look for another that notices.
    #[arg(long)]
    no_elsewhere: bool,
    /// Ask every check of every gate about every rule, and say who notices (slow).
    #[arg(long)]
    matrix: bool,
    /// Run gates without namespaces.
    #[arg(long)]
    no_jail: bool,
    /// Gates at once; the default follows from what the clean runs cost.
    #[arg(short, long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Show the closing line only.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    outputs: outputs::Outputs,
}

#[derive(Debug, clap::Args)]
struct ProveOptions {
    /// The commit.
    #[arg(required_unless_present = "base")]
    commit: Option<String>,
    /// Prove everything since this revision instead.
    #[arg(long, value_name = "REV", conflicts_with = "commit")]
    base: Option<String>,
    /// The gate to ask; the default is every gate of sabotage/gates.yaml.
    #[arg(long)]
    gate: Vec<String>,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((k, n)) if k >= 1 && k <= n => Ok((k, n)),
        _ => Err("not K/N with 1 ≤ K ≤ N".into()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    crate::schema::read::duration(text).ok_or_else(|| "not a time such as 90s or 10m".into())
}

/// The whole program.
pub fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    match (
        words.get(1).map(String::as_str),
        words.get(2).and_then(|text| jail::asked(text)),
    ) {
        (Some(jail::OUTER), Some(asked)) => return jail::outer(&asked),
        (Some(jail::INIT), Some(asked)) => return jail::init(&asked),
        _ => {}
    }
    // `cargo sabotage run` starts `cargo-sabotage sabotage run`.
    if words.get(1).is_some_and(|word| word == "sabotage") {
        words.remove(1);
    }
    let parsed = words_of_us()
        .try_get_matches_from(words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let usage = error.use_stderr();
            // Nothing is left to tell when even the terminal is closed.
            let _ = error.print();
            return ExitCode::from(if usage { Exit::Usage.code() } else { 0 });
        }
    };
    ExitCode::from(guarded(|| dispatch(cli)).code())
}

/// The exit code of the work: an error is the caller's to mend, a panic is a defect of this program.
fn guarded(work: impl FnOnce() -> Result<Exit>) -> Exit {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            anstream::eprintln!("sabotage: {error:#}");
            Exit::Usage
        }
        Err(_) => {
            anstream::eprintln!(
                "sabotage: a defect of this program; your working tree is as it was"
            );
            Exit::Internal
        }
    }
}

/// The command line with an example for each command.
fn words_of_us() -> clap::Command {
    manual::with_examples(Cli::command())
}

fn dispatch(cli: Cli) -> Result<Exit> {
    let here = match cli.directory {
        Some(dir) => dir,
        None => std::env::current_dir().context("the present directory")?,
    };
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut words_of_us(), "sabotage", &mut script);
        // A reader that has gone wants no more.
        let _ = std::io::stdout().write_all(&script);
        return Ok(Exit::Declared);
    }
    if let Command::Man { dir } = &cli.command {
        manual::man(words_of_us(), dir.as_deref())?;
        return Ok(Exit::Declared);
    }
    if let Command::Schema { which } = &cli.command {
        anstream::println!("{}", author::schema(which)?);
        return Ok(Exit::Declared);
    }
    let root = crate::tree::root_of(&here)?;
    match cli.command {
        Command::Init => start::init(&root),
        Command::New { id, from_diff } => author::new(&root, &id, from_diff),
        Command::FromFix { commit } => fix::from_fix(&root, &commit),
        Command::Shell { id, command } => shell::shell(&root, &id, &command),
        Command::Lint => look::lint(&root),
        Command::List { selectors, json } => look::list(&root, &selectors, json),
        Command::Run(options) => run(&root, &options),
        Command::Show { id } => look::show(&root, &id),
        Command::Apply { id, dir } => author::apply(&root, &id, &dir),
        Command::Accept { selectors } => author::accept(&root, &selectors),
        Command::Doctor { prove_gates: true } => red::prove_gates(&root),
        Command::Doctor { .. } => start::doctor(&root),
        Command::Prove(options) => {
            let what = match (options.commit, options.base) {
                (Some(commit), _) => crate::prove::What::Commit(commit),
                (None, Some(base)) => crate::prove::What::Since(base),
                (None, None) => anyhow::bail!("name a commit, or --base REV"),
            };
            crate::prove::run(&root, &what, &options.gate)
        }
        Command::Report(options) => retell::report(&root, &options),
        Command::Merge(options) => retell::merged(&root, &options),
        Command::Evidence { what: None } => retell::evidence(&root),
        Command::Evidence {
            what: Some(retell::Evidence::Verify { file }),
        } => retell::verify(&root, file.as_deref()),
        Command::Clean => start::clean(&root),
        Command::Schema { .. } | Command::Completions { .. } | Command::Man { .. } => {
            Ok(Exit::Declared)
        }
    }
}

fn run(root: &Path, asked: &RunOptions) -> Result<Exit> {
    let options = Options {
        selectors: asked.selectors.clone(),
        since: asked.since.clone(),
        shard: asked.shard,
        budget: asked.budget,
        repeat: asked.repeat,
        baseline: asked.baseline,
        resume: asked.resume,
        per_rule: asked.per_rule,
        elsewhere: !asked.no_elsewhere,
        matrix: asked.matrix,
        jailed: !asked.no_jail,
        jobs: asked.jobs,
        cache: !asked.no_cache,
        sentinel: asked.sentinel,
        quiet: asked.quiet,
    };
    let session = match Session::open(root, options)? {
        Ok(session) => session,
        Err(Unreadable(findings)) => return Ok(complain(&findings)),
    };
    let summary = session.run()?;
    let exit = asked.outputs.give(&Told::of(&summary), root)?;
    if !asked.quiet && !asked.outputs.prints() && summary.exit != Exit::Declared {
        anstream::println!("details: {}", summary.dir.display());
    }
    Ok(exit)
}

/// Prints findings; the exit code of files that cannot be understood.
fn complain(findings: &[crate::finding::Finding]) -> Exit {
    for finding in findings {
        anstream::eprintln!("{finding}");
    }
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::guarded;
    use crate::verdict::Exit;

    #[m0_spec::row(B50)]
    #[test]
    fn a_panic_is_a_defect_and_an_error_is_the_callers() {
        assert_eq!(guarded(|| panic!("on purpose")).code(), 70);
        assert_eq!(guarded(|| anyhow::bail!("no such file")).code(), 2);
        assert_eq!(guarded(|| Ok(Exit::Tests)).code(), 1);
    }
}
