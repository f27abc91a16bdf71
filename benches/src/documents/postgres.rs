//! A temporary PostgreSQL server with default settings, so that commits are durable.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::server;

pub struct Postgres {
    folder: tempfile::TempDir,
    bin: PathBuf,
    port: u16,
}

impl Postgres {
    pub fn start() -> Postgres {
        let bin = find().expect("PostgreSQL's programs (Debian and Ubuntu: sudo apt-get install postgresql)");
        let folder = tempfile::Builder::new().prefix("bench-postgres-").tempdir_in(server::own_folder()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let postgres = Postgres { folder, bin, port };
        if is_root() {
            let owned = Command::new("chown").arg("postgres").arg(postgres.folder.path()).status();
            assert!(
                owned.is_ok_and(|status| status.success()),
                "PostgreSQL refuses to run as root, and the user postgres does not exist"
            );
        }
        postgres.command("initdb", &["-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nmax_connections = 100\n"
        );
        let file = postgres.folder.path().join("data/postgresql.conf");
        let text = fs::read_to_string(&file).unwrap() + &settings;
        fs::write(&file, text).unwrap();
        let log = postgres.folder.path().join("log");
        postgres.command("pg_ctl", &["start", "-w", "-s", "-l", &log.to_string_lossy()]);
        postgres
    }

    pub fn url(&self, name: &str) -> String {
        format!("postgres://bench@127.0.0.1:{}/{name}?sslmode=disable", self.port)
    }

    /// Creates a copy of another database.
    pub fn create(&self, name: &str, template: &str) {
        self.run("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
    }

    pub fn drop(&self, name: &str) {
        self.run("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    }

    /// Returns the number that a query selects.
    pub fn number(&self, sql: &str) -> u64 {
        self.run("postgres", sql).and_then(|text| text.parse().ok()).expect("a number")
    }

    /// Runs statements and returns the first column of the first row.
    pub fn run(&self, name: &str, sql: &str) -> Option<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url(name), NoTls).await.unwrap();
            tokio::spawn(connection);
            let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
                _ => None,
            })
        })
    }

    fn command(&self, program: &str, arguments: &[&str]) {
        let program = self.bin.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.arg("-D").arg(self.folder.path().join("data")).args(arguments).current_dir("/");
        // The server must not keep the output of the benchmark open.
        let output = command.stdout(std::process::Stdio::null()).status().expect("the program is there");
        assert!(output.success(), "{arguments:?} failed");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.command("pg_ctl", &["stop", "-m", "immediate", "-s"]);
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Returns the folder with initdb: the newest version in Debian's location, or one in PATH.
fn find() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let path = std::env::var("PATH").unwrap_or_default();
    folders.extend(path.split(':').map(PathBuf::from));
    folders
        .into_iter()
        .rev()
        .find(|folder| Path::new(folder).join("initdb").is_file() && folder.join("pg_ctl").is_file())
}
