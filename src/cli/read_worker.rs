use clap::Args;
use confined::Limits;

use crate::reading::worker;

/// Reads a file for the server that started it, so that it can run out of memory, stack or time without affecting that server.
#[derive(Args)]
pub struct ReadWorker {
    /// Memory limit in MiB
    memory_mib: u64,
    /// Limit of processor time in seconds
    seconds: u64,
}

impl ReadWorker {
    pub fn run(&self) -> Result<(), String> {
        let limits = Limits { memory_mib: self.memory_mib, processor_seconds: Some(self.seconds) };
        confined::confine(limits).map_err(|error| error.to_string())?;
        match worker::work(Box::new(std::io::stdin()), Box::new(std::io::stdout())) {
            // The server has stopped, or does not want the rest.
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::UnexpectedEof) =>
            {
                Ok(())
            }
            done => done.map_err(|error| error.to_string()),
        }
    }
}
