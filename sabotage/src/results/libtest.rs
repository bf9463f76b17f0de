//! The text of Rust's test harness: `test NAME ... ok`, and the sections of failures.
//!
//! Owns its words. A line that names no result is passed over: what a test prints may look like anything.

use super::{Checks, Status, add};

pub(super) fn read(text: &str) -> Checks {
    let mut checks = Checks::new();
    for line in text.lines() {
        let Some((name, word)) = result(line) else {
            continue;
        };
        let status = match word {
            "ok" => Status::Passed,
            "FAILED" => Status::Failed(section(text, name)),
            _ => Status::Skipped,
        };
        add(&mut checks, name, status);
    }
    checks
}

/// Name and word of a result line.
fn result(line: &str) -> Option<(&str, &str)> {
    let (name, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let known = matches!(word, "ok" | "FAILED") || word.starts_with("ignored");
    known.then_some((name, word))
}

/// What stands between `---- NAME stdout ----` and the next section.
fn section(text: &str, name: &str) -> String {
    let head = format!("---- {name} stdout ----");
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line == head {
            inside = true;
        } else if inside && (line.starts_with("---- ") || line == "failures:") {
            break;
        } else if inside {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(B9)]
    #[test]
    fn names_words_and_sections() {
        let text = "running 4 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\
             test e ... ignored, slow\n\nfailures:\n\n---- d stdout ----\nleft: 1\nright: 2\n\n\
             failures:\n    d\n\ntest result: FAILED. 2 passed; 1 failed; 1 ignored\n";
        let checks = read(text);
        assert_eq!(checks["a::b"], Status::Passed);
        assert_eq!(checks["c"], Status::Passed);
        assert_eq!(checks["d"], Status::Failed("left: 1\nright: 2".into()));
        assert_eq!(checks["e"], Status::Skipped);
        assert_eq!(checks.len(), 4);
    }
}
