//! What the scripts of the Debian package do to the unit: an upgrade keeps what the operator decided about it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Decides about starting at boot, as the package does on Debian.
const HELPER: &str = "/usr/bin/deb-systemd-helper";
/// What the operator creates with `systemctl enable` and removes with `systemctl disable`, and the helper too.
const LINK: &str = "etc/systemd/system/multi-user.target.wants/kantoor.service";

#[test]
fn an_upgrade_keeps_a_disabled_unit_disabled() {
    if !Path::new(HELPER).exists() {
        eprintln!("skipped: deb-systemd-helper is not installed");
        return;
    }
    let machine = Machine::new();
    symlink(HELPER, machine.programs.join("deb-systemd-helper")).unwrap();
    machine.stub("deb-systemd-invoke", "");
    let first = machine.install("");
    assert!(machine.is_enabled() && first.contains("Kantoor runs.") && first.contains("deb-systemd-invoke start"));
    let upgraded = machine.install("0.1.0");
    assert!(machine.is_enabled() && upgraded.contains("deb-systemd-invoke restart"), "{upgraded}");
    assert!(!upgraded.contains("first sign-in"), "{upgraded}");
    machine.disable();
    for _ in 0..2 {
        let upgraded = machine.install("0.1.0");
        assert!(!machine.is_enabled(), "{upgraded}");
        // It leaves a unit alone that is disabled and does not run; the package itself starts nothing.
        assert!(!upgraded.contains("systemctl restart") && !upgraded.contains("systemctl start"), "{upgraded}");
    }
    // Removed and installed again, it is as it was; purged, it is new.
    machine.remove();
    machine.install("0.1.0");
    assert!(!machine.is_enabled());
    machine.remove();
    machine.run("postrm", &["purge"]);
    machine.install("");
    assert!(machine.is_enabled());
}

/// The first packages enabled the unit without the helper, which knows nothing of it then.
#[test]
fn an_upgrade_of_the_first_packages_keeps_a_disabled_unit_disabled() {
    if !Path::new(HELPER).exists() {
        return;
    }
    for was_enabled in [false, true] {
        let machine = Machine::new();
        symlink(HELPER, machine.programs.join("deb-systemd-helper")).unwrap();
        machine.stub("deb-systemd-invoke", "");
        if was_enabled {
            machine.enable();
        }
        machine.install("0.1.0");
        assert_eq!(machine.is_enabled(), was_enabled);
    }
}

#[test]
fn without_the_helpers_a_disabled_unit_is_not_started() {
    let machine = Machine::new();
    let first = machine.install("");
    assert!(first.contains("--quiet enable kantoor.service") && first.contains("systemctl start"), "{first}");
    assert!(machine.install("0.1.0").contains("systemctl restart kantoor.service"));
    machine.stub("systemctl", "case \"$*\" in *is-enabled* | *is-active*) exit 1 ;; esac");
    let upgraded = machine.install("0.1.0");
    assert!(!upgraded.contains(" enable ") && !upgraded.contains("systemctl restart"), "{upgraded}");
}

#[test]
fn a_server_that_does_not_start_is_told() {
    let machine = Machine::new();
    machine.stub("deb-systemd-invoke", "exit 1");
    let told = machine.install("0.1.0");
    assert!(told.contains("Kantoor did not start: `journalctl --unit kantoor` says why."), "{told}");
}

#[test]
fn records_stay_when_the_package_is_purged() {
    let machine = Machine::new();
    machine.install("");
    let records = machine.root().join("var/lib/kantoor/kantoor.db");
    std::fs::create_dir_all(records.parent().unwrap()).unwrap();
    std::fs::write(&records, "records").unwrap();
    assert!(machine.remove().contains("systemctl stop kantoor.service"));
    let purged = machine.run("postrm", &["purge"]);
    assert!(purged.contains("Your records are still in /var/lib/kantoor."), "{purged}");
    assert!(records.exists());
}

/// A machine with systemd, in a folder. Its programs write down how they are called.
struct Machine {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let (root, programs) = (folder.path().join("root"), folder.path().join("programs"));
        for path in ["etc/kantoor", "lib/systemd/system", "run/systemd/system"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::fs::create_dir(&programs).unwrap();
        std::fs::copy("packaging/kantoor.service", root.join("lib/systemd/system/kantoor.service")).unwrap();
        let machine = Machine { folder, programs };
        for name in ["getent", "adduser", "chown", "chmod", "systemctl"] {
            machine.stub(name, "");
        }
        symlink("/bin/rm", machine.programs.join("rm")).unwrap();
        machine
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn stub(&self, name: &str, then: &str) {
        let path = self.programs.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho \"{name} $*\" >>\"$CALLS\"\n{then}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Installs the package, as an upgrade if there is a version `before`; returns what it said and called.
    fn install(&self, before: &str) -> String {
        let prepared = match before {
            "" => self.run("preinst", &["install"]),
            before => self.run("preinst", &["upgrade", before]),
        };
        prepared + &self.run("postinst", &["configure", before])
    }

    fn remove(&self) -> String {
        self.run("prerm", &["remove"]) + &self.run("postrm", &["remove"])
    }

    fn enable(&self) {
        let link = self.root().join(LINK);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("/lib/systemd/system/kantoor.service", link).unwrap();
    }

    fn disable(&self) {
        std::fs::remove_file(self.root().join(LINK)).unwrap();
    }

    fn is_enabled(&self) -> bool {
        // The link leads to a file of the machine and not of the folder.
        self.root().join(LINK).symlink_metadata().is_ok()
    }

    /// Runs a script of the package as dpkg does for another root; returns what it said and called.
    fn run(&self, script: &str, arguments: &[&str]) -> String {
        let calls = self.folder.path().join("calls");
        std::fs::write(&calls, "").unwrap();
        let mut command = Command::new("/bin/sh");
        command.arg(Path::new("packaging").join(script)).args(arguments);
        command.env("PATH", &self.programs).env("CALLS", &calls);
        command.env("DPKG_ROOT", self.root()).env("DPKG_MAINTSCRIPT_PACKAGE", "kantoor");
        super::run(&mut command) + &std::fs::read_to_string(&calls).unwrap()
    }
}
