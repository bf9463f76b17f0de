//! The Test Anything Protocol: `ok 1 - name`, `not ok 2 - name # SKIP why`, diagnostics below.
//!
//! Owns its words and its plan: a run that stops before the plan's number is not a result.

use super::{Checks, Status, add};

pub(super) fn read(text: &str) -> Result<Checks, String> {
    let mut checks = Checks::new();
    let (mut planned, mut seen) = (None, 0_usize);
    let mut failed: Option<String> = None;
    let mut notes = String::new();
    for line in text.lines() {
        if let Some(reason) = line.strip_prefix("Bail out!") {
            return Err(format!("the gate bailed out:{reason}"));
        }
        if let Some(plan) = line.strip_prefix("1..") {
            planned = plan
                .split_whitespace()
                .next()
                .and_then(|number| number.parse::<usize>().ok());
            continue;
        }
        if let Some((ok, name, directive)) = point(line) {
            finish(&mut checks, &mut failed, &mut notes);
            seen += 1;
            let name = if name.is_empty() {
                seen.to_string()
            } else {
                name
            };
            match (ok, directive.as_str()) {
                (_, "SKIP" | "TODO") => add(&mut checks, &name, Status::Skipped),
                (true, _) => add(&mut checks, &name, Status::Passed),
                (false, _) => failed = Some(name),
            }
        } else if failed.is_some() {
            notes.push_str(line.trim_start_matches('#').trim());
            notes.push('\n');
        }
    }
    finish(&mut checks, &mut failed, &mut notes);
    match planned {
        Some(planned) if planned != seen => Err(format!(
            "the plan says {planned} checks, {seen} were reported"
        )),
        None if seen > 0 => Err("there is no plan (`1..N`)".into()),
        _ => Ok(checks),
    }
}

fn finish(checks: &mut Checks, failed: &mut Option<String>, notes: &mut String) {
    if let Some(name) = failed.take() {
        add(checks, &name, Status::Failed(notes.trim().to_owned()));
    }
    notes.clear();
}

/// A test point: whether it is ok, its name, its directive in capitals.
fn point(line: &str) -> Option<(bool, String, String)> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let word = directive
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    Some((ok, name.trim().to_owned(), word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(B9)]
    #[test]
    fn points_diagnostics_skips_and_a_plan_that_is_not_kept() {
        let text = "TAP version 14\n1..4\nok 1 - a\nnot ok 2 - b\n# got 3\n# want 4\nok 3 - c # SKIP no net\nok 4 d\n";
        let checks = read(text).expect("the plan is kept");
        assert_eq!(checks["a"], Status::Passed);
        assert_eq!(checks["b"], Status::Failed("got 3\nwant 4".into()));
        assert_eq!(checks["c"], Status::Skipped);
        assert_eq!(checks["d"], Status::Passed);
        assert!(read("1..2\nok 1 - a\n").is_err_and(|why| why.contains("says 2")));
        assert!(read("ok 1 - a\n").is_err());
        assert!(read("1..1\nBail out! no disk\n").is_err_and(|why| why.contains("no disk")));
    }
}
