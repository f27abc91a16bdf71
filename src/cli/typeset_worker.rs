use clap::Args;
use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// Typesets documents for the server that started it, so that it can run out of memory, stack or time without affecting that server.
#[derive(Args)]
pub struct TypesetWorker {
    /// Memory limit in MiB
    memory_mib: u64,
}

impl TypesetWorker {
    pub fn run(&self) -> Result<(), String> {
        let most = Some(self.memory_mib.saturating_mul(1024 * 1024));
        setrlimit(Resource::Data, Rlimit { current: most, maximum: most }).map_err(|error| error.to_string())?;
        // Requests have priority, and when the machine runs out of memory this process is killed before the server.
        let _ = nice(5);
        let _ = std::fs::write("/proc/self/oom_score_adj", "500");
        match pdf::work(std::io::stdin().lock(), std::io::stdout().lock()) {
            // The server has stopped, and nobody waits for the document.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }
}
