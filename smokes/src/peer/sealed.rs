//! The same client over TLS.
//!
//! Owns what is different there: the handshake, and how bytes come and go. Knows records no further than
//! [`crate::tls`] says. Invariant: an end that nobody announced is told apart from one in order.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::{PATIENCE, Peer};
use crate::tls::Client;

impl Peer {
    /// Connects and does the handshake.
    pub fn connect_tls(to: SocketAddr, client: &Client) -> Result<Self> {
        Self::connect(to)?.over_tls(client)
    }

    /// Does the handshake on a connection that exists.
    pub fn over_tls(mut self, client: &Client) -> Result<Self> {
        let mut records = client.records()?;
        self.socket.set_read_timeout(Some(PATIENCE))?;
        records.shake(&mut self.socket).context("the handshake")?;
        self.tls = Some(Box::new(records));
        Ok(self)
    }

    /// The certificate that the server has shown.
    pub fn shown(&self) -> Result<&[u8]> {
        let records = self.tls.as_ref().context("no TLS")?;
        records.shown().context("no certificate")
    }

    /// The protocol that was agreed on, where there is one.
    pub fn protocol(&self) -> Option<String> {
        let name = self.tls.as_ref()?.protocol()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(into),
            Some(records) => records.read(&mut self.socket, into),
        }
    }

    pub(super) fn deliver(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.socket.write_all(bytes),
            Some(records) => records.write(&mut self.socket, bytes),
        }
    }

    /// Says over TLS that nothing follows.
    pub(super) fn announce_end(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(records) => records.end(&mut self.socket),
        }
    }
}
