//! Reads a group of cases: what is sent, which section says what comes of it, and what that is.
//!
//! Owns the notation. A character of a text is one byte (U+0000 to U+00FF); an answer is `STATUS FRAMING` with
//! ` = BODY` where the body matters; `{times: N, of: TEXT}` repeats. Invariant: a case that was read
//! has a section, bytes to send and at least one thing that must come of them.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Cases about one part of HTTP, played against one server.
#[derive(Debug)]
pub struct Group {
    /// The name of its file.
    pub name: String,
    /// Settings of the server, by variable.
    pub env: BTreeMap<String, String>,
    /// Cases that are served, then those that are refused.
    pub cases: Vec<Case>,
}

/// One connection: what is sent on it and what must come back.
#[derive(Debug)]
pub struct Case {
    /// Unique in its group.
    pub name: String,
    /// The document and the section that decide, for example `RFC 9112 6.3`.
    pub section: String,
    /// Whether the host must refuse the last request of it.
    pub refused: bool,
    /// The bytes of the connection, first to last.
    pub send: Vec<u8>,
    /// What is sent only once `100 Continue` has come.
    pub after_continue: Vec<u8>,
    /// Whether it is sent in one write only: its last bytes stand behind a request that closes, where a server
    /// need not wait for them (RFC 9112 9.6), so that they must come with it to be judged.
    pub whole: bool,
    /// Whether our direction ends behind the last byte.
    pub half_close: bool,
    /// The answers, in order, interim ones included.
    pub answers: Vec<Expected>,
    /// What becomes of the connection.
    pub end: End,
}

/// An answer as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Status code.
    pub status: u16,
    /// How its end is known.
    pub framing: Framing,
    /// Its content, where that matters.
    pub body: Option<Vec<u8>>,
}

/// How the end of an answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The close of the connection.
    Close,
    /// Its status has no content and no field says otherwise.
    None,
    /// It answers HEAD: whatever its fields say, there is no content.
    Head,
}

/// What becomes of the connection behind the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It carries another request.
    Open,
    /// The last answer says so, and it ends in order.
    Close,
    /// Either of them: RFC 9112 leaves it to the server.
    Either,
    /// It ends, in order, without a word about it.
    Fin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    #[serde(default)]
    env: BTreeMap<String, String>,
    served: Vec<RawCase>,
    refused: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: String,
    section: String,
    send: Bytes,
    after_continue: Option<Bytes>,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    half_close: bool,
    answers: Option<Vec<String>>,
    end: Option<End>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Pieces(Vec<Piece>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Repeated { times: usize, of: String },
}

/// Reads the group `name` from the text of its file.
///
/// # Errors
/// YAML that is none, a character above U+00FF, an answer in another notation, a name that stands twice.
pub fn read(name: &str, text: &str) -> Result<Group> {
    let raw: RawGroup = serde_saphyr::from_str(text).with_context(|| format!("{name}.yaml"))?;
    ensure!(
        !raw.served.is_empty() && !raw.refused.is_empty(),
        "{name}.yaml: a side without cases"
    );
    let mut cases: Vec<Case> = Vec::new();
    for (refused, raw) in [(false, raw.served), (true, raw.refused)] {
        for raw in raw {
            let what = format!("{name}.yaml: {}", raw.name);
            ensure!(
                cases.iter().all(|case| case.name != raw.name),
                "{what}: stands twice"
            );
            cases.push(case(raw, refused).context(what)?);
        }
    }
    Ok(Group {
        name: name.to_owned(),
        env: raw.env,
        cases,
    })
}

fn case(raw: RawCase, refused: bool) -> Result<Case> {
    ensure!(
        raw.section.starts_with("RFC ") || raw.section.starts_with("CVE-"),
        "section {:?} names no document",
        raw.section
    );
    let usual = if refused { "400 length" } else { "200 length" };
    let answers = match raw.answers {
        None => vec![usual.parse()?],
        Some(answers) => answers
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_>>()?,
    };
    let end = raw
        .end
        .unwrap_or(if refused { End::Close } else { End::Open });
    ensure!(
        !answers.is_empty() || end == End::Fin,
        "nothing is expected of it"
    );
    ensure!(
        !refused || end == End::Close,
        "a refusal closes the connection"
    );
    Ok(Case {
        name: raw.name,
        section: raw.section,
        refused,
        send: raw.send.bytes()?,
        after_continue: raw.after_continue.map_or(Ok(Vec::new()), Bytes::bytes)?,
        whole: raw.whole,
        half_close: raw.half_close,
        answers,
        end,
    })
}

impl Bytes {
    fn bytes(self) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => latin1(&text),
            Self::Pieces(pieces) => {
                let mut bytes = Vec::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => bytes.extend(latin1(&text)?),
                        Piece::Repeated { times, of } => {
                            bytes.extend(latin1(&of)?.repeat(times));
                        }
                    }
                }
                Ok(bytes)
            }
        }
    }
}

fn latin1(text: &str) -> Result<Vec<u8>> {
    text.chars()
        .map(|each| u8::try_from(each).with_context(|| format!("{each:?} is not one byte")))
        .collect()
}

impl FromStr for Expected {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (head, body) = match text.split_once(" = ") {
            Some((head, body)) => (head, Some(latin1(body)?)),
            None => (text, None),
        };
        let (status, framing) = head
            .split_once(' ')
            .with_context(|| format!("{text:?} is no answer: want STATUS FRAMING"))?;
        let framing = match framing {
            "length" => Framing::Length,
            "chunked" => Framing::Chunked,
            "close" => Framing::Close,
            "none" => Framing::None,
            "head" => Framing::Head,
            other => bail!("{other:?} is no framing: want length, chunked, close, none or head"),
        };
        Ok(Self {
            status: status.parse().with_context(|| format!("status {status}"))?,
            framing,
            body,
        })
    }
}
