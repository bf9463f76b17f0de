//! What a variable is: how its text is read, and in which words it is refused.
//!
//! Owns the wording of what would be right. Refuses to know which variables there are. Invariant: whatever is refused
//! says what would have been taken.

/// How the text of a variable is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number within the bounds, both included.
    Number {
        /// Smallest value accepted.
        min: u64,
        /// Largest value accepted.
        max: u64,
        /// What is counted: `ms`, `bytes` or a plain noun.
        unit: &'static str,
    },
    /// `0` or `1`.
    Switch,
    /// IP addresses and ports, or `unix:` and a path, between commas.
    Address,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A path of a file.
    Path,
    /// Origins of pages between commas, or `*`.
    Origins,
    /// Addresses and networks between commas, `unix` for peers at unix sockets.
    Networks,
    /// A path of a request, or nothing.
    Target,
}

/// One variable of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    /// Name in the environment.
    pub(crate) name: &'static str,
    /// How its text is read.
    pub(crate) kind: Kind,
    /// Text that stands when it is not set; empty means "none".
    pub(crate) default: &'static str,
    /// One line for `--help` and `--doctor`.
    pub(crate) help: &'static str,
}

impl Variable {
    /// The flag of this variable, without the leading dashes: `M0_DRAIN_MS` is `drain-ms`.
    pub(crate) fn flag(&self) -> String {
        self.name
            .trim_start_matches("M0_")
            .to_ascii_lowercase()
            .replace('_', "-")
    }

    /// What would be right, as the end of a refusal.
    pub(crate) fn right(&self) -> String {
        match self.kind {
            Kind::Number { min, max, unit } => {
                format!("want a whole number of {unit} from {min} to {max}")
            }
            Kind::Switch => "want 0 or 1".to_owned(),
            Kind::Address => {
                "want ADDRESS:PORT (say 127.0.0.1:8080 or [::1]:0) or unix:/path, at most 64 between commas"
                    .to_owned()
            }
            Kind::Word(words) => format!("want one of {}", words.join(", ")),
            Kind::Path => "want a path".to_owned(),
            Kind::Origins => {
                "want origins between commas, say https://a.example,http://b.example:8080, or *"
                    .to_owned()
            }
            Kind::Networks => {
                "want addresses and networks between commas, say 192.0.2.0/24,::1,unix, or nothing"
                    .to_owned()
            }
            Kind::Target => {
                "want a path that begins with / and has no blank, ? or #, or nothing".to_owned()
            }
        }
    }
}
