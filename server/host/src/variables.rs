//! The table of variables: name, default, range and one line of help.
//!
//! Owns what an operator may set and what is refused by name. Refuses to know how a value is used.
//! Invariant: each variable stands here once; its flag is its name without `M0_`, in lower case, with
//! dashes; parsing, `--help`, `--doctor` and the nearest-name hint all read this table.

mod kind;

pub(crate) use kind::{Kind, Variable};

const fn number(
    name: &'static str,
    default: &'static str,
    bounds: (u64, u64),
    unit: &'static str,
    help: &'static str,
) -> Variable {
    Variable {
        name,
        kind: Kind::Number {
            min: bounds.0,
            max: bounds.1,
            unit,
        },
        default,
        help,
    }
}

const fn switch(name: &'static str, default: &'static str, help: &'static str) -> Variable {
    Variable {
        name,
        kind: Kind::Switch,
        default,
        help,
    }
}

const fn path(name: &'static str, help: &'static str) -> Variable {
    Variable {
        name,
        kind: Kind::Path,
        default: "",
        help,
    }
}

/// An hour in milliseconds: the upper end of every time bound.
const HOUR: u64 = 3_600_000;

/// Every variable that the host reads.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable {
        name: "M0_BIND",
        kind: Kind::Address,
        default: "127.0.0.1:8080",
        help: "where to listen, between commas; port 0 lets the system choose",
    },
    number(
        "M0_WORKERS",
        "1",
        (1, 64),
        "workers",
        "worker processes; 1 serves from this process",
    ),
    switch(
        "M0_ACCEPT_SHARE",
        "1",
        "0 leaves accepting to the bare race between workers",
    ),
    number(
        "M0_DRAIN_MS",
        "5000",
        (0, HOUR),
        "ms",
        "bound from SIGTERM to the exit of requests in flight",
    ),
    switch(
        "M0_ACCESS_LOG",
        "0",
        "1 writes one JSON line a request to standard output",
    ),
    Variable {
        name: "M0_LOG",
        kind: Kind::Word(&["error", "warn", "info", "debug"]),
        default: "info",
        help: "least serious event that is logged to standard error",
    },
    switch(
        "M0_HEALTH",
        "1",
        "0 leaves /healthz and /readyz to the application",
    ),
    Variable {
        name: "M0_METRICS",
        kind: Kind::Target,
        default: "",
        help: "path of requests that are answered with the figures of all workers, say /metrics",
    },
    switch(
        "M0_REQUEST_ID",
        "0",
        "1 gives each request an id, in x-request-id and in the access log",
    ),
    path(
        "M0_TLS_CERT",
        "certificate chain in PEM: connections over TCP speak TLS",
    ),
    path(
        "M0_TLS_KEY",
        "private key in PEM of the certificate in M0_TLS_CERT",
    ),
    switch(
        "M0_HTTP2",
        "0",
        "1 also serves HTTP/2: behind its preface in clear, over TLS where the handshake chose it",
    ),
    number(
        "M0_HTTP2_MAX_STREAMS",
        "128",
        (1, 4_096),
        "streams",
        "requests at once on one connection of HTTP/2; more are refused",
    ),
    number(
        "M0_BACKLOG",
        "1024",
        (1, 65_535),
        "connections",
        "queue of connections not yet accepted",
    ),
    number(
        "M0_FIRST_BYTE_TIMEOUT_MS",
        "10000",
        (1, HOUR),
        "ms",
        "a new connection that sends nothing is closed",
    ),
    number(
        "M0_HEAD_TIMEOUT_MS",
        "10000",
        (1, HOUR),
        "ms",
        "a request head not complete by then gets 408",
    ),
    number(
        "M0_BODY_TIMEOUT_MS",
        "30000",
        (1, HOUR),
        "ms",
        "a request body with no new byte for this long gets 408",
    ),
    number(
        "M0_IDLE_TIMEOUT_MS",
        "75000",
        (1, HOUR),
        "ms",
        "an idle keep-alive connection is closed",
    ),
    number(
        "M0_WRITE_TIMEOUT_MS",
        "30000",
        (1, HOUR),
        "ms",
        "a reader that takes no byte for this long is cut",
    ),
    number(
        "M0_LINGER_MS",
        "1000",
        (0, 60_000),
        "ms",
        "how long a refused peer's bytes are read so that the answer arrives",
    ),
    number(
        "M0_MAX_HEAD_BYTES",
        "16384",
        (256, 1_048_576),
        "bytes",
        "a longer request head gets 431",
    ),
    number(
        "M0_MAX_URI_BYTES",
        "8192",
        (16, 65_534),
        "bytes",
        "a longer request target gets 414",
    ),
    number(
        "M0_MAX_HEADERS",
        "100",
        (1, 1_000),
        "fields",
        "more fields in a head get 431",
    ),
    number(
        "M0_MAX_BODY_BYTES",
        "10485760",
        (0, 1 << 40),
        "bytes",
        "a longer request body gets 413",
    ),
    number(
        "M0_MAX_CONNECTIONS",
        "65536",
        (1, 1 << 20),
        "connections",
        "held by one worker; more get 503",
    ),
    number(
        "M0_MAX_REQUESTS_PER_CONNECTION",
        "0",
        (0, 1 << 32),
        "requests",
        "the answer to the last of so many says close; 0 for any number",
    ),
    number(
        "M0_MAX_STREAMS",
        "65536",
        (0, 1 << 20),
        "streams",
        "held by one worker; more get 503",
    ),
    number(
        "M0_OUTBOX_BYTES",
        "262144",
        (4_096, 1 << 30),
        "bytes",
        "unsent bytes of one stream before it is told of the gap and cut",
    ),
    number(
        "M0_REPLAY_BYTES",
        "4194304",
        (65_536, 1 << 30),
        "bytes",
        "ring of published frames that Last-Event-ID can ask for",
    ),
    number(
        "M0_HEARTBEAT_MS",
        "15000",
        (10, HOUR),
        "ms",
        "comment on a stream that was idle for so long",
    ),
    Variable {
        name: "M0_PROXY_FROM",
        kind: Kind::Networks,
        default: "",
        help: "proxies whose PROXY header is read, between commas; unix for all at unix sockets",
    },
    switch(
        "M0_PROXY_REQUIRED",
        "1",
        "0 serves such a proxy without a header too, as a client of its own",
    ),
    number(
        "M0_WS_MAX_MESSAGE_BYTES",
        "1048576",
        (1, 1 << 30),
        "bytes",
        "a longer message of a WebSocket is closed with 1009",
    ),
    number(
        "M0_WS_MAX_FRAME_BYTES",
        "1048576",
        (1, 1 << 30),
        "bytes",
        "a longer frame of a WebSocket is closed with 1009",
    ),
    number(
        "M0_WS_MAX_FRAGMENTS",
        "65536",
        (1, 1 << 30),
        "frames",
        "a message of more fragments is closed with 1009",
    ),
    number(
        "M0_WS_WINDOW_BYTES",
        "262144",
        (4_096, 1 << 30),
        "bytes",
        "unsent bytes of one WebSocket before its application waits",
    ),
    number(
        "M0_WS_PING_MS",
        "20000",
        (10, HOUR),
        "ms",
        "silence of a WebSocket's peer before it is pinged",
    ),
    number(
        "M0_WS_PONG_TIMEOUT_MS",
        "10000",
        (10, HOUR),
        "ms",
        "a peer that sends nothing for so long after a ping is cut",
    ),
    number(
        "M0_WS_CLOSE_TIMEOUT_MS",
        "2000",
        (10, HOUR),
        "ms",
        "a peer that does not answer a close for so long is cut",
    ),
    Variable {
        name: "M0_WS_ORIGINS",
        kind: Kind::Origins,
        default: "",
        help: "pages of other origins that may open a WebSocket, between commas; * for all",
    },
    number(
        "M0_BACKOFF_MS",
        "100",
        (1, HOUR),
        "ms",
        "delay of a slot's second respawn; doubles from there",
    ),
    number(
        "M0_BACKOFF_MAX_MS",
        "10000",
        (1, HOUR),
        "ms",
        "longest delay of a respawn",
    ),
    number(
        "M0_HEALTHY_MS",
        "10000",
        (1, HOUR),
        "ms",
        "life after which a worker's earlier deaths are forgotten",
    ),
    number(
        "M0_CRASH_LIMIT",
        "10",
        (1, 10_000),
        "deaths",
        "deaths of one slot in a row that end the host with 70",
    ),
    path(
        "M0_JOURNAL",
        "SIGUSR1 to the supervisor writes its journal of decisions to this file",
    ),
];

/// Variables that name a mode this host does not have, with what to do instead.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    (
        "M0_THREADS",
        "loops on threads do not exist in this build; set M0_WORKERS for more processes",
    ),
    (
        "M0_BLOCKING_THREADS",
        "a pool of blocking threads does not exist in this build; start threads of the application's own in make",
    ),
    (
        "M0_SPAWN_WORKERS",
        "exec'd workers do not exist in this build; workers are forked, set M0_WORKERS",
    ),
    (
        "M0_WORKER_SPAWNED",
        "this host never starts a worker by exec, so it would adopt descriptors that it was not handed; unset it",
    ),
];

/// Set by the host for the children of its workers; inherited values are replaced.
pub(crate) const EXPORTED: &[&str] = &["M0_SHARED_ID_FD"];

/// The variable of this name.
pub(crate) fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|v| v.name == name)
}

/// The known name nearest to `wrong`, if one is near.
pub(crate) fn nearest<'a>(wrong: &str, own: &[&'a str]) -> Option<&'a str> {
    VARIABLES
        .iter()
        .map(|v| v.name)
        .chain(own.iter().copied())
        .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
        .filter(|(distance, known)| *distance <= known.len() / 3)
        .min()
        .map(|(_, known)| known)
}
