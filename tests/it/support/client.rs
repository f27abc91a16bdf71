//! A client that speaks HTTP to a server.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

/// An HTTP client with a key.
#[derive(Clone)]
pub struct Client {
    pub key: String,
    pub account: i64,
    pub base: String,
    pub agent: ureq::Agent,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub text: String,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub fn id(&self) -> String {
        let data = self.data();
        let last = self.header("location").rsplit('/').next().filter(|id| !id.is_empty());
        data["id"].as_str().or(last).unwrap_or_else(|| panic!("no id: {self:?}")).to_string()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the error code.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_string()
    }

    /// Returns `field: code` of each field error, in order.
    pub fn faults(&self) -> Vec<String> {
        let details = self.json()["error"]["details"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        details.iter().map(|fault| format!("{}: {}", text(&fault["field"]), text(&fault["code"]))).collect()
    }

    /// Returns the response, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Client {
    pub fn new(address: SocketAddr, key: String, account: i64) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        Client { key, account, base: format!("http://{address}"), agent: config.into() }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    pub fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &[], &body.to_string())
    }

    pub fn patch(&self, path: &str, body: Value) -> Reply {
        self.send("PATCH", path, &[], &body.to_string())
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "")
    }

    /// Uploads a file.
    pub fn upload(&self, name: &str, content: &[u8]) -> Reply {
        self.upload_with(&[], name, content)
    }

    /// Uploads a file with headers.
    pub fn upload_with(&self, headers: &[(&str, &str)], name: &str, content: &[u8]) -> Reply {
        let (kind, body) = multipart(&[("file", Some(name), content)]);
        let mut all = vec![("content-type", kind.as_str())];
        all.extend(headers);
        self.try_send_bytes("POST", "/v1/files", &all, body).unwrap_or_else(|error| panic!("upload: {error}"))
    }

    /// An action without a body.
    pub fn act(&self, path: &str) -> Reply {
        self.send("POST", path, &[], "")
    }

    /// Sends any request. A given header replaces the default one; an empty value removes it.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply, ureq::Error> {
        self.try_send_bytes(method, path, headers, body.as_bytes().to_vec())
    }

    pub fn try_send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        let bearer = format!("Bearer {}", self.key);
        let usual = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let given = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
            if !value.is_empty() {
                request = request.header(*name, *value);
            }
        }
        let mut response = self.agent.run(request.body(body).unwrap())?;
        let bytes = response.body_mut().with_config().limit(64 * 1024 * 1024).read_to_vec()?;
        Ok(Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: String::from_utf8_lossy(&bytes).to_string(),
            bytes,
        })
    }
}

/// Returns the content type and the bytes of a multipart body: name, file name and content of each part.
pub fn multipart(parts: &[(&str, Option<&str>, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, file_name, content) in parts {
        let file_name = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let head = format!("--bOuNdArY\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--bOuNdArY--\r\n");
    ("multipart/form-data; boundary=bOuNdArY".to_string(), body)
}
