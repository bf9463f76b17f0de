//! A certificate with its key, out of two files.
//!
//! Owns what may stand in the files, and the words about what may not. Refuses to know when they are looked at.
//! Invariant: an identity that exists can be used in a handshake: its key is that of its first certificate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error, InconsistentKeys, ServerConfig};
use serde_json::json;

use crate::refusal::Refusal;
use crate::settings::Settings;

/// What clients call the two protocols (RFC 7301 section 6).
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// A longer file is no certificate: the chains of the world fit into a hundredth of it.
const MOST_BYTES: u64 = 1 << 20;

/// One of the two files: the variable that names it, and what should be there.
struct Kind {
    name: &'static str,
    right: &'static str,
}

const CERT: Kind = Kind {
    name: "M0_TLS_CERT",
    right: "want a file in PEM: the host's own certificate, and behind it those that vouch for it",
};
const KEY: Kind = Kind {
    name: "M0_TLS_KEY",
    right: "want a file in PEM with the private key of the certificate, without a password",
};

impl Kind {
    fn refusal(&self, path: &Path, wrong: impl fmt::Display) -> Refusal {
        let value = path.display().to_string();
        Refusal::of(self.name, value, format!("{wrong}; {}", self.right))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Refusal> {
        let unreadable = |error: io::Error| self.refusal(path, format!("cannot be read: {error}"));
        // Before it is opened: a pipe would be waited for, and could be read only once.
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(self.refusal(path, "is no regular file"));
        }
        if metadata.len() > MOST_BYTES {
            return Err(self.refusal(path, format!("is longer than {MOST_BYTES} bytes")));
        }
        std::fs::read(path).map_err(unreadable)
    }
}

/// A certificate chain and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    files: Arc<Files>,
    config: Arc<ServerConfig>,
}

/// Where it comes from, and what stood there.
#[derive(Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
    http2: bool,
    /// Compared by a look: times and sizes do not tell every change.
    read: (Vec<u8>, Vec<u8>),
}

impl Identity {
    /// What the variables name; none where they name nothing.
    pub(crate) fn of(settings: &Settings) -> Result<Option<Self>, Refusal> {
        let (Some(cert), Some(key)) = (&settings.tls_cert, &settings.tls_key) else {
            return Ok(None);
        };
        let files = Files {
            cert: cert.clone(),
            key: key.clone(),
            http2: settings.http2,
            read: read(cert, key)?,
        };
        files.identity().map(Some)
    }

    /// What the files hold now, where that is something else.
    pub(crate) fn look(&self) -> Result<Option<Self>, Refusal> {
        let read = read(&self.files.cert, &self.files.key)?;
        if read == self.files.read {
            return Ok(None);
        }
        let files = Files::clone(&self.files);
        Files { read, ..files }.identity().map(Some)
    }

    /// For the log.
    pub(crate) fn fields(&self) -> serde_json::Value {
        json!({ "cert": self.files.cert.display().to_string() })
    }

    pub(super) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

fn read(cert: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), Refusal> {
    Ok((CERT.read(cert)?, KEY.read(key)?))
}

impl Files {
    fn identity(self) -> Result<Identity, Refusal> {
        let provider = Arc::new(ring::default_provider());
        let chain = self.chain()?;
        let key = provider
            .key_provider
            .load_private_key(self.private_key()?)
            .map_err(|error| KEY.refusal(&self.key, format!("holds a key of no use ({error})")))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // A provider that cannot tell says so; ring can.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                let cert = self.cert.display();
                let wrong = format!(
                    "is not the key of the first certificate in {}={cert}",
                    CERT.name
                );
                return Err(KEY.refusal(&self.key, wrong));
            }
            Err(Error::InvalidCertificate(why)) => {
                return Err(CERT.refusal(
                    &self.cert,
                    format!("begins with a broken certificate ({why})"),
                ));
            }
            Err(error) => return Err(CERT.refusal(&self.cert, error)),
        }
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites of both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = [HTTP2, HTTP1][usize::from(!self.http2)..]
            .iter()
            .map(|name| name.to_vec())
            .collect();
        Ok(Identity {
            files: Arc::new(self),
            config: Arc::new(config),
        })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, Refusal> {
        let refusal = |wrong: String| CERT.refusal(&self.cert, wrong);
        let bytes = &self.read.0;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(bytes)
            .collect::<Result<_, _>>()
            .map_err(|error| refusal(broken(&error)))?;
        if chain.is_empty() {
            return Err(refusal(without("certificate", bytes)));
        }
        Ok(chain)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Refusal> {
        let bytes = &self.read.1;
        let refusal = |wrong: String| KEY.refusal(&self.key, wrong);
        if is_encrypted(bytes) {
            let undo = "openssl pkey -in ENCRYPTED -out PLAIN takes its password off";
            return Err(refusal(format!("holds an encrypted key ({undo})")));
        }
        PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
            pem::Error::NoItemsFound => refusal(without("private key", bytes)),
            error => refusal(broken(&error)),
        })
    }
}

/// There is no section of this kind.
fn without(kind: &str, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        "is empty".to_owned()
    } else {
        format!("holds no {kind}")
    }
}

/// What is wrong with the form, in words that show nothing of a key.
fn broken(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => {
            "is broken PEM: a section has no END line".to_owned()
        }
        pem::Error::IllegalSectionStart { .. } => "is broken PEM: a BEGIN line is cut".to_owned(),
        pem::Error::Base64Decode(_) => "is broken PEM: a section is not base64".to_owned(),
        _ => "is broken PEM".to_owned(),
    }
}

/// Whether a key stands behind a password: PKCS #8 says it in the BEGIN line, the older forms in a field (RFC 1421).
fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| {
        line.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY")
            || line.starts_with(b"Proc-Type: 4,ENCRYPTED")
    })
}
