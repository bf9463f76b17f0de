//! TLS as clients speak it, and the certificates that a phase gives its server.
//!
//! Owns the client's side of the records: rustls, which the host has too, but from its other end, and with its own
//! judgement of what is shown. Knows no phase. Invariant: a client trusts the certificates that the phase has made for
//! it and no other one.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::generate_simple_self_signed;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name that every certificate is for.
const NAME: &str = "smokes";

/// The two versions that there are.
pub static VERSIONS: [&SupportedProtocolVersion; 2] =
    [&rustls::version::TLS13, &rustls::version::TLS12];

/// A certificate and its key.
#[derive(Debug)]
pub struct Pair {
    /// In PEM.
    pub cert: String,
    /// In PEM.
    pub key: String,
    der: CertificateDer<'static>,
}

impl Pair {
    /// A new one.
    pub fn new() -> Result<Self> {
        let made = generate_simple_self_signed([NAME.to_owned()])?;
        Ok(Self {
            cert: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            der: made.cert.der().clone(),
        })
    }

    /// Whether this is the certificate that a server shows.
    pub fn is_shown(&self, shown: &[u8]) -> bool {
        *self.der == *shown
    }
}

/// The two files of a server.
#[derive(Debug)]
pub struct Files {
    /// Where the certificate is.
    pub cert: PathBuf,
    /// Where its key is.
    pub key: PathBuf,
}

impl Files {
    /// In this directory, with this pair.
    pub fn with(dir: &Path, pair: &Pair) -> Result<Self> {
        let files = Self {
            cert: dir.join("cert.pem"),
            key: dir.join("key.pem"),
        };
        files.write(pair)?;
        Ok(files)
    }

    /// Puts another pair in its place, each file at once as certbot and Kubernetes do.
    pub fn write(&self, pair: &Pair) -> Result<()> {
        for (path, text) in [(&self.cert, &pair.cert), (&self.key, &pair.key)] {
            let beside = path.with_extension("new");
            fs::write(&beside, text)?;
            fs::rename(&beside, path).with_context(|| format!("{}", path.display()))?;
        }
        Ok(())
    }
}

/// What a client trusts and offers.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
}

impl Client {
    /// Trusts this certificate, and offers both versions and no protocol.
    pub fn of(pair: &Pair) -> Result<Self> {
        Self::speaking(pair, &VERSIONS, &[])
    }

    /// Offers these versions and protocols.
    pub fn speaking(
        pair: &Pair,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(pair.der.clone())?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Ok(Self {
            config: Arc::new(config),
        })
    }

    fn name() -> ServerName<'static> {
        ServerName::try_from(NAME).expect("a name of a host")
    }

    /// A connection of which nothing is said yet.
    pub(crate) fn records(&self) -> Result<Records> {
        let inner = ClientConnection::new(Arc::clone(&self.config), Self::name())?;
        Ok(Records { inner })
    }

    /// The first bytes that it says.
    pub fn hello(&self) -> Result<Vec<u8>> {
        let mut hello = Vec::new();
        self.records()?.inner.write_tls(&mut hello)?;
        Ok(hello)
    }

    /// Speaks TLS over this connection.
    pub(crate) async fn connect(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(Self::name(), socket).await
    }
}

/// The client's side of one connection.
pub(crate) struct Records {
    inner: ClientConnection,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

impl Records {
    /// Does the handshake.
    pub(crate) fn shake(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        while self.inner.is_handshaking() {
            self.inner.complete_io(socket)?;
        }
        Ok(())
    }

    /// Reads what was sealed. 0 behind the word that nothing follows and FIN; an error of the kind
    /// [`io::ErrorKind::UnexpectedEof`] where FIN came without that word, and one that says which where an alert came.
    pub(crate) fn read(&mut self, socket: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.reader().read(into) {
                Ok(0) => return socket.read(into),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                opened => return opened,
            }
            if self.inner.read_tls(socket)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.inner.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// Sends all of this.
    pub(crate) fn write(&mut self, socket: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sealed = self.inner.writer().write(bytes)?;
            bytes = &bytes[sealed..];
            self.flush(socket)?;
        }
        Ok(())
    }

    /// Says that nothing follows.
    pub(crate) fn end(&mut self, socket: &mut impl Write) -> io::Result<()> {
        self.inner.send_close_notify();
        self.flush(socket)
    }

    fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.inner.wants_write() {
            self.inner.write_tls(socket)?;
        }
        Ok(())
    }

    /// The certificate that the server has shown.
    pub(crate) fn shown(&self) -> Option<&[u8]> {
        let chain = self.inner.peer_certificates()?;
        chain.first().map(AsRef::as_ref)
    }

    /// The protocol that was agreed on.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.inner.alpn_protocol()
    }
}
