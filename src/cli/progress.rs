//! How far a command is.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often a line on a terminal changes.
const OFTEN: Duration = Duration::from_millis(100);
/// How often a line is added to a journal or to the mail of cron.
const SELDOM: Duration = Duration::from_secs(30);

/// The progress of a command, on standard error: one line that changes on a terminal, and a new line now and then elsewhere.
pub struct Progress {
    on_terminal: bool,
    last: Instant,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { on_terminal: std::io::stderr().is_terminal(), last: Instant::now() }
    }

    /// Shows the progress, unless it was shown a moment ago.
    pub fn at(&mut self, what: &str) {
        if let Some(text) = self.due(what, Instant::now()) {
            let _ = write!(std::io::stderr(), "{text}");
        }
    }

    fn due(&mut self, what: &str, now: Instant) -> Option<String> {
        if now.duration_since(self.last) < if self.on_terminal { OFTEN } else { SELDOM } {
            return None;
        }
        self.last = now;
        Some(if self.on_terminal { format!("\r\x1b[2K{what}") } else { format!("{what}\n") })
    }

    /// Clears the line.
    pub fn clear(&mut self) {
        if self.on_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_gets_a_line_now_and_then() {
        let start = Instant::now();
        let mut progress = Progress { on_terminal: false, last: start };
        let mut after = |seconds| progress.due("Copying files: 7", start + Duration::from_secs(seconds));
        assert_eq!(after(29), None, "a short command says nothing");
        assert_eq!(after(30).as_deref(), Some("Copying files: 7\n"));
        assert_eq!(after(59), None);
        assert!(after(60).is_some());
    }
}
