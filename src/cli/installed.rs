//! The settings of the package, for commands that name none: an administrator means the server that is installed.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The settings file of the package.
const INSTALLED: &str = "/etc/kantoor/kantoor.toml";
/// What tells that a folder is used for a server of its own.
const OWN: [&str; 2] = ["kantoor-data", "kantoor.toml"];

/// A setting and its value.
type Pair = (String, String);

/// Returns the settings file of the package and says so, unless the flags or the environment name a database, or this folder has
/// one.
pub fn settings_file(flags: &[Pair], environment: &[Pair]) -> Result<Option<PathBuf>, String> {
    let Some(file) = found(flags, environment, Path::new("."), Path::new(INSTALLED)) else { return Ok(None) };
    match File::open(&file) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(format!(
            "{} cannot be read by this user. Run the command as the user of the server (`sudo -u kantoor kantoor …`), or choose another one with --data or --config",
            file.display()
        )),
        _ => {
            let _ = writeln!(std::io::stderr(), "Using {}.", file.display());
            Ok(Some(file))
        }
    }
}

fn found(flags: &[Pair], environment: &[Pair], here: &Path, installed: &Path) -> Option<PathBuf> {
    let is_named = flags.iter().any(|(name, _)| ["data", "database_url"].contains(&name.as_str()))
        || environment.iter().any(|(name, _)| ["KANTOOR_DATA", "KANTOOR_DATABASE_URL"].contains(&name.as_str()));
    let has_own = OWN.iter().any(|name| here.join(name).exists());
    // A file in a folder that may not be entered is there.
    (!is_named && !has_own && installed.try_exists().unwrap_or(true)).then(|| installed.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str]) -> Vec<Pair> {
        names.iter().map(|name| (name.to_string(), "x".to_string())).collect()
    }

    #[test]
    fn a_command_that_names_nothing_means_the_installed_server() {
        let folder = tempfile::tempdir().unwrap();
        let (here, installed) = (folder.path().join("here"), folder.path().join("kantoor.toml"));
        std::fs::create_dir(&here).unwrap();
        let none: &[Pair] = &[];
        assert_eq!(found(none, none, &here, &installed), None, "nothing is installed");
        std::fs::write(&installed, "").unwrap();
        let others = (pairs(&["listen"]), pairs(&["PATH", "KANTOOR_LISTEN"]));
        assert_eq!(found(&others.0, &others.1, &here, &installed), Some(installed.clone()));
        for name in ["data", "database_url"] {
            assert_eq!(found(&pairs(&[name]), none, &here, &installed), None, "{name}");
        }
        for name in ["KANTOOR_DATA", "KANTOOR_DATABASE_URL"] {
            assert_eq!(found(none, &pairs(&[name]), &here, &installed), None, "{name}");
        }
        for name in OWN {
            let own = here.join(name);
            std::fs::create_dir(&own).unwrap();
            assert_eq!(found(none, none, &here, &installed), None, "{name}");
            std::fs::remove_dir(&own).unwrap();
        }
    }
}
