//! A router with JSON, a form and a file, served as it stands. `with_state` makes its routes once, not for each request.
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use serde_json::Value;
use tower_http::services::ServeFile;

fn main() -> std::process::ExitCode {
    m0_host::serve_service(m0_host::AppConfig::from_env(), |_| {
        Ok(Router::new()
            .route("/json", get(|| async { Json(["a", "b"]) }))
            .route("/form", post(|Form(all): Form<Value>| async { Json(all) }))
            .route_service("/file", ServeFile::new("README.md"))
            .with_state(()))
    })
}
