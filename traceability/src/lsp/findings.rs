//! What falls short, as an editor shows it.
//!
//! Owns the mapping of findings to files and ranges. Refuses to judge. Invariant: findings of files that are not there,
//! as of results that are missing, stand at `trace.yaml`, which names them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString};

use super::words::Encoding;
use crate::code::Severity;
use crate::config;
use crate::files::{self, Open};
use crate::judge::Judged;
use crate::workspace::Workspace;

/// The findings of each file that has some.
pub(super) fn by_file(
    workspace: &Workspace,
    judged: &Judged,
    open: &Open,
    encoding: Encoding,
) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
    let mut texts: BTreeMap<&PathBuf, Option<String>> = BTreeMap::new();
    let mut found: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
    for (severity, fault) in &judged.found {
        let at = &fault.finding.at;
        let text = texts
            .entry(&at.file)
            .or_insert_with(|| files::text(&workspace.root, open, &at.file).ok());
        let (file, range) = match text {
            Some(text) => (at.file.clone(), encoding.range(text, at.line, at.column)),
            None => (config::FILE.into(), encoding.range("", 1, 1)),
        };
        found.entry(file).or_default().push(Diagnostic {
            range,
            severity: Some(match severity {
                Severity::Error | Severity::Unreadable => DiagnosticSeverity::ERROR,
                Severity::Inconclusive => DiagnosticSeverity::INFORMATION,
                Severity::Warning | Severity::Off => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(fault.code.word().into())),
            source: Some("trace".into()),
            message: fault.finding.message.clone(),
            ..Diagnostic::default()
        });
    }
    found
}
