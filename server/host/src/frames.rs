//! The published frames as a session reads them: one after the other, at its own pace.
//!
//! Owns a place in the frame log and the bell that tells of new frames. Refuses to know who is sent what it
//! reads. Invariants: the numbers of what `next` returns are consecutive from where it was made, or it says
//! that they are not; a reader that is behind holds no frame: the log does.

use std::fmt;

use m0_framelog::{FrameId, FrameLog, Next, Reader, Replay, plan};
use m0_page::WorkerCounter;
use m0_streams::end;

use crate::app::HostContext;

/// Every frame published on the host from the moment this was made, or after a `Last-Event-ID`, as the text
/// of an event. Made by [`HostContext::frames`].
#[derive(Clone)]
pub struct Frames {
    context: HostContext,
    next: u64,
    /// What the reader is told first, where it cannot go on after its last id.
    reset: Option<String>,
}

/// The log was overwritten before the frames were read from it: the reader was too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lapped {
    /// Frames that this reader will never see.
    pub missed: u64,
}

impl fmt::Display for Lapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} frames were overwritten unread", self.missed)
    }
}

impl std::error::Error for Lapped {}

impl Frames {
    pub(crate) fn new(context: HostContext, last_event_id: Option<&str>) -> Self {
        let log = context.log();
        let (next, reset) = match plan(last_event_id, log) {
            Replay::From(next) | Replay::LiveFrom(next) => (next, None),
            Replay::Reset(reason) => {
                let next = log.tail();
                let text = end::reset(reason, log.id(next - 1));
                (next, Some(String::from_utf8_lossy(&text).into_owned()))
            }
        };
        Frames {
            context,
            next,
            reset,
        }
    }

    /// The next frame, as the text of an event stream: `id:`, `event:` and `data:` lines, and an empty one.
    ///
    /// May be given up and called again: no frame is lost.
    ///
    /// # Errors
    /// [`Lapped`] when frames were lost; the next call goes on behind them.
    pub async fn next(&mut self) -> Result<String, Lapped> {
        if let Some(reset) = self.reset.take() {
            return Ok(reset);
        }
        let mut text = Vec::new();
        loop {
            // Before the look: a frame that comes now rings again.
            let bell = self.context.clone();
            let mut rung = std::pin::pin!(bell.frame_bell().notified());
            rung.as_mut().enable();
            match self.look(&mut text) {
                Next::Frame(_) if text.is_empty() => {}
                Next::Frame(_) => {
                    let share = self.context.page().share(self.context.slot());
                    share.counter(WorkerCounter::FramesDelivered).add(1);
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                Next::Lapped { missed, .. } => return Err(Lapped { missed }),
                Next::Empty => rung.await,
            }
        }
    }

    /// Reads one frame, if there is one.
    fn look(&mut self, text: &mut Vec<u8>) -> Next {
        let log: FrameLog<'static> = self.context.log();
        let next = if let Ok(mut reader) = Reader::after(log, self.next - 1) {
            reader.next(text)
        } else {
            let oldest = log.oldest();
            Next::Lapped {
                resumed_at: log.id(oldest),
                missed: oldest - self.next,
            }
        };
        match next {
            Next::Frame(FrameId { seq, .. }) => self.next = seq + 1,
            Next::Lapped { resumed_at, .. } => self.next = resumed_at.seq,
            Next::Empty => {}
        }
        next
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use m0_spec::row;
    use m0_streams::Frame;

    use super::*;
    use crate::config::AppConfig;
    use crate::serve::shared;

    pub(crate) fn scene() -> HostContext {
        let variables = [("M0_WORKERS", "1"), ("M0_REPLAY_BYTES", "65536")];
        let config = AppConfig::from_parts(variables, std::iter::empty::<&str>());
        let settings = config.resolve(&[]).expect("valid");
        let (bus, app_page) = shared(&settings, 0).expect("shared memory");
        HostContext::new(0, settings, Arc::clone(&bus), app_page)
    }

    pub(crate) fn publish(context: &HostContext, data: &str) -> FrameId {
        let write = |id, text: &mut Vec<u8>| Frame::new(Some(id), text).data(data).finish();
        context.log().append(1, write).expect("it fits")
    }

    /// What the next call says at its first poll; it is given up then.
    fn once(frames: &mut Frames) -> Poll<Result<String, Lapped>> {
        let mut context = Context::from_waker(Waker::noop());
        pin!(frames.next()).poll(&mut context)
    }

    fn is(id: FrameId, data: &str) -> Poll<Result<String, Lapped>> {
        Poll::Ready(Ok(format!("id: {id}\ndata: {data}\n\n")))
    }

    #[row(K21)]
    #[test]
    fn each_frame_comes_once_and_in_order_from_where_the_reader_was_made() {
        let context = scene();
        publish(&context, "before");
        let mut frames = context.frames(None);
        assert_eq!(once(&mut frames), Poll::Pending);
        let ids = ["one", "two"].map(|data| (publish(&context, data), data));
        for (id, data) in ids {
            assert_eq!(once(&mut frames), is(id, data));
        }
        assert_eq!(once(&mut frames), Poll::Pending);
    }

    #[row(K21)]
    #[test]
    fn the_bell_wakes_whoever_waits_for_a_frame() {
        let context = scene();
        let mut frames = context.frames(None);
        let mut waits = pin!(frames.next());
        let mut polled = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut polled).is_pending());
        let id = publish(&context, "rung");
        context.frame_bell().notify_waiters();
        assert_eq!(waits.as_mut().poll(&mut polled), is(id, "rung"));
    }

    #[row(K24)]
    #[test]
    fn a_last_id_is_gone_on_from_or_answered_with_a_reset() {
        let context = scene();
        let [first, second] = ["one", "two"].map(|data| publish(&context, data));
        let mut frames = context.frames(Some(&first.to_string()));
        assert_eq!(once(&mut frames), is(second, "two"));
        let mut frames = context.frames(Some("nonsense"));
        let Poll::Ready(Ok(reset)) = once(&mut frames) else {
            panic!("no reset");
        };
        assert!(reset.contains("event: reset\n"), "{reset}");
        assert_eq!(once(&mut frames), Poll::Pending);
        let third = publish(&context, "three");
        assert_eq!(once(&mut frames), is(third, "three"));
    }

    #[row(K25)]
    #[test]
    fn an_overtaken_reader_is_told_how_many_it_missed_and_goes_on() {
        let context = scene();
        let mut frames = context.frames(None);
        let large = "x".repeat(10_000);
        let ids: Vec<FrameId> = (0..20).map(|_| publish(&context, &large)).collect();
        let missed = context.log().oldest() - ids[0].seq;
        assert!(missed > 0, "the log holds all of them");
        let told = Poll::Ready(Err(Lapped { missed }));
        assert_eq!(once(&mut frames), told);
        assert_eq!(once(&mut frames), is(ids[missed as usize], &large));
    }
}
