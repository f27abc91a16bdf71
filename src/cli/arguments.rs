//! Secrets among the arguments. Every user of the machine can see the arguments of a process, so they are moved to the
//! environment, which only the user of the process can see, and the program starts again in the same process.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use engine::config::Config;

/// A secret that was an argument: its environment variable and its value.
type Moved = (String, String);

/// Hides secrets from the list of processes, and advises against them. Returns if there are none.
pub fn hide_secrets() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (kept, moved) = split(&arguments);
    if moved.is_empty() {
        return;
    }
    for (variable, _) in &moved {
        let _ = writeln!(
            std::io::stderr(),
            "kantoor: warning: a secret is in the arguments, where other users of this machine can see it; use the environment variable {variable} or a configuration file instead"
        );
    }
    let (Ok(program), Some(own)) = (std::env::current_exe(), arguments.first()) else { return };
    // It only returns if it fails; then the arguments stay as they are.
    let _ = Command::new(program).arg0(own).args(kept).envs(moved).exec();
}

/// Returns the arguments after the first without those that are secrets, and the secrets.
fn split(arguments: &[OsString]) -> (Vec<OsString>, Vec<Moved>) {
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter().skip(1).peekable();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        let (flag, joined) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (text, None),
        };
        let named = matches!(flag, "--set" | "--database-url" | "--from" | "--to");
        let value = joined.or_else(|| rest.peek().filter(|_| named).and_then(|next| next.to_str()));
        let setting = match (flag, value) {
            ("--set", Some(pair)) => pair.split_once('='),
            ("--database-url", Some(url)) => Some(("database_url", url)),
            // The databases of `kantoor copy`.
            ("--from", Some(url)) => Some(("copy_from", url)),
            ("--to", Some(url)) => Some(("copy_to", url)),
            _ => None,
        };
        let is_secret = |name: &str, value: &str| match name {
            "copy_from" | "copy_to" => Config::is_secret("database_url", value),
            name => Config::is_secret(name, value),
        };
        match setting.filter(|(name, value)| is_secret(name, value)) {
            Some((name, value)) => {
                moved.push((format!("KANTOOR_{}", name.to_uppercase()), value.to_string()));
                if joined.is_none() {
                    rest.next();
                }
            }
            None => kept.push(argument.clone()),
        }
    }
    (kept, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_leave_the_arguments() {
        let arguments = [
            "kantoor",
            "serve",
            "--set",
            "smtp_password=a=b",
            "--set=secret_key=00",
            "--set",
            "workers=1",
            "--database-url",
            "postgres://me:hush@db/k",
            "--database-url=postgres://db/k",
            "--data",
            "x",
            "--from",
            "postgres://me:hush@db/l",
            "--to=folder",
            "--set",
        ];
        let (kept, moved) = split(&arguments.map(OsString::from));
        let expected =
            ["serve", "--set", "workers=1", "--database-url=postgres://db/k", "--data", "x", "--to=folder", "--set"];
        assert_eq!(kept, expected.map(OsString::from));
        let moved: Vec<(&str, &str)> = moved.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            moved,
            [
                ("KANTOOR_SMTP_PASSWORD", "a=b"),
                ("KANTOOR_SECRET_KEY", "00"),
                ("KANTOOR_DATABASE_URL", "postgres://me:hush@db/k"),
                ("KANTOOR_COPY_FROM", "postgres://me:hush@db/l")
            ]
        );
    }
}
