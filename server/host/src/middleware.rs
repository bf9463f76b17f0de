//! What stands between the engine and the application because the application asked for it.
//!
//! Owns the set of layers and the order in which they see a request: its id, a preflight of CORS, the guards, the
//! files, the application; then the coding of the answer and the fields of CORS. Refuses to know the engine. Invariant:
//! a set that exists in valid settings contradicts nothing, and an empty one costs a request nothing.

mod at_once;
mod coding;
mod compression;
mod cors;
mod files;
mod guard;
mod path;
mod range;
pub(crate) mod request_id;

use std::pin::Pin;

use bytes::Bytes;
use http::header::VARY;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Body;

pub use compression::Compression;
pub use cors::Cors;
pub use files::Files;
pub use guard::{Guard, Secret};

pub(crate) use compression::Coded;
pub(crate) use files::Found;
pub(crate) use guard::Denied;

use crate::refusal::Refusal;

/// Why a body of a layer failed.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body whose type nobody needs to know.
pub(crate) type BoxBody = Pin<Box<dyn Body<Data = Bytes, Error = BoxError>>>;

/// The layers of an application.
#[derive(Debug, Clone, Default)]
pub(crate) struct Middleware {
    pub(crate) request_ids: bool,
    pub(crate) cors: Option<Cors>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) files: Vec<Files>,
    pub(crate) compression: Option<Compression>,
}

/// What the layers behind the application need to know of the request.
pub(crate) struct Asked {
    cors: Option<HeaderMap>,
    coding: Option<coding::Coding>,
    head: bool,
    /// It asks whether an answer of a weak tag, such as a coded one, has changed.
    knows_weak: bool,
}

impl Middleware {
    /// What contradicts itself, before anything is bound.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let cors = self.cors.iter().filter_map(Cors::refusal);
        let guards = self.guards.iter().filter_map(Guard::refusal);
        let files = self.files.iter().filter_map(Files::refusal);
        cors.chain(guards).chain(files).collect()
    }

    /// Whether any layer behind the application needs to know of the request.
    pub(crate) fn remembers(&self) -> bool {
        self.cors.is_some() || self.compression.is_some()
    }

    /// What is remembered of a request.
    pub(crate) fn remember<B>(&self, request: &Request<B>) -> Asked {
        let compression = self.compression.as_ref();
        Asked {
            cors: self.cors.as_ref().map(|cors| cors.fields(request)),
            coding: compression.and_then(|_| coding::choose(request.headers())),
            head: request.method() == Method::HEAD,
            knows_weak: compression.is_some() && compression::knows_weak(request.headers()),
        }
    }

    /// The answer to a preflight of CORS.
    pub(crate) fn preflight<B>(&self, request: &Request<B>) -> bool {
        self.cors.is_some() && cors::is_preflight(request)
    }

    /// Why a guard lets a request not pass.
    pub(crate) fn deny<B>(&self, request: &mut Request<B>) -> Option<Denied> {
        if self.guards.is_empty() {
            return None;
        }
        let path = request.uri().path().to_owned();
        let guards = self.guards.iter().filter(|guard| guard.stands_at(&path));
        let headers = request.headers_mut();
        guards
            .map(|guard| guard.judge(headers))
            .find_map(Result::err)
    }

    /// The file that a request asks for, if one of the roots has it.
    pub(crate) async fn find<B>(&self, request: &Request<B>) -> Option<Found> {
        for files in &self.files {
            if let Some(found) = files.answer(request).await {
                return Some(found);
            }
        }
        None
    }

    /// The coded form of an answer, or its body as it was.
    pub(crate) fn code<B>(&self, asked: Option<&Asked>, mut answer: Response<B>) -> Coded<B>
    where
        B: Body<Data = Bytes, Error: std::fmt::Display> + 'static,
    {
        match (&self.compression, asked) {
            (Some(compression), Some(asked)) => {
                if asked.knows_weak && asked.coding.is_some() {
                    compression::keep_weak(&mut answer);
                }
                compression.code(asked.coding, asked.head, answer)
            }
            _ => Coded::As(answer),
        }
    }
}

impl Asked {
    /// Puts the fields of CORS into an answer, whoever made it.
    pub(crate) fn finish(self, headers: &mut HeaderMap) {
        let Some(cors) = self.cors else {
            return;
        };
        for (name, value) in &cors {
            if name == VARY {
                headers.append(VARY, value.clone());
            } else {
                headers.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Adds a name to the field Vary, unless it is there.
fn vary(headers: &mut HeaderMap, name: &'static str) {
    let names = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.split(',')
            .map(str::trim)
            .any(|own| own == "*" || own.eq_ignore_ascii_case(name))
    };
    if !headers.get_all(VARY).iter().any(names) {
        headers.append(VARY, HeaderValue::from_static(name));
    }
}
