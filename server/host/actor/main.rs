//! Small applications that the process tests of this crate drive; `ACTOR` names the one to be.
//!
//! Owns what each does. Refuses to judge: the tests do. A test under a runner has threads and could not
//! be served from more than one worker itself.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use m0_host::{
    AppConfig, AppHandler, HostContext, NoProducer, Producer, Publisher, Refusal, RequestBody,
    serve,
};

type Text = Full<Bytes>;
type Answer = Ready<Result<Response<Text>, Infallible>>;

/// Answers every request with what `tell` says.
#[derive(Clone)]
struct Tell {
    context: HostContext,
    tell: fn(&HostContext) -> String,
}

impl tower::Service<Request<RequestBody>> for Tell {
    type Response = Response<Text>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Answer {
        let text = (self.tell)(&self.context);
        ready(Ok(Response::new(Full::new(Bytes::from(text)))))
    }
}

/// An application whose words on its page are `workers + 3`, and that counts its requests in the first.
struct Page;

impl AppHandler for Page {
    type Service = Tell;
    type Body = Text;

    fn make(context: &HostContext) -> Result<Tell, Refusal> {
        Ok(Tell {
            context: context.clone(),
            tell: |context| {
                let page = context.app_page();
                let before = page[0].fetch_add(1, Ordering::Relaxed);
                let rest: u64 = page[1..]
                    .iter()
                    .map(|word| word.load(Ordering::Relaxed))
                    .sum();
                format!("{} {before} {rest} {}", page.len(), context.slot())
            },
        })
    }

    fn page_slots(workers: usize) -> usize {
        workers + 3
    }
}

/// An application that notes on its page how often it was made, and by which process in each slot.
struct Made;

impl AppHandler for Made {
    type Service = Tell;
    type Body = Text;

    fn make(context: &HostContext) -> Result<Tell, Refusal> {
        let page = context.app_page();
        page[0].fetch_add(1, Ordering::Relaxed);
        page[1 + context.slot()].store(std::process::id().into(), Ordering::Relaxed);
        Ok(Tell {
            context: context.clone(),
            tell: |context| {
                let page = context.app_page();
                let maker = page[1 + context.slot()].load(Ordering::Relaxed);
                let times = page[0].load(Ordering::Relaxed);
                format!("{times} {}", maker == u64::from(std::process::id()))
            },
        })
    }

    fn page_slots(workers: usize) -> usize {
        workers + 1
    }
}

/// An application that serves from one process only.
struct Single;

impl AppHandler for Single {
    type Service = Tell;
    type Body = Text;

    fn make(context: &HostContext) -> Result<Tell, Refusal> {
        Ok(Tell {
            context: context.clone(),
            tell: |_| "alone".to_owned(),
        })
    }

    fn max_workers() -> usize {
        1
    }
}

/// An application that tells what a child of its worker finds behind `M0_SHARED_ID_FD`.
struct Child;

impl AppHandler for Child {
    type Service = Tell;
    type Body = Text;

    fn make(context: &HostContext) -> Result<Tell, Refusal> {
        Ok(Tell {
            context: context.clone(),
            tell: |_| {
                let number = std::env::var("M0_SHARED_ID_FD").unwrap_or_default();
                let found = Command::new("readlink")
                    .arg(format!("/proc/self/fd/{number}"))
                    .output();
                found.map_or_else(
                    |error| error.to_string(),
                    |found| {
                        let code = found.status.code();
                        format!("{code:?} {}", String::from_utf8_lossy(&found.stdout))
                    },
                )
            },
        })
    }
}

/// An application that publishes in its handler and tells the id it was given and the one it wrote.
struct Publishes;

impl AppHandler for Publishes {
    type Service = Tell;
    type Body = Text;

    fn make(context: &HostContext) -> Result<Tell, Refusal> {
        Ok(Tell {
            context: context.clone(),
            tell: |context| {
                let mut inside = String::new();
                let published = context.publisher().publish(|frame| {
                    inside = frame.id().map(|id| id.to_string()).unwrap_or_default();
                    frame.event("note").data(&inside);
                });
                match published {
                    Ok(published) => format!("{} {inside}", published.id),
                    Err(error) => error.to_string(),
                }
            },
        })
    }
}

/// A producer that nobody wants: making it would end the host.
struct Unwanted;

impl Producer for Unwanted {
    type Error = Infallible;

    fn make(_: &HostContext) -> Result<Self, Refusal> {
        Err(Refusal::new("an unwanted producer was made"))
    }

    fn wanted(_: &m0_host::Settings) -> bool {
        false
    }

    fn step(&mut self, _: &mut Publisher) -> Result<Duration, Infallible> {
        Ok(Duration::from_secs(1))
    }
}

fn main() -> ExitCode {
    let config = AppConfig::from_env();
    match std::env::var("ACTOR").as_deref() {
        Ok("page") => serve::<Page, NoProducer>(config),
        Ok("single") => serve::<Single, NoProducer>(config),
        Ok("made") => serve::<Made, NoProducer>(config),
        Ok("child") => serve::<Child, NoProducer>(config),
        Ok("publishes") => serve::<Publishes, NoProducer>(config),
        Ok("unwanted") => serve::<Single, Unwanted>(config),
        Ok("buffered") => {
            // No line feed: it stays in the buffer of standard output until this process ends.
            print!("once");
            serve::<Page, NoProducer>(config)
        }
        Ok("drawn") => {
            // What an application may do before it serves: this thread has the keys of its hash maps from now on.
            let drawn = std::collections::HashSet::from([std::process::id()]);
            assert_eq!(drawn.len(), 1);
            serve::<Page, NoProducer>(config)
        }
        Ok("threads") => {
            // Lives as long as the process does: its sender is never dropped before the end.
            let (keep, wait) = std::sync::mpsc::channel::<()>();
            std::thread::spawn(move || wait.recv());
            let code = serve::<Page, NoProducer>(config);
            drop(keep);
            code
        }
        other => {
            eprintln!("ACTOR={other:?} names no application; see actor/main.rs");
            ExitCode::from(2)
        }
    }
}
