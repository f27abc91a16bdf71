use clap::Args;
use confined::Limits;

/// Typesets documents for the server that started it, so that it can run out of memory, stack or time without affecting that server.
#[derive(Args)]
pub struct TypesetWorker {
    /// Memory limit in MiB
    memory_mib: u64,
}

impl TypesetWorker {
    pub fn run(&self) -> Result<(), String> {
        // It typesets one document after the other: the server limits the time of each.
        let limits = Limits { memory_mib: self.memory_mib, processor_seconds: None };
        confined::confine(limits).map_err(|error| error.to_string())?;
        match pdf::work(std::io::stdin().lock(), std::io::stdout().lock()) {
            // The server has stopped, and nobody waits for the document.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }
}
