use clap::Args;
use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// Makes documents for the server that started it. It may run out of memory, stack or time instead of that server.
#[derive(Args)]
pub struct TypesetWorker {
    /// MiB of memory that it may have
    memory_mib: u64,
}

impl TypesetWorker {
    pub fn run(&self) -> Result<(), String> {
        let most = Some(self.memory_mib.saturating_mul(1024 * 1024));
        setrlimit(Resource::Data, Rlimit { current: most, maximum: most }).map_err(|error| error.to_string())?;
        // Requests come first; and when the machine runs out of memory, this goes before the server.
        let _ = nice(5);
        let _ = std::fs::write("/proc/self/oom_score_adj", "500");
        pdf::work(std::io::stdin().lock(), std::io::stdout().lock()).map_err(|error| error.to_string())
    }
}
