//! Metrics of the process and of the build, under the names that Prometheus' own clients use.

use std::fmt::Write as _;

use rustix::process::{Resource, getrlimit};

/// The unit of times in `/proc`, in 1/s: the same on every architecture.
const TICKS: u64 = 100;

/// Writes the metrics of the build and of the process. What the operating system does not tell is omitted.
pub(super) fn write(text: &mut String) {
    let (version, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let _ = writeln!(
        text,
        "# HELP kantoor_build Version of the program.\n# TYPE kantoor_build info\n\
         kantoor_build_info{{version=\"{version}\",os=\"{os}\",arch=\"{arch}\"}} 1"
    );
    let stat = Stat::read();
    let ticks = stat.as_ref().map(|stat| seconds(stat.cpu));
    let started = stat.as_ref().and_then(|stat| Some(seconds(booted_at()? * TICKS + stat.started)));
    let threads = stat.as_ref().map(|stat| stat.threads.to_string());
    let fds = std::fs::read_dir("/proc/self/fd").ok().map(|all| all.count().saturating_sub(1).to_string());
    let most = getrlimit(Resource::Nofile).current.map(|most| most.to_string());
    let (resident, mapped) = (memory("VmRSS:"), memory("VmSize:"));
    let all = [
        ("process_cpu_seconds_total", "counter", "Processor time that the process used, in seconds", ticks),
        ("process_resident_memory_bytes", "gauge", "Memory that the process uses, in bytes", resident),
        ("process_virtual_memory_bytes", "gauge", "Address space of the process, in bytes", mapped),
        ("process_open_fds", "gauge", "Open files and connections", fds),
        ("process_max_fds", "gauge", "Maximum number of open files and connections", most),
        ("process_threads", "gauge", "Threads of the process", threads),
        ("process_start_time_seconds", "gauge", "When the process started, in seconds since 1970", started),
    ];
    for (name, kind, help, value) in all {
        let Some(value) = value else { continue };
        let family = name.strip_suffix("_total").unwrap_or(name);
        let _ = writeln!(text, "# HELP {family} {help}.\n# TYPE {family} {kind}\n{name} {value}");
    }
}

/// What `/proc/self/stat` says, in ticks.
struct Stat {
    cpu: u64,
    threads: u64,
    /// Since the machine booted.
    started: u64,
}

impl Stat {
    fn read() -> Option<Stat> {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The second field is the name of the program, which may contain anything, in parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat { cpu: field(14)? + field(15)?, threads: field(20)?, started: field(22)? })
    }
}

/// Returns when the machine booted, in seconds since 1970.
fn booted_at() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

/// Returns a size of `/proc/self/status`, in bytes.
fn memory(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib: u64 =
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse().ok())?;
    Some((kib * 1024).to_string())
}

/// Ticks as seconds with two decimals.
fn seconds(ticks: u64) -> String {
    format!("{}.{:02}", ticks / TICKS, ticks % TICKS)
}
