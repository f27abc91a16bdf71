//! Runs a target over its corpus and over mutations of it, and reports input that panics or takes too long.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::mutate::Mutator;
use crate::targets::Target;

/// The folder with a subfolder of inputs for each target.
pub const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

/// Time limit of an input, on a busy machine and without optimization.
const TOO_LONG: Duration = Duration::from_secs(10);

/// An input on which a target fails.
pub struct Found {
    pub input: Vec<u8>,
    why: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}\nwith this input: {}", self.why, self.input.escape_ascii())
    }
}

/// A target and its corpus.
pub struct Runner {
    target: &'static Target,
    corpus: Vec<Vec<u8>>,
}

impl Runner {
    pub fn new(target: &'static Target) -> Runner {
        let folder = Path::new(CORPUS).join(target.name);
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        // In order, so that the mutations are the same on every machine.
        files.sort();
        let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        assert!(!corpus.is_empty(), "{} is empty", folder.display());
        Runner { target, corpus }
    }

    /// Runs the corpus, then a number of mutations, or as many as fit in the time; returns the number of inputs.
    pub fn run(&self, mutations: u64, time: Duration, seed: u64) -> Result<u64, Found> {
        let said = remember_panics();
        let done = self.feed(mutations, time, seed, &said);
        drop(std::panic::take_hook());
        done
    }

    fn feed(&self, mutations: u64, time: Duration, seed: u64, said: &Mutex<String>) -> Result<u64, Found> {
        let target = (self.target.open)();
        let watch = Watch::start(self.target.name);
        let run = |input: &[u8]| {
            watch.begin(input);
            let done = catch_unwind(AssertUnwindSafe(|| target(input)));
            watch.end();
            done.map_err(|_| Found { input: input.to_vec(), why: said.lock().unwrap().clone() })
        };
        for input in &self.corpus {
            run(input)?;
        }
        let mut mutator = Mutator::new(&self.corpus, self.target.words, seed);
        let started = Instant::now();
        let mut count = 0;
        while count < mutations && started.elapsed() < time {
            run(&mutator.next())?;
            count += 1;
        }
        Ok(count + self.corpus.len() as u64)
    }

    /// Adds an input to the corpus.
    pub fn save(&self, input: &[u8]) -> PathBuf {
        let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let file = Path::new(CORPUS).join(self.target.name).join(format!("found-{hash:016x}"));
        std::fs::write(&file, input).unwrap();
        file
    }
}

/// Stores the latest panic instead of printing it: some are caught and turned into an error.
fn remember_panics() -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let kept = said.clone();
    std::panic::set_hook(Box::new(move |panic| *kept.lock().unwrap() = panic.to_string()));
    said
}

/// The current input, and when it started.
type Current = Mutex<Option<(Instant, Vec<u8>)>>;

/// Ends the process when an input takes too long, since a thread cannot be stopped.
struct Watch {
    current: Arc<Current>,
}

impl Watch {
    fn start(name: &'static str) -> Watch {
        let current: Arc<Current> = Arc::default();
        let watched = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = watched.upgrade() {
                if let Some((begun, input)) = &*current.lock().unwrap()
                    && begun.elapsed() > TOO_LONG
                {
                    eprintln!("{name}: no end after {TOO_LONG:?} with this input: {}", input.escape_ascii());
                    std::process::exit(1);
                }
                drop(current);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Watch { current }
    }

    fn begin(&self, input: &[u8]) {
        *self.current.lock().unwrap() = Some((Instant::now(), input.to_vec()));
    }

    fn end(&self) {
        *self.current.lock().unwrap() = None;
    }
}
