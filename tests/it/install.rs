//! What the operator installs: packages, the unit of systemd, and `kantoor doctor`.

mod image;
mod proxies;
mod root;
mod upgrade;

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ::mail::sink::Sink;
use mollie::scripted::ScriptedMollie;

use crate::backups::scheduled::{execute, forget_last};
use crate::cli::{kantoor, said};
use crate::domains::Names;
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

/// The settings of PostgreSQL that the tests turn off.
const UNSAFE: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

on_both![
    the_doctor_finds_nothing_wrong,
    the_doctor_says_what_to_do,
    the_doctor_names_another_schema,
    the_doctor_names_the_key_that_is_missing,
    the_doctor_names_settings_that_stop_the_server,
];

fn the_doctor_finds_nothing_wrong(db: Db) {
    let (sink, names, mollie) = (Sink::start().unwrap(), Names::start(), ScriptedMollie::start().unwrap());
    names.set_all("office.example", &["some-verification=1", "v=spf1 include:mail.example ~all"]);
    names.set_all("s1._domainkey.office.example", &["v=DKIM1; k=rsa; p=MIIB"]);
    names.set_all("_dmarc.office.example", &["v=DMARC1; p=none"]);
    let _server = Binary::start(&db, "", &[]);
    let done = examined(
        &db,
        &[
            "public_url=https://office.example",
            "mail_from=Office <info@office.example>",
            "smtp_host=127.0.0.1",
            &format!("smtp_port={}", sink.port()),
            "smtp_security=none",
            &format!("dns_server={}", names.address),
            &format!("mollie_url={}", mollie.base()),
            &format!("mollie_key={}", ScriptedMollie::KEY),
            "allow_private_addresses=127.0.0.1/32",
        ],
    );
    let text = said(&done);
    // The PostgreSQL of the tests is fast and forgets: the doctor says so.
    let problems = text.lines().filter(|line| line.starts_with("problem ")).count();
    assert_eq!(problems, if db.url.is_empty() { 0 } else { UNSAFE.len() }, "{text}");
    assert_eq!(done.status.success(), db.url.is_empty(), "{text}");
    assert!(db.url.is_empty() || UNSAFE.iter().all(|name| text.contains(&format!("{name} is off"))), "{text}");
    for line in [
        "ok       address   People open https://office.example.",
        "ok       clock     The clock agrees with the database.",
        "accepts the connection. Nobody signs in there, because smtp_user is not set.",
        "office.example has an SPF record: v=spf1 include:mail.example ~all",
        "office.example has a DKIM key with the selector s1.",
        "office.example has a DMARC record: v=DMARC1; p=none",
        "Mollie accepts the key, which is a test key",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

fn the_doctor_says_what_to_do(db: Db) {
    let names = Names::start();
    names.set_all("office.example", &["v=spf1 ~all", "v=spf1 +all"]);
    let done = examined(
        &db,
        &[
            "public_url=http://office.example",
            "mail_from=info@office.example",
            "smtp_host=127.0.0.1",
            // Nothing listens there.
            "smtp_port=9",
            &format!("dns_server={}", names.address),
            "min_free_disk_mib=1000000000",
        ],
    );
    let text = said(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    for line in [
        "problem  address   public_url is http://office.example: passwords and records are sent without encryption.",
        "-> Free some space",
        "problem  mail      127.0.0.1:9: ",
        "problem  mail      office.example has 2 SPF records",
        "advice   mail      No DKIM key of office.example was found",
        "advice   mail      office.example has no DMARC record",
        if db.url.is_empty() { "4 problems: see above what to do." } else { "7 problems: see above what to do." },
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let settings = ["--set", "mail_from=info@office.example", "--set", "smtp_host=127.0.0.1", "--set", "smtp_port=9"];
    let server = format!("dns_server={}", names.address);
    let named = [&["doctor", "--selector", "s7"], &settings[..], &["--set", &server]].concat();
    let text = said(&kantoor(&db, &named));
    assert!(text.contains("problem  mail      office.example has no DKIM key with the selector s7."), "{text}");
    let text = said(&examined(&db, &["smtp_host=127.0.0.1", "smtp_port=9"]));
    assert!(text.contains("-> Set mail_from to an address of your own domain."), "{text}");
}

fn the_doctor_names_another_schema(db: Db) {
    kantoor::registry::install();
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    execute(&db, "INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')");
    let done = kantoor(&db, &["doctor"]);
    let text = said(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("problem  database  The database is of a newer version (schema 9999)"), "{text}");
    assert!(text.contains("-> Use the newer version of the program"), "{text}");
    execute(&db, "DELETE FROM schema_migrations WHERE number = 9999");
    forget_last(&db, engine::migrations::all().last().unwrap().number);
    let text = said(&kantoor(&db, &["doctor"]));
    assert!(text.contains("advice   database  The database is of an earlier version"), "{text}");
    assert!(text.contains("-> Run `kantoor migrate`, which copies the database before") && !text.contains("Back up"));
}

fn the_doctor_names_the_key_that_is_missing(db: Db) {
    assert!(said(&kantoor(&db, &["doctor"])).contains("There is no key for the secrets yet."));
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let key = db.data.join("secret.key");
    std::fs::rename(&key, db.data.join("elsewhere")).unwrap();
    let done = kantoor(&db, &["doctor"]);
    let text = said(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("problem  secrets   The secrets in the database are encrypted with the key"), "{text}");
    assert!(!text.contains("There is no key for the secrets yet."), "{text}");
}

fn the_doctor_names_settings_that_stop_the_server(db: Db) {
    let wrong = ["listen=nonsense", "trusted_proxies=foo", "template=/none.typ", "trace_to=abc", "backup_at=25:00"];
    for setting in wrong {
        let done = examined(&db, &["backup_to=x", setting]);
        let (text, name) = (said(&done), setting.split('=').next().unwrap());
        assert_eq!(done.status.code(), Some(1), "{text}");
        let found = format!("problem  settings  {name}: ");
        assert!(text.contains(&found) && text.contains("-> Correct the setting: the server does not start"), "{text}");
    }
}

fn examined(db: &Db, settings: &[&str]) -> Output {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    kantoor(db, &["doctor"].into_iter().chain(settings).collect::<Vec<_>>())
}

#[test]
fn the_doctor_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("nowhere");
    let done = Command::new(env!("CARGO_BIN_EXE_kantoor")).args(["doctor", "--data"]).arg(&data).output().unwrap();
    let text = said(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("does not exist.") && text.contains("There is no database"), "{text}");
    assert!(!data.exists());
}

#[test]
fn systemd_hears_when_the_server_is_ready_and_stops() {
    let db = Db::sqlite();
    let path = db.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let mut server = Binary::start_with(command, &db, "", &[]);
    let hear = || {
        let mut state = [0; 100];
        let length = socket.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    assert_eq!(hear(), "READY=1");
    assert_eq!([hear(), hear()], ["WATCHDOG=1", "WATCHDOG=1"]);
    server.signal(rustix::process::Signal::TERM);
    while hear() != "STOPPING=1" {}
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn journals_and_logs_get_no_key() {
    let db = Db::sqlite();
    let log = std::fs::File::create(db.folder.path().join("log")).unwrap().metadata().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("JOURNAL_STREAM", format!("{}:{}", log.dev(), log.ino()));
    let server = Binary::start_with(command, &db, "unknown", &[]);
    let said = server.said();
    assert!(!said.contains("kt_") && said.contains("No API key is printed to the journal"), "{said}");
    assert!(said.contains("open this link within a day") && said.contains("`kantoor user create --owner`"), "{said}");
    // Nor does the log of a container.
    let db = Db::sqlite();
    let said = Binary::start(&db, "unknown", &["--set", "log_format=json"]).said();
    assert!(!said.contains("kt_") && said.contains("No API key is printed to the log"), "{said}");
    assert!(said.contains("open this link within a day"), "{said}");
    let made = kantoor(&db, &["key", "create", "--scopes", "*"]);
    assert!(made.status.success() && String::from_utf8_lossy(&made.stdout).contains("kt_"), "{made:?}");
    // The variable is inherited, but the output goes elsewhere.
    let db = Db::sqlite();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("JOURNAL_STREAM", "1:1");
    Binary::start_with(command, &db, "", &[]).client.get("/v1/products").expect(200);
}

/// A container listens on all of its addresses, which no browser opens.
#[test]
fn the_first_link_can_be_opened() {
    let db = Db::sqlite();
    let log = db.folder.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(["serve", "--listen", "0.0.0.0:0", "--database-url", "", "--data"]).arg(&db.data);
    command.stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
    let mut running = command.spawn().unwrap();
    let (mut told, started) = (String::new(), Instant::now());
    while !told.contains("Kantoor is ready at") && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
        told = std::fs::read_to_string(&log).unwrap();
    }
    let _ = running.kill();
    let _ = running.wait();
    assert!(told.contains("Kantoor is ready at http://localhost:") && !told.contains("http://0.0.0.0"), "{told}");
    let link = told.lines().find(|line| line.contains("/set-up/")).unwrap();
    assert!(link.trim().starts_with("http://localhost:"), "{told}");
}

/// Builds the packages around the binary of the tests and looks into them.
#[test]
fn the_packages_contain_what_the_unit_needs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let mut build = Command::new("packaging/build");
    build.args(["--fast", "--binary", env!("CARGO_BIN_EXE_kantoor"), "--out"]).arg(out);
    run(&mut build);
    let built: Vec<String> =
        std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let named = |ending: &str| built.iter().find(|name| name.ends_with(ending)).map(|name| out.join(name));
    let archive = run(Command::new("tar").arg("--list").arg("--file").arg(named(".tar").unwrap()));
    for file in ["kantoor", "kantoor.service", "docs/backup.md", "grafana/kantoor.json", "prometheus/kantoor.rules.yml"]
    {
        assert!(archive.contains(&format!("/{file}\n")), "{file}: {archive}");
    }
    // Not every system has dpkg-deb.
    let Some(package) = named(".deb") else { return };
    let root = out.join("root");
    run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
    let version = run(Command::new(root.join("usr/bin/kantoor")).arg("--version"));
    assert!(version.starts_with("kantoor "), "{version}");
    let unit = std::fs::read_to_string(root.join("lib/systemd/system/kantoor.service")).unwrap();
    // An upgrade may take longer than systemd waits by default: killed each time, it would never end.
    assert!(unit.contains("\nTimeoutStartSec=infinity\n"), "{unit}");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    for file in start.split_whitespace().filter(|word| word.starts_with('/')) {
        assert!(root.join(&file[1..]).is_file(), "{file}");
    }
    let guides = root.join("usr/share/doc/kantoor");
    for file in ["copyright", "changelog.gz", "examples/grafana/kantoor.json", "examples/prometheus/kantoor.rules.yml"]
    {
        assert!(guides.join(file).is_file(), "{file}");
    }
    assert_links_lead_somewhere(&guides);
    assert_links_lead_somewhere(&guides.join("docs"));
    // The binary of the tests is dynamic where there is a C library to load.
    let depends = run(Command::new("dpkg-deb").arg("--field").arg(&package).arg("Depends"));
    let is_dynamic = run(Command::new("ldd").arg(root.join("usr/bin/kantoor"))).contains("libc.so.6");
    assert_eq!(depends.contains("libc6 (>= 2."), is_dynamic, "{depends}");
    // The settings are understood, and the server would start with them.
    let settings = root.join("etc/kantoor/kantoor.toml");
    let shown = run(Command::new(root.join("usr/bin/kantoor")).arg("config").arg("--config").arg(&settings));
    assert!(shown.contains("data = \"/var/lib/kantoor\""), "{shown}");
    for script in ["preinst", "postinst", "prerm", "postrm"] {
        run(Command::new("sh").arg("-n").arg(Path::new("packaging").join(script)));
    }
    if Path::new("/usr/bin/systemd-analyze").exists() {
        let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg("packaging/kantoor.service"));
        assert!(!said.contains("Unknown"), "{said}");
    }
}

/// Every link to a file in the guides of a folder leads to one.
fn assert_links_lead_somewhere(folder: &Path) {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains(':') {
                assert!(folder.join(link).exists(), "{}: {link}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 10, "{}", folder.display());
}

/// The package only recommends the certificates of authorities, and the archive brings none.
#[test]
fn a_machine_without_certificates_serves() {
    let db = Db::sqlite();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere");
    let server = Binary::start_with(command, &db, "", &[]);
    server.client.get("/v1/products").expect(200);
    let said = server.said();
    assert!(said.contains("Calls over TLS fail: install the package ca-certificates"), "{said}");
}

/// Every setting that the file mentions exists, also those in comments.
#[test]
fn the_packaged_settings_exist() {
    let text = std::fs::read_to_string("packaging/kantoor.toml").unwrap();
    let names = text.lines().filter_map(|line| Some(line.trim_start_matches("# ").split_once(" = ")?.0));
    for name in names.filter(|name| !name.contains(' ')) {
        assert!(engine::config::DEFAULTS.contains(&format!("\n{name} = ")), "{name}");
    }
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() || command.get_program() == "systemd-analyze", "{command:?}: {said}");
    said
}
