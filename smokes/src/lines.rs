//! The JSON lines that a server writes: its log (stderr) and its access log (stdout).
//!
//! Owns reading and searching them. Does not know which events are good.
//! Invariant: a half-written last line is not a line yet.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file that a server appends JSON lines to.
#[derive(Debug, Clone)]
pub struct Lines {
    path: PathBuf,
}

impl Lines {
    /// Reads `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where the lines are kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text, lossily decoded: what is not UTF-8 shows as replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.path).unwrap_or_default()).into_owned()
    }

    /// Every whole line that parses as a JSON object, in order.
    pub fn objects(&self) -> Vec<Value> {
        whole(&self.text())
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(Value::is_object)
            .collect()
    }

    /// Every whole line that is not a JSON object.
    pub fn strangers(&self) -> Vec<String> {
        whole(&self.text())
            .filter(|line| {
                !serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object())
            })
            .map(str::to_owned)
            .collect()
    }

    /// The log lines whose `event` is `name`.
    pub fn events(&self, name: &str) -> Vec<Value> {
        self.objects()
            .into_iter()
            .filter(|line| line["event"] == name)
            .collect()
    }

    /// The last `count` lines, for a failure report.
    pub fn tail(&self, count: usize) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

fn whole(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[m0_spec::row(H23)]
    #[test]
    fn only_whole_lines_count_and_strangers_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let lines = Lines::at(dir.path().join("log"));
        assert!(
            lines.objects().is_empty(),
            "a file that is not there has no lines"
        );
        fs::write(
            lines.path(),
            "{\"event\":\"a\"}\nplain\n7\n{\"event\":\"b\"}\n{\"event\":",
        )
        .expect("written");
        assert_eq!(lines.objects().len(), 2);
        assert_eq!(lines.events("b").len(), 1);
        assert_eq!(lines.strangers(), ["plain", "7"]);
        assert_eq!(lines.tail(2), "{\"event\":\"b\"}\n{\"event\":");
    }
}
