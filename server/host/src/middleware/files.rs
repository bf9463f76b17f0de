//! Files of a directory, answered beside the application.
//!
//! Owns which requests a root answers and with which fields. The conditions, the ranges and the types are those of
//! tower-http; where a path may lead is not left to it: `path` judges the text and the kernel the rest. Refuses to know
//! the engine. Invariant: the loop never opens or reads a file, a thread beside it does.

mod beneath;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, LOCATION, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use tower_http::services::ServeDir;
use tower_http::services::fs::ServeFileSystemResponseBody as FileBody;

use super::{path, range};
use crate::refusal::Refusal;
use beneath::Beneath;

/// Bytes of one read, and of one piece of an answer.
const PIECE_BYTES: usize = 64 * 1024;

/// Files of a directory under a path: `GET` and `HEAD`, with ETag and date, conditions and one range of bytes (RFC 9110
/// sections 13 and 14).
///
/// What leads out of the directory, by `..`, an encoding or a symbolic link, is not there, and neither is what begins
/// with a dot (but `/.well-known`) or is no plain file. A directory is its `index.html`. What is not there is the
/// application's to answer.
///
/// ```
/// use std::time::Duration;
/// use m0_host::{AppConfig, Files};
/// let config = AppConfig::from_env()
///     .files(Files::at("/assets", "public").cached_for(Duration::from_secs(3600)));
/// # let _ = config;
/// ```
#[derive(Debug, Clone)]
pub struct Files {
    prefix: String,
    root: PathBuf,
    cached: Option<Duration>,
}

/// What a root has for a request.
pub(crate) type Found = io::Result<Response<FileBody>>;

impl Files {
    /// The files of the directory `root`, under `prefix`: `/` or a path that begins and does not end with a slash.
    ///
    /// A root that is not there at the start, and a prefix of another form, are refused with 78. The root is looked up
    /// for each request, so a link to the newest release may be switched while the host serves.
    pub fn at(prefix: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        let prefix = prefix.into();
        Files {
            prefix: if prefix == "/" { String::new() } else { prefix },
            root: root.into(),
            cached: None,
        }
    }

    /// Lets caches keep a file for so long without asking again (`Cache-Control: public, max-age`, in whole seconds).
    #[must_use]
    pub fn cached_for(mut self, time: Duration) -> Self {
        self.cached = Some(time);
        self
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        let prefix = &self.prefix;
        if !prefix.is_empty() && !path::is_plain(prefix) {
            return Some(Refusal::of(
                "Files::at",
                prefix.clone(),
                "want / or a path such as /assets, of letters, digits, -, ., _ and ~, without a slash at its end",
            ));
        }
        let wrong = match std::fs::metadata(&self.root) {
            Ok(known) if known.is_dir() => return None,
            Ok(_) => "is not a directory".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        let root = self.root.display().to_string();
        let told = format!("{wrong}; want a directory that the host may read");
        Some(Refusal::of("Files::at", root, told))
    }

    /// What this root has for a request; none where it is the application's.
    pub(super) async fn answer<B>(&self, request: &Request<B>) -> Option<Found> {
        let (method, uri) = (request.method(), request.uri());
        if !matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        let inner = path::below(&self.prefix, uri.path())?;
        let query = uri
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let there = |answer: io::Result<Response<FileBody>>| match answer {
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => None,
            Ok(answer) => Some(Ok(answer)),
            Err(error) if is_absence(&error) => None,
            Err(error) => Some(Err(error)),
        };
        if inner.is_empty() {
            // The root itself, without its slash: relative links on its page would lead elsewhere.
            there(self.ask(Method::HEAD, "/", &HeaderMap::new()).await)?.ok()?;
            return self.redirect(&format!("{}/{query}", self.prefix));
        }
        let target = format!("{inner}{query}");
        let mut headers = conditions(request.headers());
        if let Some(part) = range::wanted(method, request.headers()) {
            headers.insert(RANGE, part.clone());
        }
        let mut answer = match there(self.ask(method.clone(), &target, &headers).await)? {
            Ok(answer) => answer,
            Err(error) => return Some(Err(error)),
        };
        if answer.status() == StatusCode::TEMPORARY_REDIRECT {
            // A directory without its slash: told only if there is a page behind it.
            let page = format!("{inner}/");
            there(self.ask(Method::HEAD, &page, &HeaderMap::new()).await)?.ok()?;
            return self.redirect(&format!("{}{page}{query}", self.prefix));
        }
        if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE
            && headers.get(RANGE).is_some_and(range::is_some_suffix)
        {
            // tower-http refuses one that is longer than the file, for which section 14.1.2 wants all of it.
            headers.insert(RANGE, HeaderValue::from_static("bytes=0-"));
            answer = match there(self.ask(method.clone(), &target, &headers).await)? {
                Ok(answer) => answer,
                Err(error) => return Some(Err(error)),
            };
        }
        if is_wrong_part(request.headers(), &answer) {
            headers.remove(RANGE);
            answer = match there(self.ask(method.clone(), &target, &headers).await)? {
                Ok(answer) => answer,
                Err(error) => return Some(Err(error)),
            };
        }
        self.dress(&mut answer);
        Some(Ok(answer))
    }

    async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &HeaderMap,
    ) -> io::Result<Response<FileBody>> {
        let mut request = Request::new(Empty::<bytes::Bytes>::new());
        *request.method_mut() = method;
        *request.uri_mut() = target
            .parse()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        *request.headers_mut() = headers.clone();
        ServeDir::with_backend("", Beneath::new(&self.root))
            .with_buf_chunk_size(PIECE_BYTES)
            .try_call(request)
            .await
    }

