//! The image for containers.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::run;

const BASE: &str = "docker.io/library/debian:bookworm-slim";

/// What the test leaves in podman is removed, except the layers that make it cheap next time.
struct Container(String);

impl Container {
    fn inside(&self, command: &[&str]) -> String {
        run(podman(&["exec", &self.0]).args(command))
    }

    fn becomes_healthy(&self) {
        let started = Instant::now();
        while !podman(&["healthcheck", "run", &self.0]).output().unwrap().status.success() {
            let log = run(&mut podman(&["logs", &self.0]));
            assert!(started.elapsed() < Duration::from_secs(60), "{log}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = podman(&["rm", "--force", "--volumes", &self.0]).output();
        let _ = podman(&["volume", "rm", "--force", &self.0]).output();
        let _ = podman(&["rmi", "--force", "--no-prune", &self.0]).output();
    }
}

/// Around the binary of the tests, where podman runs containers and has the base already: the test downloads no image.
#[test]
fn the_image_runs_as_its_own_user_and_keeps_its_data() {
    let works = |arguments: &[&str]| podman(arguments).output().is_ok_and(|done| done.status.success());
    if !works(&["image", "exists", BASE]) || !works(&["run", "--rm", BASE, "true"]) {
        eprintln!("skipped: podman runs no containers here, or does not have {BASE}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kantoor");
    std::fs::copy(env!("CARGO_BIN_EXE_kantoor"), &program).unwrap();
    if Path::new("/usr/bin/strip").exists() {
        run(Command::new("strip").arg(&program));
    }
    let container = Container(format!("kantoor-test-{}", std::process::id()));
    let name = container.0.as_str();
    let build = ["build", "--format", "docker", "--file", "packaging/Containerfile", "--tag", name];
    run(podman(&build).arg(folder.path()));
    let volume = format!("{name}:/data");
    // Read-only: it writes to its volume alone. Any port, since the network may be that of the machine.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("KANTOOR_LISTEN=127.0.0.1:{port}");
    let start = ["run", "--detach", "--read-only", "--name", name, "--volume", &volume, "--env", &listen, name];
    run(&mut podman(&start));
    container.becomes_healthy();
    assert_eq!(container.inside(&["id", "--user"]).trim(), "10001");
    assert_eq!(container.inside(&["stat", "--format", "%U %a", "/data"]).trim(), "kantoor 700");
    assert!(container.inside(&["pg_dump", "--version"]).contains("PostgreSQL"));
    let log = run(&mut podman(&["logs", name]));
    assert!(log.contains("/set-up/") && !log.contains("kt_"), "{log}");
    let ready = log.lines().find(|line| line.contains("Kantoor is ready")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(ready).unwrap()["level"], "INFO");
    let made = container.inside(&["kantoor", "key", "create", "--scopes", "*", "--name", "kept"]);
    assert!(made.contains("kt_"), "{made}");
    run(&mut podman(&["restart", name]));
    container.becomes_healthy();
    let keys = container.inside(&["kantoor", "key", "list"]);
    assert!(keys.contains("kept"), "{keys}");
    let log = run(&mut podman(&["logs", name]));
    assert!(log.contains("Kantoor has stopped."), "it ends on SIGTERM: {log}");
}

fn podman(arguments: &[&str]) -> Command {
    let mut command = Command::new("podman");
    command.args(arguments);
    command
}
