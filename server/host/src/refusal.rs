//! Why the host will not serve, in one line per reason.
//!
//! Owns the wording of a refusal and its exit code (78, `EX_CONFIG` of `sysexits.h`). Refuses to know
//! where the value came from beyond its name. Invariant: a refusal names what was wrong, its value,
//! and what would be right.

use std::fmt;

/// Exit code of a clean stop.
pub const EXIT_CLEAN: u8 = 0;
/// Exit code of a stop during which a worker crashed or had to be killed.
pub const EXIT_UNCLEAN: u8 = 1;
/// Exit code of a worker whose `make` panicked; the same as of any Rust program that panics.
pub(crate) const EXIT_PANIC: u8 = 101;
/// Exit code of a crash loop: one slot kept dying (`EX_SOFTWARE`).
pub const EXIT_CRASH_LOOP: u8 = 70;
/// Exit code when the operating system refused a bind, a fork or shared memory (`EX_OSERR`).
pub const EXIT_OS: u8 = 71;
/// Exit code of a refused configuration (`EX_CONFIG`); nothing was bound.
pub const EXIT_CONFIG: u8 = 78;

/// One reason not to serve; the process that meets it exits with 78.
///
/// ```
/// use m0_host::Refusal;
/// let refusal = Refusal::new("the blob directory is not writable; set BLOBS_DIR to one that is");
/// assert!(refusal.to_string().contains("BLOBS_DIR"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub(crate) name: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) message: String,
}

impl Refusal {
    /// A refusal by the application: one line that says what is wrong and what would be right.
    pub fn new(message: impl Into<String>) -> Self {
        Refusal {
            name: None,
            value: None,
            message: message.into(),
        }
    }

    /// A refusal of one variable or flag.
    pub fn of(name: impl Into<String>, value: impl Into<String>, right: impl Into<String>) -> Self {
        Refusal {
            name: Some(name.into()),
            value: Some(value.into()),
            message: right.into(),
        }
    }

    /// The variable or flag that was refused, where there is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.value) {
            (Some(name), Some(value)) => write!(f, "{name}={value}: {}", self.message),
            (Some(name), None) => write!(f, "{name}: {}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Refusal::new(message)
    }
}

impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        Refusal::new(message)
    }
}

impl Refusal {
    /// The fields of the refusal's log line.
    pub(crate) fn fields(&self) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        if let Some(name) = &self.name {
            fields.insert("name".into(), name.as_str().into());
        }
        if let Some(value) = &self.value {
            fields.insert("value".into(), value.as_str().into());
        }
        fields.insert("message".into(), self.to_string().into());
        fields.into()
    }
}
