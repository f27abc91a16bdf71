//! A server in this process, without the network.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use engine::app::App;
use engine::config::Config;
use engine::http::pages;

pub struct Server {
    app: Arc<App>,
    runtime: tokio::runtime::Runtime,
    /// The key of its account.
    pub key: String,
    /// Last, so that it is dropped last.
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn open() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let flags = [
            ("data", folder.path().to_str().unwrap()),
            ("public_url", "http://server.example"),
            ("rate_limit_per_minute", "0"),
            ("public_limit_per_minute", "0"),
            ("quota_files", "0"),
            ("quota_file_mib", "0"),
            ("typeset_apart", "false"),
        ];
        let flags: Vec<_> = flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let app = kantoor::opening::open(Config::load(None, std::iter::empty(), &flags).unwrap()).unwrap();
        let (_, key) = kantoor::opening::create_account(&app, "Fuzz", None).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Server { app, runtime, key, _folder: folder }
    }

    /// Handles a request; a panic is a 500.
    pub fn answer(&self, request: Request<Body>) -> (StatusCode, Vec<u8>) {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let (status, body) = self.runtime.block_on(async {
            let response = pages::answer(self.app.clone(), peer, request).await;
            let status = response.status();
            (status, to_bytes(response.into_body(), usize::MAX).await.unwrap())
        });
        assert!(!status.is_server_error(), "{status}: {}", body.escape_ascii());
        (status, body.to_vec())
    }
}
