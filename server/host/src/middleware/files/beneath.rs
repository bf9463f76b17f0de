//! The files beneath a root, for tower-http: opened and read on threads beside the loop.
//!
//! Owns the way from a path to an open file. Refuses to know HTTP. Invariant: what is handed on is a plain file or a
//! directory beneath the root; a device, a pipe or a socket is not there.

use std::fs::Metadata;
use std::future::{Future, Ready, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::spawn_blocking;
use tower_http::services::fs::{Backend, File as BackendFile};

/// One root.
#[derive(Debug, Clone)]
pub(super) struct Beneath {
    root: Arc<Path>,
}

impl Beneath {
    pub(super) fn new(root: &Path) -> Self {
        Beneath { root: root.into() }
    }

    fn open_now(root: &Path, inner: &Path) -> io::Result<(std::fs::File, Metadata)> {
        let file = m0_unix::beneath::open(root, inner)?;
        let known = file.metadata()?;
        if known.is_file() || known.is_dir() {
            Ok((file, known))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Does work that may wait for a disk on a thread beside the loop.
pub(super) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

type Later<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl Backend for Beneath {
    type File = Opened;
    type Metadata = Metadata;
    type OpenFuture = Later<Opened>;
    type MetadataFuture = Later<Metadata>;

    fn open(&self, inner: PathBuf) -> Later<Opened> {
        let root = Arc::clone(&self.root);
        Box::pin(async move {
            let (file, known) = beside(move || Beneath::open_now(&root, &inner)).await?;
            if known.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(Opened {
                file: File::from_std(file),
                known,
            })
        })
    }

    fn metadata(&self, inner: PathBuf) -> Later<Metadata> {
        let root = Arc::clone(&self.root);
        Box::pin(beside(move || Ok(Beneath::open_now(&root, &inner)?.1)))
    }
}

/// An open file, and what was known of it when it was opened.
#[derive(Debug)]
pub(super) struct Opened {
    file: File,
    known: Metadata,
}

impl BackendFile for Opened {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Ready<io::Result<Metadata>> {
        ready(Ok(self.known.clone()))
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_read(cx, into)
    }
}

impl AsyncSeek for Opened {
    fn start_seek(mut self: Pin<&mut Self>, to: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.file).start_seek(to)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.file).poll_complete(cx)
    }
}
