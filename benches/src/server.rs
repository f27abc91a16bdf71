//! The servers under load, each in its own process.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::seed;

/// The folder of the workspace.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Timeout of a request: a day with ten thousand due subscriptions is one request.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the folder of this program.
pub fn own_folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Returns the server binary to measure: that of `KANTOOR_BIN`, or a new build.
pub fn kantoor_binary() -> PathBuf {
    // Once: writing the figures of one part into the docs would make the next part build it again.
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--bin", "kantoor"]).current_dir(ROOT);
        assert!(build.status().expect("cargo is there").success(), "the server does not build");
        own_folder().join("kantoor")
    };
    BINARY.get_or_init(|| std::env::var("KANTOOR_BIN").map_or_else(|_| build(), PathBuf::from)).clone()
}

/// A folder with Kantoor's database, and a key for it.
pub struct Data {
    folder: PathBuf,
    key: String,
}

impl Data {
    /// Creates a folder with `rows` products, clients and invoices, indexed by the server itself, as after years of
    /// use.
    pub fn make(binary: &Path, folder: &Path, rows: i64) -> Data {
        let (account, data) = Data::create(binary, folder, &[]);
        let db = folder.join("kantoor.db");
        seed::kantoor(&db, &account, rows);
        let server = Server::kantoor(binary, &data);
        seed::wait_for_index(&db);
        server.stop();
        seed::checkpoint(&db);
        data
    }

    /// The same in a folder inside this one, unless an earlier run has made it there.
    pub fn kept(binary: &Path, folder: &Path, rows: i64) -> Data {
        let folder = folder.join(format!("rows-{rows}"));
        let secret = folder.join("key.txt");
        if let Ok(key) = fs::read_to_string(&secret) {
            return Data { folder, key };
        }
        let data = Data::make(binary, &folder, rows);
        fs::write(secret, &data.key).unwrap();
        data
    }

    /// Creates a folder with an empty account.
    pub fn empty(binary: &Path, folder: &Path) -> Data {
        Data::create(binary, folder, &[]).1
    }

    /// Creates a folder with an empty account whose clock stands still at `moment`.
    pub fn with_test_clock(binary: &Path, folder: &Path, moment: &str) -> Data {
        Data::create(binary, folder, &["--test-clock", moment]).1
    }

    /// Creates a folder with an empty account; the first value is its public id.
    fn create(binary: &Path, folder: &Path, options: &[&str]) -> (String, Data) {
        migrate(&mut kantoor(binary, folder));
        let mut create = kantoor(binary, folder);
        create.args(["account", "create", "bench", "--json"]).args(options);
        let made = create.output().expect("the server is there");
        assert!(made.status.success(), "no account: {}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout).expect("an account in JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_string();
        (text(&made["account"]["id"]), Data { folder: folder.to_path_buf(), key: text(&made["key"]) })
    }

    pub fn database(&self) -> PathBuf {
        self.folder.join("kantoor.db")
    }

    /// Copies it to a new folder; no server may run on this one.
    pub fn copy(&self, folder: &Path) -> Data {
        fs::create_dir_all(folder).unwrap();
        copy(&self.database(), &folder.join("kantoor.db"));
        Data { folder: folder.to_path_buf(), key: self.key.clone() }
    }
}

/// Copies a database and syncs it.
pub fn copy(from: &Path, to: &Path) -> PathBuf {
    fs::copy(from, to).unwrap();
    File::open(to).and_then(|file| file.sync_all()).unwrap();
    to.to_path_buf()
}

/// The command with default settings, ignoring the environment.
fn kantoor(binary: &Path, data: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KANTOOR_")) {
        command.env_remove(name);
    }
    // Databases are copied from one folder to another.
    command.env("KANTOOR_SECRET_KEY", "00".repeat(32)).arg("--data").arg(data);
    command
}

/// Creates the database, unless it is there.
fn migrate(command: &mut Command) {
    let done = command.arg("migrate").output().expect("the server is there");
    assert!(done.status.success(), "no database: {}", String::from_utf8_lossy(&done.stderr));
}

/// Creates an account in this folder, or in the database at `url`; returns its key.
pub fn create_account(binary: &Path, folder: &Path, url: Option<&str>) -> String {
    migrate(kantoor(binary, folder).args(url.iter().flat_map(|url| ["--database-url", url])));
    let mut create = kantoor(binary, folder);
    create.args(url.iter().flat_map(|url| ["--database-url", url])).args(["account", "create", "bench", "--json"]);
    let made = create.output().expect("the server is there");
    assert!(made.status.success(), "no account: {}", String::from_utf8_lossy(&made.stderr));
    let made: Value = serde_json::from_slice(&made.stdout).expect("an account in JSON");
    made["key"].as_str().expect("a key").to_string()
}

/// Copies the database in this folder to an empty one on PostgreSQL.
pub fn copy_database(binary: &Path, folder: &Path, url: &str) {
    let mut copy = kantoor(binary, folder);
    let done = copy.arg("copy").arg("--from").arg(folder).args(["--to", url]).output().expect("the server is there");
    assert!(done.status.success(), "not copied: {}", String::from_utf8_lossy(&done.stderr));
}

/// A running server, stopped when it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub key: String,
    /// Where its metrics are, if anywhere.
    metrics: Option<SocketAddr>,
    /// Time from the start of the process to its first response.
    pub started_in: Duration,
}

