//! Who may ask at all: Basic (RFC 7617) and Bearer (RFC 6750) credentials, judged before the application.
//!
//! Owns the reading of Authorization and the challenge. Refuses to know who is right: a function of the application
//! does. Invariant: a secret is never written, and what cannot be read is answered like what is wrong.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use subtle::ConstantTimeEq as _;

use super::path;
use crate::refusal::Refusal;

/// A secret that a peer sent: a password or a token. It stands in no debug output.
///
/// ```no_run
/// # fn check(secret: &m0_host::Secret) -> bool {
/// secret.is("correct horse")
/// # }
/// ```
pub struct Secret(String);

impl Secret {
    /// Whether it is the expected one, in a time that does not tell where they differ; it may tell the length.
    pub fn is(&self, expected: &str) -> bool {
        self.0.as_bytes().ct_eq(expected.as_bytes()).into()
    }

    /// The secret itself, for a check of another kind, such as of a password's hash.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

type Basic = Arc<dyn Fn(&str, &Secret) -> bool + Send + Sync>;
type Bearer = Arc<dyn Fn(&Secret) -> bool + Send + Sync>;

#[derive(Clone)]
enum Check {
    Basic(Basic),
    Bearer(Bearer),
}

/// Lets only requests with the right credentials pass, to the files and the application.
///
/// The function runs on the worker's loop for each request, so it must not wait. `/healthz` and `/readyz` stay open;
/// `/metrics` does not. What the application sees of the credentials is marked as sensitive.
///
/// ```
/// use m0_host::{AppConfig, Guard};
/// let config = AppConfig::from_env()
///     .guard(Guard::basic("admin", |user, password| user == "ada" && password.is("correct horse")).below("/admin"))
///     .guard(Guard::bearer("api", |token| token.is("t0ken")).below("/api"));
/// # let _ = config;
/// ```
#[derive(Clone)]
pub struct Guard {
    realm: String,
    prefix: String,
    check: Check,
}

/// Why a request does not pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// 401 with this challenge.
    Challenge(HeaderValue),
    /// The application's function panicked.
    Failed,
}

impl Guard {
    /// Asks for a user and a password.
    pub fn basic(
        realm: impl Into<String>,
        check: impl Fn(&str, &Secret) -> bool + Send + Sync + 'static,
    ) -> Self {
        Guard {
            realm: realm.into(),
            prefix: String::new(),
            check: Check::Basic(Arc::new(check)),
        }
    }

    /// Asks for a token.
    pub fn bearer(
        realm: impl Into<String>,
        check: impl Fn(&Secret) -> bool + Send + Sync + 'static,
    ) -> Self {
        Guard {
            realm: realm.into(),
            prefix: String::new(),
            check: Check::Bearer(Arc::new(check)),
        }
    }

    /// Stands at this path and those below it alone, such as `/admin`; without it, at every path.
    #[must_use]
    pub fn below(mut self, path: impl Into<String>) -> Self {
        self.prefix = path.into();
        self
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        // What a quoted-string may hold as it is (RFC 9110 section 5.6.4).
        let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
        if !self.realm.bytes().all(plain) {
            let right = "want a realm of printable ASCII without quotes and backslashes";
            return Some(Refusal::of("Guard", self.realm.clone(), right));
        }
        let prefix = &self.prefix;
        if prefix.is_empty() || path::is_plain(prefix) {
            return None;
        }
        let right = "want a path such as /admin, of letters, digits, -, ., _ and ~, without a slash at its end";
        Some(Refusal::of("Guard::below", prefix.clone(), right))
    }

