//! Untrusted text to valid settings, once.
//!
//! Owns the reading of the environment and of the command line, and the finding of every mistake in
//! them. Refuses to know what a setting does. Invariant: the flag wins over the variable; a name that
//! begins with `M0_` is known, refused by name, or unknown and refused: never ignored.

mod layered;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command};

use m0_wire::proxy::Networks;
use m0_wire::ws::handshake::Origins;

use crate::accept::LISTENERS_MOST;
use crate::middleware::Middleware;
use crate::refusal::Refusal;
use crate::settings::{Bind, Level, Settings};
use crate::variables::{EXPORTED, Kind, REFUSED, VARIABLES, Variable, find, nearest};

/// The environment and command line that [`serve`](crate::serve) will read.
///
/// Nothing is parsed before `serve` does: a mistake is a refusal with exit 78, not a panic here.
///
/// ```
/// use m0_host::AppConfig;
/// let config = AppConfig::from_parts([("M0_WORKERS", "2")], ["--bind", "127.0.0.1:0"]);
/// assert_eq!(config.resolve(&[]).expect("valid").workers, 2);
/// ```
#[derive(Debug, Clone)]
pub struct AppConfig {
    env: Vec<(OsString, OsString)>,
    args: Vec<OsString>,
    middleware: Middleware,
}

/// What the command line asks for besides serving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Serve,
    Doctor,
    /// Text to print before leaving with 0 (`--help`, `--version`).
    Print(String),
}

/// One variable's text and where it came from, as `--doctor` shows it.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) variable: &'static Variable,
    pub(crate) text: String,
    pub(crate) source: &'static str,
}

impl AppConfig {
    /// Takes the process's environment and arguments as they are now.
    pub fn from_env() -> Self {
        AppConfig {
            env: std::env::vars_os().collect(),
            args: std::env::args_os().skip(1).collect(),
            middleware: Middleware::default(),
        }
    }

    /// A configuration from explicit pairs and arguments: for tests, and for an application that has
    /// a command line of its own.
    pub fn from_parts<K, V, A>(
        env: impl IntoIterator<Item = (K, V)>,
        args: impl IntoIterator<Item = A>,
    ) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
        A: Into<OsString>,
    {
        AppConfig {
            env: env.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
            args: args.into_iter().map(Into::into).collect(),
            middleware: Middleware::default(),
        }
    }

    /// The settings, or every reason not to serve. `own` holds the `M0_*` names of the application.
    ///
    /// # Errors
    /// One [`Refusal`] for each mistake, in the order of the environment and then of the flags.
    pub fn resolve(&self, own: &[&str]) -> Result<Settings, Vec<Refusal>> {
        let (_, given, mut refusals) = self.read(own);
        let (settings, bad) = parse(&given);
        refusals.extend(bad);
        let Some(mut settings) = settings else {
            return Err(refusals);
        };
        settings.request_id |= self.middleware.request_ids;
        settings.middleware = self.middleware.clone();
        refusals.extend(settings.contradictions());
        if refusals.is_empty() {
            Ok(settings)
        } else {
            Err(refusals)
        }
    }

    /// What is asked, the text of every variable, and the mistakes in names.
    pub(crate) fn read(&self, own: &[&str]) -> (Ask, Vec<Given>, Vec<Refusal>) {
        let mut refusals = Vec::new();
        let mut given: Vec<Given> = VARIABLES
            .iter()
            .map(|variable| Given {
                variable,
                text: variable.default.to_owned(),
                source: "default",
            })
            .collect();
        let mut set = |name: &str, text: String, source| {
            if let Some(slot) = given.iter_mut().find(|g| g.variable.name == name) {
                slot.text = text;
                slot.source = source;
            }
        };
        for (name, value) in &self.env {
            // By its bytes: a name that is no text is nobody's variable, and is not passed over for that.
            if !name.as_encoded_bytes().starts_with(b"M0_") {
                continue;
            }
            let name = &*name.to_string_lossy();
            let Some(text) = value.to_str() else {
                refusals.push(Refusal::of(
                    name,
                    value.to_string_lossy(),
                    "is not UTF-8; want plain text",
                ));
                continue;
            };
            if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
                refusals.push(Refusal::of(name, text, *why));
            } else if find(name).is_some() {
                set(name, text.to_owned(), "environment");
            } else if !own.contains(&name) && !EXPORTED.contains(&name) {
                let hint = match nearest(name, own) {
                    Some(near) => format!("is not a variable of this host; did you mean {near}?"),
                    None => "is not a variable of this host; --help lists them".to_owned(),
                };
                refusals.push(Refusal::of(name, text, hint));
            }
        }
        let ask = match self.flags() {
            Ok((ask, flags)) => {
                for (variable, text) in flags {
                    set(variable.name, text, "flag");
                }
                ask
            }
            Err(Flags::Refused(refusal)) => {
                refusals.push(refusal);
                Ask::Serve
            }
            Err(Flags::Print(text)) => Ask::Print(text),
        };
        (ask, given, refusals)
    }

    fn flags(&self) -> Result<FlagTexts, Flags> {
        let argv = std::iter::once(OsString::from("app")).chain(self.args.iter().cloned());
        match command().try_get_matches_from(argv) {
            Ok(matches) => {
                let flags = VARIABLES
                    .iter()
                    .filter_map(|v| {
                        matches
                            .get_one::<String>(v.name)
                            .map(|text| (v, text.clone()))
                    })
                    .collect();
                let ask = if matches.get_flag("doctor") {
                    Ask::Doctor
                } else {
                    Ask::Serve
                };
                Ok((ask, flags))
            }
            Err(error) => match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                    Err(Flags::Print(error.to_string()))
                }
                _ => Err(Flags::Refused(flag_refusal(&error))),
            },
        }
    }
}

