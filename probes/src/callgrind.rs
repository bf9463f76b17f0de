//! Instructions that a server runs in user mode, as valgrind's callgrind counts them.
//!
//! Owns the count of one run and the difference of two. Refuses to know a server: whoever starts it puts valgrind before it.
//! Invariant: what a server does before its first and after its last request is in both runs, so in no figure.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The program that counts.
pub const VALGRIND: &str = "valgrind";

/// An error that says how to install valgrind, where it is not there.
pub fn ensure_installed(program: &str) -> Result<()> {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("{program} --version ended with {status}"),
        Err(error) => bail!(
            "cannot count instructions: no {program} ({error}); Debian: apt-get install valgrind"
        ),
    }
}

/// The arguments of valgrind before the program that it runs.
pub fn arguments(out: &Path) -> [String; 2] {
    let out = format!("--callgrind-out-file={}", out.display());
    ["--tool=callgrind".to_owned(), out]
}

/// All instructions of a run that has ended, out of the file that callgrind left.
pub fn total(out: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(out)
        .with_context(|| format!("callgrind left no {}", out.display()))?;
    parse(&text).with_context(|| format!("{} has no total", out.display()))
}

/// The line `totals:` ends the file and sums all of it (callgrind's manual, "File format").
fn parse(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))?;
    // The first event that it counts is instructions; there is no other unless asked for.
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// One run of a server: its instructions and the requests that it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// From its start to its end.
    pub instructions: u64,
    /// Answered.
    pub requests: u64,
}

/// Instructions of one request: what the longer run took more, over the requests that it answered more.
///
/// ```
/// use probes::callgrind::{Count, each};
///
/// let start_up = 1_000_000;
/// let run = |requests| Count { instructions: start_up + 7 * requests, requests };
/// assert_eq!(each(run(100), run(1100))?, 7.0);
/// # anyhow::Ok(())
/// ```
///
/// # Errors
///
/// When the longer run did not answer more, or did not take more.
pub fn each(short: Count, long: Count) -> Result<f64> {
    ensure!(
        long.requests > short.requests && long.instructions > short.instructions,
        "nothing was measured: {short:?} and then {long:?}"
    );
    let more = long.instructions - short.instructions;
    Ok(more as f64 / (long.requests - short.requests) as f64)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small whole numbers are exact")]
mod tests {
    use super::{Count, each, ensure_installed, parse};

    #[m0_spec::row(H57)]
    #[test]
    fn start_and_end_of_a_server_are_in_no_figure() {
        let run = |start: u64, requests: u64| Count {
            instructions: start + 30 * requests,
            requests,
        };
        for start in [0, 5_000_000, 90_000_000] {
            let figure = each(run(start, 200), run(start, 1200)).expect("measured");
            assert!(figure == 30.0, "{figure} beside a start of {start}");
        }
        assert!(each(run(9, 200), run(9, 200)).is_err(), "no request more");
        assert!(
            each(run(9, 300), run(9, 200)).is_err(),
            "the longer run first"
        );
        assert!(
            each(run(90_000, 1), run(0, 2)).is_err(),
            "the longer run took less"
        );
    }

    #[m0_spec::row(H57)]
    #[test]
    fn the_total_is_that_of_the_whole_file() {
        let text =
            "# callgrind format\nevents: Ir\nsummary: 7\n\nfn=(1) main\n16 20\n\ntotals: 4242\n";
        assert_eq!(parse(text), Some(4242));
        assert_eq!(
            parse("events: Ir\nsummary: 7\n"),
            None,
            "a file that was cut off"
        );
        assert_eq!(parse("totals: many\n"), None);
    }

    #[m0_spec::row(H57)]
    #[test]
    fn a_machine_without_valgrind_is_told_how_to_get_it() {
        let error = ensure_installed("no-such-valgrind").expect_err("it is not there");
        let text = error.to_string();
        assert!(
            text.contains("no no-such-valgrind") && text.ends_with("apt-get install valgrind"),
            "{text}"
        );
    }
}
