//! How many documents can be typeset at the same time with the memory that the server has. Where there is too little, the system ends one
//! typesetting process after the other, and work queues up.

use std::path::{Path, PathBuf};

use engine::config::Config;

const MIB: u64 = 1024 * 1024;
/// What the server itself uses, in MiB, with its caches and a database in the same machine or container.
const SERVER: u64 = 128;
/// What a process uses for ordinary documents, in MiB: with less, one of a hundred rows fails.
const DOCUMENT: u64 = 96;
/// What the process for large documents uses, in MiB: a thousand rows.
const LARGE_DOCUMENT: u64 = 160;

/// The memory of the server, and what typesetting may use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What the machine has, or the container or the unit of systemd may use, in MiB; 0 if it is unknown.
    pub total: u64,
    /// The number of processes that typeset at the same time, besides the one for large documents.
    pub presses: usize,
    /// The memory limit of each of them, in MiB.
    pub most: u64,
}

impl Memory {
    /// Looks at the machine.
    pub fn of(config: &Config) -> Memory {
        Memory::with(config, total(Path::new("/")), pdf::presses())
    }

    /// Returns what fits into `total` MiB, at most `cores` processes.
    fn with(config: &Config, total: u64, cores: usize) -> Memory {
        if total == 0 || !config.typeset_apart {
            return Memory { total, presses: cores, most: config.typeset_memory_mib };
        }
        let free = total.saturating_sub(SERVER);
        let fit = usize::try_from(free.saturating_sub(LARGE_DOCUMENT) / DOCUMENT).unwrap_or(cores);
        // A process that exceeds its own limit says so; one that the system ends may take others with it.
        Memory { total, presses: fit.clamp(1, cores), most: config.typeset_memory_mib.min(free.max(DOCUMENT)) }
    }

    /// Says what is wrong, and what to do about it; none if nothing is.
    pub fn trouble(&self) -> Option<(String, String)> {
        let needed = SERVER + LARGE_DOCUMENT + DOCUMENT;
        if self.total == 0 || self.total >= needed {
            return None;
        }
        let found = format!(
            "The server may use {} MiB of memory, so typesetting a large document may fail or be ended by the system.",
            self.total
        );
        let remedy = format!(
            "Give it {needed} MiB or more (MemoryMax of the unit, --memory of the container); typeset_memory_mib limits each document."
        );
        Some((found, remedy))
    }
}

/// Returns the memory of the machine or of the control group, whichever is less, in MiB; 0 if it is unknown.
fn total(root: &Path) -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read(&root.join("proc/meminfo"));
    let machine =
        machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let groups = read(&root.join("proc/self/cgroup"));
    let limits =
        groups.lines().flat_map(|line| limits_of(root, line)).filter_map(|file| read(&file).trim().parse().ok());
    let least = limits.chain(machine.map(|kib: u64| kib * 1024)).filter(|bytes| *bytes > 0).min();
    least.unwrap_or_default() / MIB
}

/// Returns the files with the memory limits of a control group and those around it, for version 2 and version 1.
fn limits_of(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (folder, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        some if some.split(',').any(|one| one == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    // In a container, the path may be that outside of it; its own group is then at the top.
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors().map(|group| root.join(folder).join(group).join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let flags = [("typeset_apart".to_string(), "true".to_string())];
        Config::load(None, std::iter::empty(), &flags).unwrap()
    }

    #[test]
    fn the_pool_shrinks_to_the_memory() {
        let with = |total| Memory::with(&config(), total, 4);
        assert_eq!(with(0), Memory { total: 0, presses: 4, most: 1024 }, "unknown");
        assert_eq!(with(160), Memory { total: 160, presses: 1, most: 96 });
        assert_eq!(with(256), Memory { total: 256, presses: 1, most: 128 });
        assert_eq!(with(512), Memory { total: 512, presses: 2, most: 384 });
        assert_eq!(with(4096), Memory { total: 4096, presses: 4, most: 1024 });
        assert!(with(160).trouble().unwrap().0.contains("160 MiB"));
        assert_eq!((with(0).trouble(), with(384).trouble(), with(4096).trouble()), (None, None, None));
    }

    #[test]
    fn the_smallest_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(total(folder.path()), 0);
        write("proc/meminfo", "MemTotal:        2097152 kB\nMemFree: 1 kB\n");
        assert_eq!(total(folder.path()), 2048);
        write("proc/self/cgroup", "5:memory,cpu:/box\n0::/system.slice/kantoor.service\n");
        write("sys/fs/cgroup/system.slice/kantoor.service/memory.max", "max\n");
        assert_eq!(total(folder.path()), 2048);
        write("sys/fs/cgroup/system.slice/memory.max", "536870912\n");
        assert_eq!(total(folder.path()), 512, "of the group around it");
        // Version 1 has a number without a limit too.
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "167772160\n");
        assert_eq!(total(folder.path()), 160);
    }
}