    /// Whether it stands at this path, however a router may read it: encoded letters and doubled slashes included.
    pub(super) fn stands_at(&self, path: &str) -> bool {
        if self.prefix.is_empty() {
            return true;
        }
        let leads_here = |read: &[u8]| {
            let rest = read.strip_prefix(self.prefix.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        if path::is_plain(path) {
            // Every router reads it so.
            return leads_here(path.as_bytes());
        }
        Reading::all().any(|reading| leads_here(&reading.of(path)))
    }

    pub(super) fn judge(&self, headers: &mut HeaderMap) -> Result<(), Denied> {
        if let Some(given) = headers.get_mut(AUTHORIZATION) {
            given.set_sensitive(true);
        }
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let one = match (given.next(), given.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        };
        let passes = AssertUnwindSafe(|| match &self.check {
            Check::Basic(check) => one
                .and_then(basic)
                .is_some_and(|(user, secret)| check(&user, &secret)),
            Check::Bearer(check) => one.and_then(bearer).is_some_and(|secret| check(&secret)),
        });
        match catch_unwind(passes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Denied::Challenge(self.challenge(one))),
            Err(_) => Err(Denied::Failed),
        }
    }

    /// RFC 9110 section 11.6.1. Whoever brought no token, or one of another scheme, is told of no error (RFC 6750
    /// section 3.1).
    fn challenge(&self, given: Option<&HeaderValue>) -> HeaderValue {
        let realm = &self.realm;
        let text = match self.check {
            Check::Basic(_) => format!("Basic realm=\"{realm}\", charset=\"UTF-8\""),
            Check::Bearer(_) if given.is_some_and(|given| is_of(given, "bearer")) => {
                format!("Bearer realm=\"{realm}\", error=\"invalid_token\"")
            }
            Check::Bearer(_) => format!("Bearer realm=\"{realm}\""),
        };
        HeaderValue::from_str(&text).expect("a realm of another kind was refused at the start")
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("realm", &self.realm)
            .field("below", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// How a router may read a path: each way is that of some router, and a guard knows none of them.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// `..` is a step up, and no name.
    goes_up: bool,
    /// An encoded slash ends a step.
    decodes_first: bool,
    /// An empty step is none already before a step goes up.
    merges_first: bool,
}

impl Reading {
    fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Reading {
            goes_up: bits & 1 == 1,
            decodes_first: bits & 2 == 2,
            merges_first: bits & 4 == 4,
        })
    }

    /// A path as this router would read it, decoded, without steps that lead nowhere.
    fn of(self, path: &str) -> Vec<u8> {
        let steps: Vec<Vec<u8>> = if self.decodes_first {
            let decoded = decode(path);
            decoded
                .split(|byte| *byte == b'/')
                .map(<[u8]>::to_vec)
                .collect()
        } else {
            path.split('/').map(decode).collect()
        };
        let mut kept: Vec<&[u8]> = Vec::new();
        // Before the first slash stands nothing.
        for step in steps.iter().skip(1) {
            match &step[..] {
                b"." => {}
                b"" if self.merges_first => {}
                b".." if self.goes_up => drop(kept.pop()),
                step => kept.push(step),
            }
        }
        kept.retain(|step| !step.is_empty());
        kept.iter()
            .flat_map(|step| [b"/", *step].concat())
            .collect()
    }
}

/// Percent-decodes once; what is no encoding stays.
fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            decoded.push((high << 4 | low) as u8);
            bytes = &rest[2..];
        } else {
            decoded.push(*first);
            bytes = rest;
        }
    }
    decoded
}

/// What stands behind the name of a scheme, which is written in any case (RFC 9110 section 11.1).
fn behind<'a>(value: &'a HeaderValue, scheme: &str) -> Option<&'a str> {
    let (name, rest) = value.to_str().ok()?.split_once(' ')?;
    name.eq_ignore_ascii_case(scheme)
        .then(|| rest.trim_start_matches(' '))
}

/// Whether credentials are of this scheme, right or wrong.
fn is_of(value: &HeaderValue, scheme: &str) -> bool {
    let name = value.as_bytes().split(|byte| *byte == b' ').next();
    name.is_some_and(|name| name.eq_ignore_ascii_case(scheme.as_bytes()))
}

fn basic(value: &HeaderValue) -> Option<(String, Secret)> {
    let pair = STANDARD.decode(behind(value, "basic")?).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some((user.to_owned(), Secret(password.to_owned())))
}

fn bearer(value: &HeaderValue) -> Option<Secret> {
    let token = behind(value, "bearer")?;
    // `b64token` of RFC 6750 section 2.1.
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (!token.is_empty() && token.bytes().all(fits)).then(|| Secret(token.to_owned()))
}

#[cfg(test)]
mod tests;
