//! A session that sends its peer every published frame.
//!
//! Owns what becomes of a peer that is too slow, and of what it says. Refuses to know where frames come from.
//! Invariant: the peer gets each frame once, in order, as one message of text, or is told that it did not.

use std::pin::pin;

use m0_wire::ws::code;

use super::{Closed, Message, WebSocket};
use crate::frames::Frames;

/// Sends frames until the WebSocket closes. What the peer says is read, so that pings are answered and a close
/// is heard, and dropped.
pub(super) async fn run(socket: WebSocket, mut frames: Frames) {
    loop {
        let frame = tokio::select! {
            message = socket.recv() => match message {
                Some(_) => continue,
                None => return,
            },
            frame = frames.next() => frame,
        };
        let Ok(text) = frame else {
            socket.close(code::POLICY, "frames were lost: you read too slowly");
            return;
        };
        if send(&socket, text).await.is_err() {
            return;
        }
    }
}

/// Sends a message. The peer is read while it waits, too: one that is always behind could else not close.
async fn send(socket: &WebSocket, text: String) -> Result<(), Closed> {
    let mut sending = pin!(socket.send(Message::Text(text)));
    loop {
        tokio::select! {
            biased;
            sent = &mut sending => return sent,
            heard = socket.recv() => heard.map(drop).ok_or(Closed)?,
        }
    }
}
