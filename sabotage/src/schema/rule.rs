//! The shape of a rule: one promise, the edits that break it, the check that should notice.
//!
//! Owns the YAML of `sabotage/rules/*.yaml`. Refuses to know whether names in it exist: that is
//! `check`. Invariant: every name carries its place in the file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

/// A rule as it stands in its file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique name: lower-case words joined by `-`.
    pub id: Spanned<String>,
    /// The promise that the edits break, one sentence.
    pub promise: String,
    /// Rows of the specification that the promise belongs to.
    #[serde(default)]
    pub rows: Vec<Spanned<String>>,
    /// What is changed.
    #[serde(default)]
    pub edits: Vec<Edit>,
    /// Checks that should notice.
    pub expect: Expect,
    /// Checks that must still pass: controls.
    #[serde(default)]
    pub must_pass: Vec<Check>,
    /// Environment and features of the gate: a failpoint instead of an edit.
    #[serde(default)]
    pub activate: Option<Activate>,
    /// The product's part of a commit, taken back.
    #[serde(default)]
    pub revert: Option<Revert>,
    /// How many other checks of its gates may fail too; none means any number, and the gates are not
    /// run whole.
    #[serde(default)]
    pub max_collateral: Option<usize>,
    /// How the promise breaks; `hang` makes a time-out a proof.
    #[serde(default)]
    pub symptom: Symptom,
    /// Runs of each expected check; the default is 1.
    #[serde(default)]
    pub repeats: Option<u32>,
    /// Bound on one run of a check, `90s`; the default is the gate's.
    #[serde(default)]
    pub timeout: Option<Spanned<String>>,
    /// A gap that is known: nothing notices yet.
    #[serde(default)]
    pub known_gap: Option<Waiver>,
    /// Not run now.
    #[serde(default)]
    pub skip: Option<Waiver>,
    /// Words to choose rules by: `tag:WORD`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Operating systems on which the rule holds; none means all.
    #[serde(default)]
    pub platforms: Vec<String>,
    /// The file that the rule stands in, relative to the repository.
    #[serde(skip)]
    pub file: PathBuf,
}

/// One change of one file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, relative to the repository.
    pub file: Spanned<String>,
    /// The item that holds the one match: `fn NAME`, `impl TYPE`, `mod NAME`, and so on.
    #[serde(default, rename = "in")]
    pub inside: Option<Spanned<String>>,
    /// Text to replace: by tokens in Rust, exact elsewhere.
    #[serde(default)]
    pub find: Option<Spanned<String>>,
    /// What stands there instead.
    #[serde(default)]
    pub with: Option<String>,
    /// Text to remove; the same as `find` with an empty `with`.
    #[serde(default)]
    pub delete: Option<Spanned<String>>,
    /// Hunks of a unified diff, context exact.
    #[serde(default)]
    pub patch: Option<Spanned<String>>,
}

/// A check of a gate.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name of the gate.
    pub gate: Spanned<String>,
    /// Name of the check inside the gate; the one that `exit` gates have is `exit`.
    pub check: Spanned<String>,
    /// A pattern that the failure's message must match, and that no clean output matches.
    #[serde(default)]
    pub message: Option<Spanned<String>>,
}

/// A commit that a rule takes back.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// The commit, as git names it.
    pub commit: Spanned<String>,
    /// Files that stay as they are, as patterns; tests and documents always do.
    #[serde(default)]
    pub keep: Vec<String>,
}

/// What arms a failpoint.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Activate {
    /// Variables of the gate's run.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Features of cargo that its gates are built with.
    #[serde(default)]
    pub features: Vec<Spanned<String>>,
}

impl Activate {
    /// The features by name.
    pub fn features(&self) -> Vec<String> {
        self.features
            .iter()
            .map(|name| name.value.clone())
            .collect()
    }
}

/// How a broken promise shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// A check reports a failure.
    #[default]
    Fail,
    /// The checked process dies by a signal.
    Crash,
    /// The check does not end within its bound.
    Hang,
}

/// Why something is not held to, and until when.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The reason, one sentence.
    pub why: String,
    /// Who answers for it.
    #[serde(default)]
    pub owner: Option<String>,
    /// The last day, `2027-01-31`.
    pub until: Spanned<String>,
}

/// The checks that should notice, and whether one is enough.
#[derive(Debug, Clone, Serialize)]
pub struct Expect {
    /// All of them must fail, not one.
    pub all: bool,
    /// The checks, in order.
    pub checks: Vec<Check>,
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

/// A list, or `any:` or `all:` with a list.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Expect;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of checks, or `any:` or `all:` with one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Expect, A::Error> {
        let mut checks = Vec::new();
        while let Some(check) = list.next_element()? {
            checks.push(check);
        }
        Ok(Expect { all: false, checks })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Expect, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Word {
            Any,
            All,
        }
        let Some(word) = map.next_key::<Word>()? else {
            return Err(serde::de::Error::missing_field("any"));
        };
        let checks = map.next_value()?;
        if map.next_key::<Word>()?.is_some() {
            return Err(serde::de::Error::custom(
                "either `any:` or `all:`, not both",
            ));
        }
        Ok(Expect {
            all: matches!(word, Word::All),
            checks,
        })
    }
}
