//! The thirteen steps of a host, in the order that is the point.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use m0_framelog::FrameLog;
use m0_page::{AtomicU64, Page};
use m0_unix::fds::{Doorbell, ensure_standard, pipe};
use m0_unix::fork::thread_count;
use m0_unix::shared::SharedWords;
use m0_unix::signals::Signal;
use m0_unix::{process, signals};
use serde_json::json;

use crate::app::{AppHandler, HostContext, NoProducer, Producer};
use crate::body::RequestBody;
use crate::config::{AppConfig, Ask};
use crate::doctor;
use crate::listen::{ListenError, Listeners, adopt};
use crate::log;
use crate::publisher::Bus;
use crate::refusal::{EXIT_CONFIG, EXIT_OS, EXIT_PANIC, Refusal};
use crate::run::{self, Make, Start};
use crate::settings::{Level, Settings};
use crate::supervisor::{self, Role, Ties};
use crate::tls::Identity;

/// Serves an application until it is stopped, and returns the exit code of the process.
///
/// `H` makes the service in each worker, `P` the one producer. The codes: 0 stopped as asked; 1 stopped,
/// but a worker crashed in the drain or had to be killed; 70 crash loop; 71 the operating system
/// refused; 78 the configuration was refused and nothing was bound. In a forked worker this function
/// does not return.
///
/// See [`AppHandler`] for a whole application.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a configuration is served once"
)]
pub fn serve<H: AppHandler, P: Producer>(config: AppConfig) -> ExitCode {
    let needs = Needs {
        page_slots: H::page_slots,
        max_workers: H::max_workers(),
        variables: H::variables(),
    };
    thirteen_steps::<H::Service, H::Body, P>(&config, &needs, &H::make)
}

/// Serves any [`tower::Service`], an `axum::Router` say, that `make` makes once in each worker.
///
/// The short form of [`serve`] for an application without a producer, a page or variables of its own. A router is
/// best finished with `with_state`, `with_state(())` where it has none: that makes its routes once, and not again for each
/// request. `axum::serve` does the same.
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use m0_host::{AppConfig, serve_service};
///
/// fn main() -> std::process::ExitCode {
///     serve_service(AppConfig::from_env(), |_| {
///         Ok(Router::new().route("/", get(|| async { "hello\n" })).with_state(()))
///     })
/// }
/// ```
#[expect(
    clippy::needless_pass_by_value,
    reason = "a configuration is served once"
)]
pub fn serve_service<S, B>(
    config: AppConfig,
    make: impl Fn(&HostContext) -> Result<S, Refusal>,
) -> ExitCode
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
{
    let needs = Needs {
        page_slots: |_| 0,
        max_workers: usize::MAX,
        variables: &[],
    };
    thirteen_steps::<S, B, NoProducer>(&config, &needs, &make)
}

/// What an application wants of the host beside being made.
struct Needs {
    page_slots: fn(usize) -> usize,
    max_workers: usize,
    variables: &'static [&'static str],
}

