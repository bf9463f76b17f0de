//! What a person sees: titles and coloured words.
//!
//! Owns the two colours. Refuses to decide whether there is colour: `anstream` strips it unless the
//! stream is a terminal and NO_COLOR is unset.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

const TITLE: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// Begins a part of the output, on the error stream as cargo's own progress.
pub(crate) fn title(text: &str) {
    anstream::eprintln!("\n{TITLE}== {text}{TITLE:#}");
}

/// A word that is good news; print it with `anstream`.
pub(crate) fn good(text: impl Display) -> String {
    format!("{GOOD}{text}{GOOD:#}")
}

/// A word that is bad news; print it with `anstream`.
pub(crate) fn bad(text: impl Display) -> String {
    format!("{BAD}{text}{BAD:#}")
}
