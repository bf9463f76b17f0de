//! What each byte of a source file is: code, comment or string.
//!
//! Owns the lexical rules of Python, of JavaScript with TypeScript, and of the shell, as far as comments and
//! strings go. Refuses to parse further. Invariant: as many classes as bytes; a byte is of one class.

use super::comments::Language;

/// What a byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Code,
    Comment,
    Text,
}

/// Classifies every byte of a text.
pub(super) fn classify(language: Language, text: &str) -> Vec<Class> {
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        classes: Vec::with_capacity(text.len()),
    };
    match language {
        Language::Python => lexer.python(),
        Language::Script => lexer.script(),
        Language::Shell => lexer.shell(),
    }
    lexer.classes
}

struct Lexer<'a> {
    bytes: &'a [u8],
    classes: Vec<Class>,
}

impl Lexer<'_> {
    fn at(&self) -> usize {
        self.classes.len()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at()..]
    }

    fn take(&mut self, count: usize, class: Class) {
        let end = (self.at() + count).min(self.bytes.len());
        self.classes.resize(end, class);
    }

    /// To the end of the line, without its line feed.
    fn line(&mut self, class: Class) {
        let end = self.rest().iter().position(|byte| *byte == b'\n');
        self.take(end.unwrap_or(self.rest().len()), class);
    }

    /// A string that ends at `quote`; a backslash hides the byte after it where `escapes`.
    fn text(&mut self, quote: &[u8], escapes: bool, one_line: bool) {
        self.take(quote.len(), Class::Text);
        while !self.rest().is_empty() {
            if self.rest().starts_with(quote) {
                self.take(quote.len(), Class::Text);
                return;
            }
            let hidden = escapes && self.rest()[0] == b'\\';
            if one_line && self.rest()[0] == b'\n' {
                return;
            }
            self.take(1 + usize::from(hidden), Class::Text);
        }
    }

    fn python(&mut self) {
        while let Some(byte) = self.rest().first().copied() {
            match byte {
                b'#' => self.line(Class::Comment),
                b'"' | b'\'' => {
                    let triple = [byte; 3];
                    if self.rest().starts_with(&triple) {
                        self.text(&triple, true, false);
                    } else {
                        self.text(&triple[..1], true, true);
                    }
                }
                _ => self.take(1, Class::Code),
            }
        }
    }

    fn script(&mut self) {
        // The last byte of code that is no white space: a slash after a value divides, else it begins
        // a pattern.
        let mut before = b';';
        // Braces that are open in each `${` around.
        let mut holes: Vec<usize> = Vec::new();
        while let Some(byte) = self.rest().first().copied() {
            let rest = self.rest();
            if rest.starts_with(b"//") {
                self.line(Class::Comment);
            } else if rest.starts_with(b"/*") {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                self.take(end.map_or(rest.len(), |end| end + 4), Class::Comment);
            } else if byte == b'"' || byte == b'\'' {
                self.text(&[byte], true, true);
                before = b'"';
            } else if byte == b'`' {
                self.take(1, Class::Text);
                holes.extend(self.template().then_some(0));
                before = b'"';
            } else if byte == b'/' && self.begins_pattern(before) {
                self.pattern();
                before = b'/';
            } else {
                match (byte, holes.last_mut()) {
                    (b'{', Some(open)) => *open += 1,
                    (b'}', Some(0)) => {
                        holes.pop();
                        self.take(1, Class::Text);
                        holes.extend(self.template().then_some(0));
                        before = b'"';
                        continue;
                    }
                    (b'}', Some(open)) => *open -= 1,
                    _ => {}
                }
                self.take(1, Class::Code);
                if !byte.is_ascii_whitespace() {
                    before = byte;
                }
            }
        }
    }

    /// The text of a template up to its end, or into the next `${`: whether it is one.
    fn template(&mut self) -> bool {
        while let Some(byte) = self.rest().first().copied() {
            if self.rest().starts_with(b"${") {
                self.take(2, Class::Text);
                return true;
            }
            self.take(1 + usize::from(byte == b'\\'), Class::Text);
            if byte == b'`' {
                return false;
            }
        }
        false
    }

    /// Whether a slash begins a pattern: after a sign that wants a value, or a word that does.
    fn begins_pattern(&self, before: u8) -> bool {
        if b"(,=:[!&|?{};+-*%<>~^".contains(&before) {
            return true;
        }
        let code = self.bytes[..self.at()].trim_ascii_end();
        let word = code
            .rsplit(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .next();
        let words: [&[u8]; 8] = [
            b"return", b"typeof", b"case", b"in", b"of", b"void", b"await", b"yield",
        ];
        word.is_some_and(|word| words.contains(&word))
    }

    /// A pattern; a slash within its brackets does not end it.
    fn pattern(&mut self) {
        self.take(1, Class::Text);
        let mut bracket = false;
        while let Some(byte) = self.rest().first().copied() {
            if byte == b'\n' {
                return;
            }
            self.take(1 + usize::from(byte == b'\\'), Class::Text);
            match byte {
                b'[' => bracket = true,
                b']' => bracket = false,
                b'/' if !bracket => return,
                _ => {}
            }
        }
    }

    fn shell(&mut self) {
        let mut ends: Vec<Vec<u8>> = Vec::new();
        let mut before = b'\n';
        while let Some(byte) = self.rest().first().copied() {
            match byte {
                b'#' if before.is_ascii_whitespace() || before == b';' => self.line(Class::Comment),
                b'\\' => self.take(2, Class::Code),
                b'\'' => self.text(b"'", false, false),
                b'"' => self.text(b"\"", true, false),
                b'<' if self.rest().starts_with(b"<<") && !self.rest().starts_with(b"<<<") => {
                    ends.extend(here_document(self.rest()));
                    self.take(2, Class::Code);
                }
                b'\n' => {
                    self.take(1, Class::Code);
                    for end in std::mem::take(&mut ends) {
                        self.document(&end);
                    }
                }
                _ => self.take(1, Class::Code),
            }
            before = byte;
        }
    }

    /// The lines of a here-document, its end included.
    fn document(&mut self, end: &[u8]) {
        while !self.rest().is_empty() {
            let length = self.rest().iter().position(|byte| *byte == b'\n');
            let length = length.map_or(self.rest().len(), |at| at + 1);
            let is_end = self.rest()[..length].trim_ascii() == end;
            self.take(length, Class::Text);
            if is_end {
                return;
            }
        }
    }
}

/// The word that ends the document of `<<WORD`, `<<'WORD'` or `<<-WORD`.
fn here_document(rest: &[u8]) -> Option<Vec<u8>> {
    let word: Vec<u8> = rest
        .get(2..)?
        .iter()
        .copied()
        .skip_while(|byte| b"- '\"".contains(byte))
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .collect();
    (!word.is_empty()).then_some(word)
}
