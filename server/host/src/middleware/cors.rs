//! Which pages of other origins may read answers (Cross-Origin Resource Sharing, fetch.spec.whatwg.org section 3.2).
//!
//! Owns the rules and their contradictions; tower-http writes the fields. Refuses to know the application. Invariant: a
//! page of an origin that is not listed gets no field that lets it read, and credentials never go to every origin.

use std::sync::OnceLock;
use std::time::Duration;

use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::at_once::at_once;
use crate::refusal::Refusal;

/// Lets pages of listed origins read answers, and answers their preflights.
///
/// ```
/// use std::time::Duration;
/// use m0_host::{AppConfig, Cors};
/// let config = AppConfig::from_env().cors(
///     Cors::of(["https://app.example", "http://localhost:5173"])
///         .methods(["GET", "POST", "DELETE"])
///         .headers(["content-type"])
///         .credentials()
///         .cached_for(Duration::from_secs(600)),
/// );
/// # let _ = config;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cors {
    origins: Vec<String>,
    methods: Vec<String>,
    headers: Vec<String>,
    exposed: Vec<String>,
    credentials: bool,
    cached: Option<Duration>,
    layer: OnceLock<CorsLayer>,
}

/// Pages of every origin.
const ANY: &str = "*";

impl Cors {
    /// Pages of these origins, each `scheme://host` or `scheme://host:port`; `*` alone for every origin. They may `GET`,
    /// `HEAD` and `POST`, without fields of their own, until more is said.
    pub fn of<O: Into<String>>(origins: impl IntoIterator<Item = O>) -> Self {
        Cors {
            origins: origins.into_iter().map(Into::into).collect(),
            methods: ["GET", "HEAD", "POST"].map(str::to_owned).into(),
            ..Cors::default()
        }
    }

    /// The methods that they may use, in place of `GET`, `HEAD` and `POST`.
    #[must_use]
    pub fn methods<M: Into<String>>(mut self, methods: impl IntoIterator<Item = M>) -> Self {
        self.methods = methods.into_iter().map(Into::into).collect();
        self
    }

    /// The fields that they may send.
    #[must_use]
    pub fn headers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.headers = names.into_iter().map(Into::into).collect();
        self
    }

    /// The fields of answers that they may read, beside the few that they always may.
    #[must_use]
    pub fn exposed<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.exposed = names.into_iter().map(Into::into).collect();
        self
    }

    /// Lets them send cookies and credentials. With `*` this is refused at the start.
    #[must_use]
    pub fn credentials(mut self) -> Self {
        self.credentials = true;
        self
    }

    /// For how long a browser need not ask again, in whole seconds.
    #[must_use]
    pub fn cached_for(mut self, time: Duration) -> Self {
        self.cached = Some(time);
        self
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        let refused = |what: &str, value: &str, right: &str| {
            Some(Refusal::of(format!("Cors::{what}"), value, right))
        };
        if self.credentials && self.origins.iter().any(|origin| origin == ANY) {
            return refused(
                "credentials",
                ANY,
                "credentials for every origin would give any page the person's data; list the origins",
            );
        }
        if self.origins.len() > 1 && self.origins.iter().any(|origin| origin == ANY) {
            return refused(
                "of",
                ANY,
                "every origin leaves nothing to list; want * alone, or a list without it",
            );
        }
        if self.origins.is_empty() {
            return refused(
                "of",
                "",
                "no origin may read anything; want at least one, or no Cors",
            );
        }
        let wrong = |origin: &&String| *origin != ANY && !is_origin(origin);
        if let Some(origin) = self.origins.iter().find(wrong) {
            return refused(
                "of",
                origin,
                "is no origin; want scheme://host or scheme://host:port in small letters, without a path or a slash",
            );
        }
        if let Some(method) = self
            .methods
            .iter()
            .find(|text| text.parse::<Method>().is_err() || *text == ANY)
        {
            return refused("methods", method, "is no method; want a name such as PUT");
        }
        let mut names = self.headers.iter().chain(&self.exposed);
        let name = names.find(|text| text.parse::<HeaderName>().is_err() || *text == ANY)?;
        refused(
            "headers",
            name,
            "is no name of a field; want one such as content-type",
        )
    }

    /// The fields of the answer to a request, whatever else stands in it.
    pub(super) fn fields<B>(&self, request: &Request<B>) -> HeaderMap {
        let mut asked = Request::new(());
        // For tower-http every OPTIONS is a preflight.
        if is_preflight(request) {
            *asked.method_mut() = Method::OPTIONS;
        }
        for name in [
            ORIGIN,
            ACCESS_CONTROL_REQUEST_METHOD,
            ACCESS_CONTROL_REQUEST_HEADERS,
        ] {
            if let Some(value) = request.headers().get(&name) {
                asked.headers_mut().insert(name, value.clone());
            }
        }
        let layer = self.layer.get_or_init(|| self.layer());
        at_once(layer, asked, Response::new(()))
            .map_or_else(HeaderMap::new, |answer| answer.into_parts().0.headers)
    }

    fn layer(&self) -> CorsLayer {
        // Whatever does not parse was refused at the start.
        let names = |texts: &[String]| {
            texts
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect::<Vec<HeaderName>>()
        };
        let methods: Vec<Method> = self
            .methods
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect();
        let origins: Vec<HeaderValue> = self
            .origins
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect();
        let origin = if self.origins.iter().any(|origin| origin == ANY) {
            AllowOrigin::any()
        } else {
            AllowOrigin::list(origins)
        };
        let mut layer = CorsLayer::new()
            .allow_origin(origin)
            .allow_methods(methods)
            .allow_headers(names(&self.headers))
            .expose_headers(names(&self.exposed))
            .allow_credentials(self.credentials);
        if let Some(time) = self.cached {
            layer = layer.max_age(time);
        }
        layer
    }
}

/// Whether a browser asks whether it may ask.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    let has = |name| request.headers().contains_key(name);
    request.method() == Method::OPTIONS && has(ORIGIN) && has(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a browser would write an origin so (RFC 6454 section 6.2).
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_host = |byte: u8| small(byte) || b"-._[]:".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|byte| small(byte) || b"+-.".contains(&byte))
        && !host.is_empty()
        && host.bytes().all(is_host)
        && (host.starts_with('[') == host.ends_with(']')
            && (host.starts_with('[') || !host.contains(':')))
        && port.is_none_or(|port| {
            // The port of the scheme itself is never written, and none with a zero in front.
            let number = port.parse::<u16>().ok();
            let shortest = number.is_some_and(|number| number.to_string() == port);
            shortest && ![("http", "80"), ("https", "443")].contains(&(scheme, port))
        })
}

#[cfg(test)]
mod tests;