/// What the command line asks for, and the text of each flag that was given.
type FlagTexts = (Ask, Vec<(&'static Variable, String)>);

enum Flags {
    Print(String),
    Refused(Refusal),
}

/// The command line, made from the table of variables.
fn command() -> Command {
    let mut command = Command::new("app")
        .about("An application served by the m0 host. Each flag is also the variable that it names; the flag wins.")
        .disable_version_flag(true)
        .arg(
            Arg::new("doctor")
                .long("doctor")
                .action(ArgAction::SetTrue)
                .help("print every setting and its source, check the machine, and leave"),
        );
    for (position, variable) in VARIABLES.iter().enumerate() {
        let default = if variable.default.is_empty() {
            "none"
        } else {
            variable.default
        };
        command = command.arg(
            Arg::new(variable.name)
                .long(variable.flag())
                .value_name("VALUE")
                .display_order(position)
                .allow_hyphen_values(true)
                .help(format!(
                    "{} [{}, default {default}]",
                    variable.help, variable.name
                )),
        );
    }
    command
}

/// One line out of the parser's several.
fn flag_refusal(error: &clap::Error) -> Refusal {
    let text = |kind| {
        error.get(kind).map(|value| match value {
            clap::error::ContextValue::Strings(many) => many.join(" "),
            other => other.to_string(),
        })
    };
    let what = text(ContextKind::InvalidArg).unwrap_or_else(|| "command line".to_owned());
    let what = what.strip_suffix(" <VALUE>").unwrap_or(&what).to_owned();
    let value = text(ContextKind::InvalidValue).filter(|value| !value.is_empty());
    let mut message = match error.kind() {
        // Any text is a value to this parser, so the one that is not there is the only invalid one.
        ErrorKind::InvalidValue => "wants a value",
        kind => kind.as_str().unwrap_or("is not understood"),
    }
    .to_owned();
    if let Some(near) = text(ContextKind::SuggestedArg) {
        message = format!("{message}; did you mean {near}?");
    }
    Refusal {
        name: Some(what),
        value,
        message: format!("{message}; --help lists the flags"),
    }
}

/// The text of each variable as a typed setting, and a refusal for each that does not parse.
fn parse(given: &[Given]) -> (Option<Settings>, Vec<Refusal>) {
    let mut reader = Reader {
        given,
        refusals: Vec::new(),
    };
    let settings = reader.settings();
    let refusals = reader.refusals;
    (refusals.is_empty().then_some(settings), refusals)
}

/// Reads typed values by name; a value that does not parse is noted and stands as the smallest one.
struct Reader<'a> {
    given: &'a [Given],
    refusals: Vec<Refusal>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Settings {
        Settings {
            bind: self.bind(),
            bind_given: self.raw("M0_BIND").source != "default",
            workers: self.number("M0_WORKERS") as usize,
            accept_share: self.switch("M0_ACCEPT_SHARE"),
            drain: self.millis("M0_DRAIN_MS"),
            access_log: self.switch("M0_ACCESS_LOG"),
            log: self.level(),
            health: self.switch("M0_HEALTH"),
            metrics: self.target("M0_METRICS"),
            request_id: self.switch("M0_REQUEST_ID"),
            tls_cert: self.path("M0_TLS_CERT"),
            tls_key: self.path("M0_TLS_KEY"),
            http2: self.switch("M0_HTTP2"),
            http2_max_streams: self.number("M0_HTTP2_MAX_STREAMS") as u32,
            backlog: self.number("M0_BACKLOG") as i32,
            first_byte_timeout: self.millis("M0_FIRST_BYTE_TIMEOUT_MS"),
            head_timeout: self.millis("M0_HEAD_TIMEOUT_MS"),
            body_timeout: self.millis("M0_BODY_TIMEOUT_MS"),
            idle_timeout: self.millis("M0_IDLE_TIMEOUT_MS"),
            write_timeout: self.millis("M0_WRITE_TIMEOUT_MS"),
            linger: self.millis("M0_LINGER_MS"),
            max_head_bytes: self.number("M0_MAX_HEAD_BYTES") as usize,
            max_uri_bytes: self.number("M0_MAX_URI_BYTES") as usize,
            max_headers: self.number("M0_MAX_HEADERS") as usize,
            max_body_bytes: self.number("M0_MAX_BODY_BYTES"),
            max_connections: self.number("M0_MAX_CONNECTIONS") as usize,
            max_requests_per_connection: self.number("M0_MAX_REQUESTS_PER_CONNECTION"),
            max_streams: self.number("M0_MAX_STREAMS") as usize,
            outbox_bytes: self.number("M0_OUTBOX_BYTES") as usize,
            replay_bytes: self.number("M0_REPLAY_BYTES") as usize,
            heartbeat: self.millis("M0_HEARTBEAT_MS"),
            proxy_from: self.networks("M0_PROXY_FROM"),
            proxy_required: self.switch("M0_PROXY_REQUIRED"),
            proxy_required_given: self.raw("M0_PROXY_REQUIRED").source != "default",
            ws_max_message_bytes: self.number("M0_WS_MAX_MESSAGE_BYTES") as usize,
            ws_max_frame_bytes: self.number("M0_WS_MAX_FRAME_BYTES") as usize,
            ws_max_fragments: self.number("M0_WS_MAX_FRAGMENTS") as u32,
            ws_window_bytes: self.number("M0_WS_WINDOW_BYTES") as usize,
            ws_ping: self.millis("M0_WS_PING_MS"),
            ws_pong_timeout: self.millis("M0_WS_PONG_TIMEOUT_MS"),
            ws_close_timeout: self.millis("M0_WS_CLOSE_TIMEOUT_MS"),
            ws_origins: self.origins(),
            backoff: self.millis("M0_BACKOFF_MS"),
            backoff_max: self.millis("M0_BACKOFF_MAX_MS"),
            healthy: self.millis("M0_HEALTHY_MS"),
            crash_limit: self.number("M0_CRASH_LIMIT") as u32,
            journal: self.path("M0_JOURNAL"),
            middleware: Middleware::default(),
        }
    }

    fn raw(&self, name: &str) -> &Given {
        self.given
            .iter()
            .find(|g| g.variable.name == name)
            .expect("every name read here stands in the table of variables")
    }

    fn refuse(&mut self, name: &str) {
        let given = self.raw(name);
        let refusal = if given.source == "flag" {
            Refusal::of(
                format!("--{}", given.variable.flag()),
                given.text.clone(),
                given.variable.right(),
            )
        } else {
            Refusal::of(name, given.text.clone(), given.variable.right())
        };
        self.refusals.push(refusal);
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let text = &self.raw(name).text;
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    fn number(&mut self, name: &str) -> u64 {
        let given = self.raw(name);
        let Kind::Number { min, max, .. } = given.variable.kind else {
            unreachable!("{name} is read as a number and stands in the table as something else");
        };
        // Digits alone: the standard parser also takes a leading plus.
        let digits = given.text.bytes().all(|b| b.is_ascii_digit());
        match given.text.parse::<u64>() {
            Ok(value) if digits && (min..=max).contains(&value) => value,
            _ => {
                self.refuse(name);
                min
            }
        }
    }

    fn millis(&mut self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    fn switch(&mut self, name: &str) -> bool {
        match self.raw(name).text.as_str() {
            "1" => true,
            "0" => false,
            _ => {
                self.refuse(name);
                false
            }
        }
    }

    fn level(&mut self) -> Level {
        let text = &self.raw("M0_LOG").text;
        let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug];
        if let Some(level) = levels.into_iter().find(|l| l.name() == text) {
            return level;
        }
        self.refuse("M0_LOG");
        Level::Info
    }

    fn origins(&mut self) -> Origins {
        let text = &self.raw("M0_WS_ORIGINS").text;
        Origins::parse(text).unwrap_or_else(|| {
            self.refuse("M0_WS_ORIGINS");
            Origins::default()
        })
    }

    fn networks(&mut self, name: &str) -> Networks {
        Networks::parse(&self.raw(name).text).unwrap_or_else(|| {
            self.refuse(name);
            Networks::default()
        })
    }

    fn target(&mut self, name: &str) -> Option<String> {
        let text = self.raw(name).text.clone();
        if text.is_empty() {
            return None;
        }
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
        if !text.starts_with('/') || !text.bytes().all(fits) {
            self.refuse(name);
        }
        Some(text)
    }

    fn bind(&mut self) -> Vec<Bind> {
        let parts: Option<Vec<Bind>> = self.raw("M0_BIND").text.split(',').map(address).collect();
        parts
            .filter(|all| all.len() <= LISTENERS_MOST)
            .unwrap_or_else(|| {
                self.refuse("M0_BIND");
                Vec::new()
            })
    }
}

/// One address out of a list; a path with a comma cannot stand in one.
fn address(text: &str) -> Option<Bind> {
    match text.strip_prefix("unix:") {
        Some("") => None,
        Some(path) => Some(Bind::Unix(PathBuf::from(path))),
        None => text.parse().ok().map(Bind::Tcp),
    }
}
