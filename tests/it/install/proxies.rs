//! The examples of reverse proxies: where they lead, and what they log.

use std::path::Path;
use std::process::{Child, Command};

use tempfile::TempDir;

use crate::server::Binary;
use crate::support::Db;

/// An nginx with one of the examples.
struct Nginx {
    folder: TempDir,
    port: u16,
    running: Child,
}

impl Nginx {
    /// Starts nginx with an example in which `names` are replaced; `None` if it is not installed.
    fn start(example: &str, names: &[(&str, &str)]) -> Option<Nginx> {
        let Some(nginx) = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())
        else {
            eprintln!("skipped: nginx is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let example = std::fs::read_to_string(example).unwrap();
        let mut text = format!("pid {0}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n", own.display());
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            text += &format!("{kind}_temp_path {}/{kind};\n", own.display());
        }
        // Without certificates, with one node in each cluster, and without the server that leads to TLS.
        let without = ["listen [::]", "ssl_", "server 10.0.1.12", "server 10.0.2.12"];
        for line in example.lines().filter(|line| !without.iter().any(|start| line.trim().starts_with(start))) {
            let line = line.replace("443 ssl http2", &format!("127.0.0.1:{port}"));
            let line = line.replace("listen 80;", &format!("listen unix:{}/plain;", own.display()));
            let line = line.replace("/var/log/nginx", &own.display().to_string());
            text += &names.iter().fold(line, |line, (from, to)| line.replace(from, to));
            text.push('\n');
        }
        let settings = own.join("nginx.conf");
        std::fs::write(&settings, text + "}\n").unwrap();
        let mut command = Command::new(nginx);
        command.arg("-c").arg(&settings).arg("-e").arg(own.join("error.log")).args(["-g", "daemon off;"]);
        let running = command.spawn().unwrap();
        Some(Nginx { folder, port, running })
    }

    /// Returns the status of the response to a request, and its headers.
    fn get(&self, host: &str, key: &str, path: &str) -> (String, String) {
        let (host, key) = (format!("Host: {host}"), format!("Authorization: Bearer {key}"));
        let mut curl = Command::new("curl");
        curl.args(["-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o", "/dev/null", "-D", "-"]);
        curl.args(["-H", "Referer: https://office.example.nl/d/geheim", "-H", &host, "-H", &key]);
        curl.arg(format!("http://127.0.0.1:{}{path}", self.port));
        let head = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        (head.split(' ').nth(1).unwrap_or_default().to_string(), head)
    }

    /// Stops it; returns everything that it logged.
    fn stop(mut self) -> String {
        let _ = Command::new("kill").arg(self.running.id().to_string()).status();
        let _ = self.running.wait();
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        ["kantoor.log", "kantoor-error.log", "error.log"].map(read).concat()
    }
}

/// The example of nginx in front of several clusters leads every name to its cluster.
#[test]
fn the_directory_of_accounts_leads_to_the_clusters() {
    let (first, second) = (Db::sqlite(), Db::sqlite());
    let folder = tempfile::tempdir().unwrap();
    let accounts = folder.path().join("accounts");
    std::fs::write(&accounts, "acme.example.com cluster-1;\nbakery.example.com cluster-2;\n").unwrap();
    let clusters = [Binary::start(&first, "", &[]), Binary::start(&second, "", &[])];
    let address = |place: usize| clusters[place].client.base.trim_start_matches("http://");
    let names = [
        ("/etc/nginx/kantoor.accounts", accounts.to_str().unwrap()),
        ("10.0.1.11:8080", address(0)),
        ("10.0.2.11:8080", address(1)),
    ];
    let Some(nginx) = Nginx::start("packaging/nginx-clusters.conf", &names) else { return };
    let keys = clusters.each_ref().map(|cluster| cluster.client.key.as_str());
    let status = |host: &str, key: &str| nginx.get(host, key, "/v1/products").0;
    let found = [
        status("acme.example.com", keys[0]),
        status("cluster-1.example.com", keys[0]),
        status("bakery.example.com", keys[1]),
        status("acme.example.com", keys[1]),
        status("nobody.example.com", keys[0]),
    ];
    nginx.get("acme.example.com", keys[0], "/d/geheim/pdf?x=geheim");
    let log = nginx.stop();
    assert_eq!(found, ["200", "200", "200", "401", "404"], "{log}");
    assert!(log.contains("\"GET /d/... HTTP/1.1\"") && !log.contains("geheim"), "{log}");
}

/// Whoever reads the log cannot open what it names; browsers come back over TLS alone.
#[test]
fn a_proxy_logs_no_secrets() {
    let db = Db::sqlite();
    let server = Binary::start(&db, "", &[]);
    let names = [("127.0.0.1:8080", server.client.base.trim_start_matches("http://"))];
    let Some(nginx) = Nginx::start("packaging/nginx.conf", &names) else { return };
    for path in ["/v1/products?q=geheim", "/d/geheim", "/reset/geheim", "/v1/files/7/content?signature=geheim"] {
        let (status, head) = nginx.get("office.example.nl", &server.client.key, path);
        assert!(!status.starts_with('5') && head.contains("Strict-Transport-Security: max-age="), "{path}: {head}");
    }
    // Also what it says about a server that is away.
    drop(server);
    assert_eq!(nginx.get("office.example.nl", "", "/d/geheim").0, "502");
    let log = nginx.stop();
    assert!(log.contains("\"GET /v1/files/7/content HTTP/1.1\"") && !log.contains("geheim"), "{log}");
}

/// A page whose address has a secret is in the pattern of each example, which also sends HSTS.
#[test]
fn the_examples_name_every_page_with_a_secret() {
    // What these show is the same for everybody, or needs a session.
    const OPEN: [&str; 3] = ["", "/assets", "/console"];
    let db = Db::sqlite();
    drop(crate::support::Server::start(db));
    let pages = engine::registry::registry().pages.iter().flat_map(|pages| pages.iter());
    let secret: Vec<&str> =
        pages.filter_map(|page| page.prefix.strip_suffix('/')).filter(|prefix| !OPEN.contains(prefix)).collect();
    assert!(secret.contains(&"/d") && secret.contains(&"/reset"), "{secret:?}");
    for example in ["nginx.conf", "nginx-clusters.conf", "Caddyfile"] {
        let text = std::fs::read_to_string(format!("packaging/{example}")).unwrap();
        let pattern = text.split("(?:").nth(1).unwrap().split(')').next().unwrap();
        let named: Vec<&str> = pattern.split('|').collect();
        for prefix in &secret {
            assert!(named.contains(&prefix.trim_start_matches('/')), "{example}: {prefix}");
        }
        assert!(text.contains("Strict-Transport-Security \"max-age=31536000\""), "{example}");
    }
}
