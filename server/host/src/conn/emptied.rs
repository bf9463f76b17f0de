//! The part of a connection that knows whether a read has left its socket empty.
//!
//! Owns what a short read means. Invariant: a socket is taken for empty only where a read that brought less than it was
//! asked for proves it (epoll(7), "Questions and answers", 9): what comes next is told of anew then, and a read that
//! finds nothing is a system call less. An end that was told of stays told.

use tokio::io::Interest;

use super::Conn;

/// What the loop is told of. Priority: of urgent data, for [`Conn::is_emptied`] alone.
pub(super) const INTEREST: Interest = Interest::READABLE
    .add(Interest::WRITABLE)
    .add(Interest::PRIORITY);

impl Conn {
    /// Whether a read of `got` bytes, where there was room for `room`, has left nothing in the socket.
    ///
    /// Two reads end early with more behind them: one that meets the mark of urgent data (tcp(7)), and on a unix socket
    /// one that meets a passed descriptor (unix(7)) or such a mark. Of a mark the loop is told before it is met, or
    /// again behind it.
    pub(super) fn is_emptied(&self, got: usize, room: usize) -> bool {
        0 < got && got < room && self.over_tcp && !self.has_urgent_data()
    }

    /// Whether urgent data came at any time: looks at what the loop was told, and asks nobody.
    fn has_urgent_data(&self) -> bool {
        let told = self.socket.try_io(Interest::PRIORITY, |_| Ok(()));
        told.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{IoSlice, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::rc::Rc;
    use std::time::Duration;

    use m0_spec::row;
    use m0_unix::sockets::Peer;
    use m0_wire::Scanner;
    use socket2::{Domain, MsgHdr, SockRef, Socket, Type};

    use super::Conn;
    use crate::stream_tests::Scene;

    /// All that reads bring until this many bytes have come.
    async fn read(conn: &Conn, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes {
            let mut some = [0; 1_000];
            let reading = poll_fn(|cx| conn.poll_recv(cx, &mut some));
            let got = tokio::time::timeout(Duration::from_secs(10), reading).await;
            let got = got.unwrap_or_else(|_| panic!("only {} came", all.escape_ascii()));
            all.extend_from_slice(&some[..got.expect("it is open")]);
        }
        all
    }

    #[row(E130)]
    #[test]
    fn what_stands_behind_urgent_data_is_read_without_a_wait_for_more() {
        let mut scene = Scene::new(&[]);
        Scene::on_a_loop(async {
            let conn = scene.conn();
            for round in ["one", "two"] {
                scene.client.write_all(b"before ").expect("room");
                let urgent = SockRef::from(&scene.client).send_out_of_band(b"!");
                assert_eq!(urgent.expect("room"), 1);
                scene.client.write_all(b"behind").expect("room");
                let all = read(&conn, b"before behind".len()).await;
                assert_eq!(all, b"before behind", "round {round}");
            }
        });
    }

    /// A connection over a unix socket, and its peer.
    fn unix(scene: &Scene) -> (Rc<Conn>, Socket) {
        let (ours, peer) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        let scanner = Scanner::new(scene.worker.limits());
        let share = scene.worker.share();
        let conn = Conn::new(ours, Peer::Unix, scanner, share, false).expect("a loop");
        (Rc::new(conn), peer)
    }

    #[row(E130)]
    #[test]
    fn what_stands_behind_a_passed_descriptor_is_read_without_a_wait_for_more() {
        let scene = Scene::new(&[]);
        Scene::on_a_loop(async {
            let (conn, mut peer) = unix(&scene);
            // cmsg(3): its length, SOL_SOCKET, SCM_RIGHTS, the descriptor, and what fills the word.
            let mut control = (16_usize + 4).to_ne_bytes().to_vec();
            for number in [1, 1, peer.as_raw_fd(), 0] {
                control.extend_from_slice(&number.to_ne_bytes());
            }
            let bytes = [IoSlice::new(b"before ")];
            let message = MsgHdr::new().with_buffers(&bytes).with_control(&control);
            assert_eq!(peer.sendmsg(&message, 0).expect("room"), 7);
            peer.write_all(b"behind").expect("room");
            let all = read(&conn, b"before behind".len()).await;
            assert_eq!(all, b"before behind");
        });
    }

    #[row(E130)]
    #[test]
    fn only_a_read_that_proves_it_leaves_a_socket_empty() {
        let mut scene = Scene::new(&[]);
        Scene::on_a_loop(async {
            let conn = scene.conn();
            assert!(conn.is_emptied(1, 2) && conn.is_emptied(999, 1_000));
            assert!(!conn.is_emptied(0, 2), "the end is told of once");
            assert!(!conn.is_emptied(2, 2), "there may be more");
            assert!(!unix(&scene).0.is_emptied(1, 2), "a read may end anywhere");
        });
    }
}
