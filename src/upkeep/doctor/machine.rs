use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use engine::config::Config;
use engine::private;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;
use rustix::process::{Resource, getrlimit};

use super::{Finding, database};
use crate::typesetting::memory::Memory;

/// Below this, a busy server may run out of connections.
const FEW_FILES: u64 = 4096;
const MIB: u64 = 1024 * 1024;

pub fn settings(config: &Config) -> Vec<Finding> {
    [Some(address(config)), key(config)].into_iter().flatten().collect()
}

fn key(config: &Config) -> Option<Finding> {
    let loaded = Vault::load(config);
    let unreadable = if loaded.is_err() { unreadable_key(config) } else { None };
    Some(match loaded {
        Ok(Some(vault)) => Finding::fine("secrets", format!("The key of the secrets is in {}.", vault.source())),
        // A finding about the database names the key that it needs.
        Ok(None) if database::needs_key(config) => return None,
        Ok(None) => Finding::advice(
            "secrets",
            "There is no key for the secrets yet.",
            "`kantoor serve` creates it at its first start. Keep a copy of it apart from the backups.",
        ),
        Err(error) => match unreadable {
            Some(why) => Finding::problem("secrets", why, ""),
            None => Finding::problem(
                "secrets",
                error.internal.unwrap_or(error.message),
                "Restore secret.key, or the setting secret_key, from your copy.",
            ),
        },
    })
}

/// A key that another user can read is not lost.
fn unreadable_key(config: &Config) -> Option<String> {
    match KeySource::of(config) {
        KeySource::File(path) => private::unreadable(&path),
        KeySource::Setting(_) => None,
    }
}

/// Links in mail begin with `public_url`, and sign-in needs a secure connection from other machines.
fn address(config: &Config) -> Finding {
    let loopback = config.listen.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    let url = config.public_url.as_str();
    if url.is_empty() && !loopback {
        return Finding::problem(
            "address",
            format!("The server listens on {}, but public_url is not set.", config.listen),
            "Set public_url to the address that people open, such as https://office.example.nl: links in mail begin with it.",
        );
    }
    if url.is_empty() {
        return Finding::advice(
            "address",
            format!("The server listens on {}, which only this machine can reach.", config.listen),
            "To let others in, put a reverse proxy with TLS in front of it and set public_url.",
        );
    }
    if url.starts_with("http://") && !["127.0.0.1", "localhost", "[::1]"].iter().any(|host| url.contains(host)) {
        return Finding::problem(
            "address",
            format!("public_url is {url}: passwords and records are sent without encryption."),
            "Put a reverse proxy with TLS in front of the server, and set public_url to its https:// address.",
        );
    }
    Finding::fine("address", format!("People open {url}."))
}

pub fn disk(config: &Config) -> Vec<Finding> {
    let folder = config.data.as_path();
    if !folder.exists() {
        let found = format!("The data folder {} does not exist.", folder.display());
        return vec![Finding::problem(
            "disk",
            found,
            "Check --data; `kantoor serve` creates the folder at its first start.",
        )];
    }
    vec![space(folder, config.min_free_disk_mib), access(folder)]
}

fn space(folder: &Path, required: u64) -> Finding {
    let state = match rustix::fs::statvfs(folder) {
        Ok(state) => state,
        Err(error) => {
            let found = format!("The free space of {} is unknown: {error}.", folder.display());
            return Finding::advice("disk", found, "Check that the disk is mounted.");
        }
    };
    let free = state.f_bavail.saturating_mul(state.f_frsize) / MIB;
    let total = state.f_blocks.saturating_mul(state.f_frsize) / MIB;
    let found = format!("{} MiB of {} MiB are free in {}.", free, total, folder.display());
    if free < required {
        let remedy = format!(
            "Free some space: below {required} MiB (min_free_disk_mib), the server reports that it is not ready."
        );
        return Finding::problem("disk", found, remedy);
    }
    if free.saturating_mul(10) < total {
        return Finding::advice("disk", found, "Less than a tenth is free: plan for more space.");
    }
    Finding::fine("disk", found)
}

fn access(folder: &Path) -> Finding {
    let place = folder.display();
    let Ok(seen) = std::fs::metadata(folder) else {
        let found = format!("{place} cannot be opened.");
        return Finding::problem("disk", found, "Run the command as the user of the server.");
    };
    if rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err() {
        let found = format!("{place} cannot be written by this user.");
        return Finding::problem("disk", found, "Run the command as the user of the server, who must own the folder.");
    }
    let mode = seen.mode() & 0o777;
    if mode & 0o077 != 0 {
        let found = format!("Other users of this machine can open {place} (mode {mode:o}).");
        return Finding::advice("disk", found, format!("chmod 700 {place}"));
    }
    Finding::fine("disk", format!("Only its own user can open {place}."))
}

pub fn memory(config: &Config) -> Vec<Finding> {
    let memory = Memory::of(config);
    match memory.trouble() {
        Some((found, remedy)) => vec![Finding::problem("memory", found, remedy)],
        None if memory.total == 0 => Vec::new(),
        None => vec![Finding::fine("memory", format!("The server may use {} MiB of memory.", memory.total))],
    }
}

pub fn open_files() -> Vec<Finding> {
    let most = getrlimit(Resource::Nofile).maximum;
    match most {
        Some(most) if most < FEW_FILES => vec![Finding::advice(
            "limits",
            format!("The process may open {most} files, connections included."),
            "Raise the limit: LimitNOFILE=65536 in the systemd unit, or ulimit -n.",
        )],
        _ => Vec::new(),
    }
}