    fn redirect(&self, to: &str) -> Option<Found> {
        let mut answer = Response::new(FileBody::default());
        *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        let to = HeaderValue::from_str(to).ok()?;
        answer.headers_mut().insert(LOCATION, to);
        self.dress(&mut answer);
        Some(Ok(answer))
    }

    /// The fields that tower-http leaves out.
    fn dress(&self, answer: &mut Response<FileBody>) {
        let status = answer.status();
        let headers = answer.headers_mut();
        // The type that is told stands: no browser guesses another one from the bytes.
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if let Some(kind) = kind
            && kind.starts_with("text/")
            && !kind.contains(';')
            && let Ok(full) = HeaderValue::from_str(&format!("{kind}; charset=utf-8"))
        {
            headers.insert(CONTENT_TYPE, full);
        }
        let keeps = matches!(
            status,
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED
        );
        if let Some(time) = self.cached.filter(|_| keeps)
            && let Ok(value) = HeaderValue::from_str(&format!("public, max-age={}", time.as_secs()))
        {
            headers.insert(CACHE_CONTROL, value);
        }
    }
}

/// Whether an answer is a part where the whole is due: of another version of the file, or of an empty one, which has no
/// part (section 14.1.2).
fn is_wrong_part(asked: &HeaderMap, answer: &Response<FileBody>) -> bool {
    let headers = answer.headers();
    let empty = headers
        .get(CONTENT_LENGTH)
        .is_some_and(|length| length == "0");
    match answer.status() {
        StatusCode::PARTIAL_CONTENT => empty || !range::is_same(asked, headers),
        StatusCode::RANGE_NOT_SATISFIABLE => !range::is_same(asked, headers),
        _ => false,
    }
}

/// The conditions of a request, each as one field: they are lists, and may come on several lines (section 5.3).
fn conditions(asked: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [
        IF_MATCH,
        IF_NONE_MATCH,
        IF_MODIFIED_SINCE,
        IF_UNMODIFIED_SINCE,
    ] {
        let lines: Vec<&[u8]> = asked
            .get_all(&name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        if !lines.is_empty()
            && let Ok(all) = HeaderValue::from_bytes(&lines.join(&b", "[..]))
        {
            headers.insert(name, all);
        }
    }
    headers
}

/// Errors that say that there is no such file, for this host.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::InvalidInput
            | Kind::InvalidFilename
    )
}

#[cfg(test)]
mod tests;
