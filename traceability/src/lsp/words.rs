//! Places in texts: between the editor's positions and ours, and the row id under the cursor.
//!
//! Owns columns: the editor counts units of UTF-16 (or bytes, where it says so), we count characters from 1.
//! Refuses to know rows. Invariant: a position outside of a text is its nearest end, never a panic.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use lsp_types::{ClientCapabilities, Position, PositionEncodingKind, Range, Uri};
use url::Url;

/// What the editor counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// Bytes where the editor takes them, else what every editor takes.
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        let general = capabilities.general.as_ref();
        let offered = general.and_then(|general| general.position_encodings.as_ref());
        if offered.is_some_and(|offered| offered.contains(&PositionEncodingKind::UTF8)) {
            Self::Utf8
        } else {
            Self::Utf16
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
        }
    }

    /// Where so many of the line's characters end, as the editor counts.
    fn units(self, line: &str, characters: usize) -> u32 {
        let before = line.chars().take(characters);
        before.map(|c| self.width(c)).sum::<usize>() as u32
    }

    /// The byte of a line at which a position is.
    fn byte(self, line: &str, units: u32) -> usize {
        let mut seen = 0;
        for (at, c) in line.char_indices() {
            if seen >= units as usize {
                return at;
            }
            seen += self.width(c);
        }
        line.len()
    }

    /// The word at a place (line and column from 1), or the rest of its line where no word is.
    pub(super) fn range(self, text: &str, line: u64, column: u64) -> Range {
        let number = line.saturating_sub(1) as u32;
        let content = text.lines().nth(number as usize).unwrap_or_default();
        let start = column.saturating_sub(1) as usize;
        let rest = content.chars().skip(start);
        let word = rest.clone().take_while(|c| is_word(*c)).count();
        let length = if word > 0 { word } else { rest.count() };
        let position = |characters| Position::new(number, self.units(content, characters));
        Range::new(position(start), position(start + length))
    }

    /// The line's text before a position.
    pub(super) fn before(self, text: &str, at: Position) -> &str {
        let line = text.lines().nth(at.line as usize).unwrap_or_default();
        &line[..self.byte(line, at.character)]
    }

    /// The row id at a position, the cursor in it or at its end.
    pub(super) fn id(self, text: &str, at: Position) -> Option<&str> {
        let line = text.lines().nth(at.line as usize)?;
        let cursor = self.byte(line, at.character);
        let start = line[..cursor].rfind(|c| !is_word(c)).map_or(0, |found| {
            found + line[found..].chars().next().map_or(1, char::len_utf8)
        });
        let end = line[cursor..]
            .find(|c| !is_word(c))
            .map_or(line.len(), |found| cursor + found);
        Some(&line[start..end]).filter(|word| is_id(word))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Letters of an area and a number.
fn is_id(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    number.len() < word.len() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// The path of an address within the repository; none for what lies outside.
pub(super) fn path_of(root: &Path, uri: &Uri) -> Option<PathBuf> {
    let full = Url::parse(uri.as_str()).ok()?.to_file_path().ok()?;
    // An editor may know the repository by a link.
    let real = full.parent().and_then(|dir| dir.canonicalize().ok());
    let real = real.zip(full.file_name()).map(|(dir, name)| dir.join(name));
    let full = real.unwrap_or(full);
    full.strip_prefix(root).ok().map(Path::to_owned)
}

/// The address of a path within the repository.
pub(super) fn uri_of(root: &Path, path: &Path) -> Option<Uri> {
    let url = Url::from_file_path(root.join(path)).ok()?;
    Uri::from_str(url.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use lsp_types::{Position, Range};

    use super::{Encoding, path_of, uri_of};

    #[m0_spec::row(T20)]
    #[test]
    fn columns_are_counted_as_the_editor_counts() {
        // The first character is one of ours, two of UTF-16, four bytes.
        let text = "x\n\u{1f600} # proves: E22, E23\n";
        let at = |character| Position::new(1, character);
        for (encoding, first) in [(Encoding::Utf16, 13), (Encoding::Utf8, 15)] {
            assert_eq!(
                encoding.range(text, 2, 13),
                Range::new(at(first), at(first + 3))
            );
            for character in first..=first + 3 {
                assert_eq!(encoding.id(text, at(character)), Some("E22"), "{character}");
            }
            assert_eq!(encoding.id(text, at(first - 3)), None);
            assert_eq!(encoding.id(text, at(99)), Some("E23"));
            assert!(encoding.before(text, at(first)).ends_with("proves: "));
            assert_eq!(encoding.id(text, Position::new(9, 0)), None);
        }
        for word in ["E", "22", "e22", "E22x", "_E22"] {
            assert_eq!(Encoding::Utf8.id(word, Position::new(0, 1)), None, "{word}");
        }
    }

    #[m0_spec::row(T20)]
    #[test]
    fn an_address_is_a_path_of_the_repository_or_none() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let root = dir.path().canonicalize().expect("it is there");
        let path = std::path::Path::new("a b.py");
        let uri = uri_of(&root, path).expect("it has an address");
        assert!(uri.as_str().ends_with("/a%20b.py"), "{}", uri.as_str());
        assert_eq!(path_of(&root, &uri).as_deref(), Some(path));
        let elsewhere = "file:///elsewhere.py".parse().expect("an address");
        assert_eq!(path_of(&root, &elsewhere), None);
    }
}