impl Server {
    /// Starts Kantoor on this data.
    pub fn kantoor(binary: &Path, data: &Data) -> Server {
        Server::kantoor_with(binary, data, &[])
    }

    /// Starts Kantoor on this data, with these settings.
    pub fn kantoor_with(binary: &Path, data: &Data, settings: &[&str]) -> Server {
        let address = free_address();
        let mut command = kantoor(binary, &data.folder);
        // One key makes all requests here, far more than its rate limit.
        command.args(["serve", "--listen", &address.to_string(), "--set", "rate_limit_per_minute=0"]);
        command.args(settings.iter().flat_map(|setting| ["--set", setting]));
        Server::start(command, address, data.key.clone(), &data.folder.join("stderr.log"))
    }

    /// Starts the bare program: this binary, in its own process. `mode` is `group` or `single`.
    pub fn limit(db: &Path, mode: &str) -> Server {
        let address = free_address();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["limit", "--mode", mode, "--port", &address.port().to_string(), "--db"]).arg(db);
        // It requires no key; one is sent anyway, so that both read the same bytes.
        let key = format!("kt_{}", "0".repeat(36));
        Server::start(command, address, key, &db.with_extension("log"))
    }

    /// Kantoor on this folder, or on the database at `url`, with metrics and without workers: what they do would be
    /// measured as well, and depends on the load.
    pub fn kantoor_alone(binary: &Path, folder: &Path, url: Option<&str>) -> Server {
        let (address, metrics) = (free_address(), free_address());
        let mut command = kantoor(binary, folder);
        command.args(url.iter().flat_map(|url| ["--database-url", url]));
        command.args(["serve", "--listen", &address.to_string(), "--set", "rate_limit_per_minute=0"]);
        command.args(["--set", "workers=0", "--set", &format!("metrics_listen={metrics}")]);
        let mut server = Server::start(command, address, String::new(), &folder.join("stderr.log"));
        server.metrics = Some(metrics);
        server
    }

    /// The bare program of documents on this database.
    pub fn bare(database: &str, log: &Path) -> Server {
        let address = free_address();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["bare", &address.port().to_string(), database]);
        let mut server = Server::start(command, address, String::new(), log);
        server.metrics = Some(address);
        server
    }

    fn start(mut command: Command, address: SocketAddr, key: String, log: &Path) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log).unwrap());
        let spawned = Instant::now();
        let child = command.spawn().expect("the server starts");
        let mut server = Server { child, address, key, metrics: None, started_in: Duration::ZERO };
        while !server.exchange("GET", "/health", "").is_some_and(|answer| answer.starts_with(b"HTTP/1.1 200")) {
            let ended = server.child.try_wait().unwrap().is_some();
            if ended || spawned.elapsed() > START_TIMEOUT {
                panic!("The server does not answer:\n{}", fs::read_to_string(log).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        server.started_in = spawned.elapsed();
        server
    }

    /// Returns the body of a GET.
    pub fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.bytes(path)).expect("a body in JSON")
    }

    /// Returns the body of any request.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        self.success("GET", path, "")
    }

    /// Returns the response to a POST.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        serde_json::from_slice(&self.success("POST", path, &body.to_string())).expect("a body in JSON")
    }

    fn success(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let mut answer = self.exchange(method, path, body).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head and a body");
        assert!(answer.starts_with(b"HTTP/1.1 20"), "{path}: {}", String::from_utf8_lossy(&answer));
        answer.split_off(end + 4)
    }

    /// Returns the header and body of a response on a new connection, or `None` if nothing listens.
    fn exchange(&self, method: &str, path: &str, body: &str) -> Option<Vec<u8>> {
        self.exchange_at(self.address, method, path, body)
    }

    fn exchange_at(&self, address: SocketAddr, method: &str, path: &str, body: &str) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(START_TIMEOUT)).ok()?;
        let (key, length) = (&self.key, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(answer)
    }

    /// The value of a metric; none when the server does not have it.
    pub fn metric(&self, name: &str) -> Option<u64> {
        let answer = self.exchange_at(self.metrics?, "GET", "/metrics", "")?;
        let text = String::from_utf8_lossy(&answer);
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    /// Bytes that the process has written to the disk.
    pub fn written(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).expect("Linux");
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:")).expect("a line of that name");
        line.trim().parse().expect("a number of bytes")
    }

    /// Returns the resident memory of the process, in MB.
    pub fn megabytes(&self) -> f64 {
        self.status("VmRSS:")
    }

    /// Returns the number of its open files and connections.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("Linux").count()
    }

    /// Returns its peak memory.
    pub fn peak(&self) -> f64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of that name");
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
        kibibytes * 1024.0 / 1e6
    }

    /// Waits until the server is done with what it does after a start, such as signing a long log.
    pub fn rest(&self) {
        let ticks = || -> u64 {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("Linux");
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
        };
        // A tick is a hundredth of a second.
        let is_busy = || {
            let before = ticks();
            std::thread::sleep(Duration::from_secs(2));
            ticks() - before > 4
        };
        while is_busy() {}
    }

    /// Stops the process, and waits for it.
    pub fn stop(mut self) {
        let mut kill = Command::new("sh");
        let told = kill.args(["-c", "kill -TERM \"$0\"", &self.child.id().to_string()]).status();
        assert!(told.is_ok_and(|status| status.success()), "the server was gone already");
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is no process left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}
