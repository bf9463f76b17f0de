//! The layers that an application switches on in its code.
//!
//! Owns the words of the builder. Refuses to know what a layer does. Invariant: nothing is judged here; what contradicts
//! itself is refused by `serve`, like a variable.

use super::AppConfig;
use crate::middleware::{Compression, Cors, Files, Guard};

impl AppConfig {
    /// Answers requests from the files of a directory; what is not there is the application's. Of several the first that
    /// has the file answers.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.middleware.files.push(files);
        self
    }

    /// Gives each request an id, as `M0_REQUEST_ID=1` does: in the field `x-request-id` of the request that the
    /// application sees and of its answer, and in the access log. A peer's own id is kept if it is one, of 1 to 128
    /// letters, digits and `-._~`.
    #[must_use]
    pub fn request_ids(mut self) -> Self {
        self.middleware.request_ids = true;
        self
    }

    /// Codes answers for peers that take it.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.middleware.compression = Some(compression);
        self
    }

    /// Lets pages of other origins read answers.
    #[must_use]
    pub fn cors(mut self, cors: Cors) -> Self {
        self.middleware.cors = Some(cors);
        self
    }

    /// Lets only requests with the right credentials pass. Where several guards stand at a path, each must be content.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.middleware.guards.push(guard);
        self
    }
}