fn thirteen_steps<S, B, P>(config: &AppConfig, needs: &Needs, make: Make<'_, S>) -> ExitCode
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Display> + 'static,
    P: Producer,
{
    // Before anything opens a descriptor: nothing of ours may become standard input or output.
    if let Err(error) = ensure_standard() {
        return os_refused("opening standard descriptors", &error);
    }
    log::take_panics();

    // Step 1: refuse, before anything is bound.
    let (ask, given, _) = config.read(needs.variables);
    match ask {
        Ask::Print(text) => return print(&text),
        Ask::Doctor => {
            let (report, healthy) = doctor::report(&given, config.resolve(needs.variables));
            print(&report);
            return if healthy {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(EXIT_CONFIG)
            };
        }
        Ask::Serve => {}
    }
    let settings = match settings(config, needs) {
        Ok(settings) => settings,
        Err(refusals) => return refused(&refusals),
    };
    log::set_level(settings.log);
    let adopted = match adopt(&settings) {
        Ok(adopted) => adopted,
        Err(refusal) => return refused(&[refusal]),
    };
    let identity = match Identity::of(&settings) {
        Ok(identity) => identity,
        Err(refusal) => return refused(&[refusal]),
    };
    // Inherited masks and ignored signals would make this process deaf or its children unwaitable.
    if let Err(error) = signals::reset_inherited() {
        return os_refused("resetting inherited signals", &error);
    }
    // Nothing is lost when the soft limit stays: accepts are then starved earlier, and that is said.
    let _ = process::raise_descriptor_limit();

    // The first half of step 6, before there is a socket file that a signal could leave behind: from here
    // on a signal waits until it is armed for.
    if let Err(error) = signals::block(run::SIGNALS)
        .and_then(|()| signals::block(supervisor::SIGNALS))
        // A limit on the size of files is then an error of the call that meets it, not a death without a word.
        .and_then(|()| signals::block(&[Signal::SIGXFSZ]))
    {
        return os_refused("blocking signals", &error);
    }

    // Step 2: listen once, in the process that will fork.
    let listeners = match Listeners::open(&settings, adopted) {
        Ok(listeners) => listeners,
        Err(ListenError::Refused(refusal)) => return refused(&[refusal]),
        Err(ListenError::Os { address, error }) => {
            return os_refused(&format!("listening on {address}"), &error);
        }
    };

    // Steps 3 to 5: the pages, the bus and the accept-share channels, at one worker too.
    let (bus, app_page) = match shared(&settings, (needs.page_slots)(settings.workers)) {
        Ok(shared) => shared,
        Err(error) => return os_refused("making shared memory", &error),
    };

    // Step 6: fork where there is more than one worker; and as process 1, which has strangers to reap: a
    // process that serves cannot, since it must leave the application's own children to the application.
    if settings.workers == 1 && process::pid().as_raw() != 1 {
        let file = listeners.removed_at_end();
        let start = Start {
            slot: 0,
            settings,
            bus,
            listeners,
            identity,
            app_page,
            ties: None,
        };
        let ended = run::worker::<S, B, P>(start, make);
        if ended.abandoned {
            drop(file);
            // A thread is still inside a step: nothing is torn down under it.
            process::exit_now(i32::from(ended.code));
        }
        return ExitCode::from(ended.code);
    }
    let ties = match ties() {
        Ok(ties) => ties,
        Err(error) => return os_refused("making pipes", &error),
    };
    match supervisor::run(&settings, &bus, &listeners, ties) {
        Role::Done(code) => {
            drop(listeners.removed_at_end());
            ExitCode::from(code)
        }
        // Steps 7 to 13, in the child.
        Role::Worker { slot, report, life } => {
            let start = Start {
                slot,
                settings,
                bus,
                listeners,
                identity,
                app_page,
                ties: Some((report, life)),
            };
            // A panic must not unwind into what belongs to the parent.
            let ended = catch_unwind(AssertUnwindSafe(|| run::worker::<S, B, P>(start, make)));
            run::leave(ended.map_or(EXIT_PANIC, |ended| ended.code))
        }
    }
}

/// The settings, when nothing at all is wrong with them and with this process.
fn settings(config: &AppConfig, needs: &Needs) -> Result<Settings, Vec<Refusal>> {
    let settings = config.resolve(needs.variables)?;
    let mut refusals = Vec::new();
    if settings.workers > needs.max_workers {
        refusals.push(Refusal::of(
            "M0_WORKERS",
            settings.workers.to_string(),
            format!("this application serves from at most {}", needs.max_workers),
        ));
    }
    match thread_count() {
        Ok(1) => {}
        Ok(threads) => refusals.push(Refusal::new(format!(
            "this process already runs {threads} threads: a fork carries only one, and a signal would reach \
             one that does not wait for it; call serve first, and start threads in make"
        ))),
        Err(error) => refusals.push(Refusal::new(format!(
            "whether threads run cannot be told ({error}); mount /proc"
        ))),
    }
    if refusals.is_empty() {
        Ok(settings)
    } else {
        Err(refusals)
    }
}

/// The host's page and bus, and the application's page.
pub(crate) fn shared(
    settings: &Settings,
    app_words: usize,
) -> io::Result<(Arc<Bus>, &'static [AtomicU64])> {
    let page_words = SharedWords::create("m0-page", m0_page::words_needed(settings.workers))?;
    let page = Page::format(page_words.words(), settings.workers, epoch());
    // A child that a worker starts can read the page: it inherits the descriptor and its number.
    let exported = page_words.export()?;
    if let Err(error) = process::set_variable("M0_SHARED_ID_FD", &exported.to_string()) {
        // The count of threads was told a moment ago; only a system that hides it now gets here.
        log::event(
            Level::Warn,
            "page-not-exported",
            json!({ "message": error.to_string() }),
        );
    }
    // The descriptor stays open for the life of the process.
    std::mem::forget(page_words);
    let log_words = SharedWords::create(
        "m0-frames",
        m0_framelog::words_needed(settings.replay_bytes),
    )?;
    let log = FrameLog::format(log_words.words(), page.event_id_word(), page.epoch());
    let app_page: &'static [AtomicU64] = if app_words == 0 {
        &[]
    } else {
        SharedWords::create("m0-app", app_words)?.words()
    };
    let bells = || {
        (0..settings.workers)
            .map(|_| Doorbell::new())
            .collect::<io::Result<Vec<_>>>()
    };
    let bus = Bus {
        page,
        log,
        frame_bells: bells()?,
        accept_bells: bells()?,
    };
    Ok((Arc::new(bus), app_page))
}

/// Names this run of the host: a restarted one has another, so its ids are not taken for old ones.
fn epoch() -> u64 {
    let now = jiff::Timestamp::now().as_millisecond().unsigned_abs();
    // Two hosts of one millisecond differ by their pids.
    now << 16 | u64::from(std::process::id() & 0xffff)
}

fn ties() -> io::Result<Ties> {
    Ok(Ties {
        report: pipe()?,
        life: pipe()?,
    })
}

fn refused(refusals: &[Refusal]) -> ExitCode {
    for refusal in refusals {
        log::event(Level::Error, "refused", refusal.fields());
    }
    ExitCode::from(EXIT_CONFIG)
}

fn os_refused(what: &str, error: &io::Error) -> ExitCode {
    log::event(
        Level::Error,
        "os-refused",
        json!({ "what": what, "message": error.to_string() }),
    );
    ExitCode::from(EXIT_OS)
}

fn print(text: &str) -> ExitCode {
    // A reader that has gone wants no more.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
