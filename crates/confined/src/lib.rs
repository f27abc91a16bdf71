//! Work on untrusted input in a process of its own, which can run out of memory, stack or time without affecting this one.
//! Messages are prefixed with their length.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// Maximum size of a message: more than any document, image or file.
const LONGEST: u32 = 256 * 1024 * 1024;

/// How often a process is asked whether anybody still waits for it.
const TICK: Duration = Duration::from_millis(100);

/// How long a process may take to end after it has closed its output: the system takes back its memory.
const ENDING: Duration = Duration::from_secs(2);

/// How such a process is started. It has to call [`confine`], and then to talk on its standard input and output.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Time limit per answer.
    pub patience: Duration,
}

impl Program {
    /// Describes this program with these arguments, also when another version has replaced it on disk.
    pub fn own(arguments: impl IntoIterator<Item = String>, patience: Duration) -> Program {
        let running = PathBuf::from("/proc/self/exe");
        let path = if running.exists() { running } else { std::env::current_exe().unwrap_or(running) };
        Program { path, arguments: arguments.into_iter().map(OsString::from).collect(), patience }
    }
}

/// What a process may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Processor time in seconds, from its start to its end.
    pub processor_seconds: Option<u64>,
}

/// Limits the calling process, before it reads anything.
pub fn confine(limits: Limits) -> io::Result<()> {
    let most = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Data, most(limits.memory_mib.saturating_mul(1024 * 1024)))?;
    // Running out of memory is expected: it must not fill the disk.
    setrlimit(Resource::Core, most(0))?;
    if let Some(seconds) = limits.processor_seconds {
        // At the first limit the signal is SIGXCPU. It would be SIGKILL if both were the same, as if the machine had no memory left.
        let limit = Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) };
        setrlimit(Resource::Cpu, limit)?;
    }
    // Requests have priority, and when the machine runs out of memory this process is killed before the server.
    let _ = nice(5);
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    Ok(())
}

/// Where messages are read.
pub type Input = Box<dyn Read + Send>;
/// Where messages are written.
pub type Output = Box<dyn Write + Send>;

/// Where the work is done.
enum Place {
    Process(Child),
    /// On a thread of this process, without limits: for tests, whose program is another one.
    Thread,
}

/// Work in progress elsewhere. Dropping it ends the process.
pub struct Worker {
    place: Place,
    input: BufWriter<Output>,
    output: BufReader<Input>,
    /// Returns what the process wrote to its standard error last, once it has ended.
    last_words: Option<JoinHandle<String>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Ended {
    /// It took longer than this.
    Late(Duration),
    /// Nobody waits for it any more.
    Unneeded,
    /// The process ended: it crashed, or ran into its limits.
    Gone(io::Error),
    /// Somebody else killed it; usually the system, for want of memory.
    Killed,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Late(patience) => write!(f, "it took more than {} s", patience.as_secs()),
            Ended::Unneeded => f.write_str("nobody waits for it any more"),
            Ended::Gone(error) => write!(f, "the process ended: {error}"),
            Ended::Killed => {
                f.write_str("the process was killed; the machine or its control group may be out of memory")
            }
        }
    }
}

impl Worker {
    /// Starts a process.
    pub fn start(program: &Program) -> io::Result<Worker> {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Memory counts when it is used, not when the allocator reserves it.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        // When memory runs out, the end is what matters; a backtrace takes seconds.
        command.env("RUST_BACKTRACE", "0");
        // Ctrl-C must not reach it: work in progress is completed.
        command.process_group(0);
        let mut child = command.spawn()?;
        let (Some(input), Some(output), Some(words)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        // In the log of the server, its lines would look like those of the server.
        let last_words = std::thread::Builder::new().name("worker's words".into()).spawn(|| last_line(words))?;
        Ok(Worker {
            place: Place::Process(child),
            input: BufWriter::new(Box::new(input)),
            output: BufReader::new(Box::new(output)),
            last_words: Some(last_words),
        })
    }

    /// Starts the same work on a thread of this process, where it has no limits.
    pub fn on_thread(work: fn(Input, Output) -> io::Result<()>) -> io::Result<Worker> {
        let (from, input) = io::pipe()?;
        let (output, to) = io::pipe()?;
        std::thread::Builder::new().name("worker".into()).spawn(move || work(Box::new(from), Box::new(to)))?;
        Ok(Worker {
            place: Place::Thread,
            input: BufWriter::new(Box::new(input)),
            output: BufReader::new(Box::new(output)),
            last_words: None,
        })
    }

    /// Sends a message, which the process reads at once.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        put(&mut self.input, bytes).map_err(|error| end(&mut self.place, &mut self.last_words, error))
    }

    /// Talks with the process: it is killed if that takes longer than `patience`, or as soon as `is_needed` says so.
    pub fn talk<T>(
        &mut self,
        patience: Duration,
        is_needed: &(dyn Fn() -> bool + Sync),
        talk: impl FnOnce(&mut dyn Write, &mut dyn Read) -> io::Result<T>,
    ) -> Result<T, Ended> {
        let Worker { place, input, output, last_words } = self;
        let watched = &mut *place;
        let (done, waits) = channel::<()>();
        let (answer, ended) = std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let started = Instant::now();
                loop {
                    let ended = match waits.recv_timeout(TICK.min(patience)) {
                        Err(RecvTimeoutError::Timeout) if !is_needed() => Ended::Unneeded,
                        Err(RecvTimeoutError::Timeout) if started.elapsed() >= patience => Ended::Late(patience),
                        Err(RecvTimeoutError::Timeout) => continue,
                        _ => return None,
                    };
                    if let Place::Process(child) = watched {
                        let _ = child.kill();
                    }
                    return Some(ended);
                }
            });
            let answer = talk(input, output);
            drop(done);
            (answer, watch.join().unwrap_or(None))
        });
        answer.map_err(|error| ended.unwrap_or_else(|| end(place, last_words, error)))
    }
}

/// Ends a process that does not answer; returns why it did not.
fn end(place: &mut Place, last_words: &mut Option<JoinHandle<String>>, error: io::Error) -> Ended {
    if let Place::Process(child) = place {
        if is_over(child, &error) && child.wait().is_ok_and(|status| status.signal() == Some(KILL)) {
            return Ended::Killed;
        }
        let _ = child.kill();
    }
    let words = last_words.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ended::Gone(if words.is_empty() { error } else { io::Error::new(error.kind(), words) })
}

/// The number of the signal that cannot be caught.
const KILL: i32 = 9;

/// Whether a process has ended by itself. Its ends of the pipes are closed a moment before.
fn is_over(child: &mut Child, error: &io::Error) -> bool {
    let is_closed = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe);
    let until = Instant::now() + ENDING;
    loop {
        match child.try_wait() {
            Ok(None) if is_closed && Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            state => return matches!(state, Ok(Some(_))),
        }
    }
}

/// How much of a line is kept.
const LONGEST_LINE: u64 = 1024;

/// Returns the last line that says something. A panic names its cause before the advice about backtraces.
fn last_line(from: impl Read) -> String {
    let (mut from, mut last, mut line) = (BufReader::new(from), String::new(), Vec::new());
    while matches!(from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..)) {
        let text = String::from_utf8_lossy(&line).trim().to_string();
        if !text.is_empty() && !text.starts_with("note:") {
            last = text;
        }
        line.clear();
    }
    last
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Place::Process(child) = &mut self.place {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes a message.
pub fn put(to: &mut (impl Write + ?Sized), bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("it is too long"))?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(bytes)
}

/// Reads a message.
pub fn take(from: &mut (impl Read + ?Sized)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    take_into(from, &mut bytes)?;
    Ok(bytes)
}

/// Reads a message to the end of `bytes`; returns its length.
pub fn take_into(from: &mut (impl Read + ?Sized), bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("it is too long"));
    }
    let read = from.take(length.into()).read_to_end(bytes)?;
    if read < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every message with itself, and the message `stop` with its end.
    fn echo(mut from: Input, mut to: Output) -> io::Result<()> {
        loop {
            let message = take(&mut from)?;
            if message == b"stop" {
                return Ok(());
            }
            put(&mut to, &message)?;
            to.flush()?;
        }
    }

    fn ask(worker: &mut Worker, message: &[u8]) -> Result<Vec<u8>, Ended> {
        worker.talk(Duration::from_secs(10), &|| true, |to, from| {
            put(to, message)?;
            to.flush()?;
            take(from)
        })
    }

    fn program(path: &str, arguments: &[&str]) -> Program {
        let arguments = arguments.iter().map(OsString::from).collect();
        Program { path: path.into(), arguments, patience: Duration::from_millis(10) }
    }

    #[test]
    fn messages_are_answered_until_the_worker_ends() {
        let mut worker = Worker::on_thread(echo).unwrap();
        assert_eq!(ask(&mut worker, b"one").unwrap(), b"one");
        assert_eq!(ask(&mut worker, b"").unwrap(), b"");
        assert!(matches!(ask(&mut worker, b"stop"), Err(Ended::Gone(_))));
    }

    #[test]
    fn a_process_that_ends_says_why() {
        let mut worker =
            Worker::start(&program("sh", &["-c", "echo one >&2; echo no memory >&2; echo note: x >&2"])).unwrap();
        match worker.talk(Duration::from_secs(10), &|| true, |_, from| take(from)) {
            Err(ended) => assert_eq!(ended.to_string(), "the process ended: no memory"),
            Ok(answer) => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_process_that_somebody_else_kills_is_told_from_one_that_ends() {
        let mut worker = Worker::start(&program("sh", &["-c", "kill -9 $$"])).unwrap();
        let answer = worker.talk(Duration::from_secs(10), &|| true, |_, from| take(from));
        assert!(matches!(answer, Err(Ended::Killed)), "{answer:?}");
        // Also if it had not received everything.
        let mut worker = Worker::start(&program("sh", &["-c", "kill -9 $$"])).unwrap();
        let long = vec![0; 1 << 20];
        let sent = (0..4).try_for_each(|_| worker.send(&long));
        assert!(matches!(sent, Err(Ended::Killed)), "{sent:?}");
        // One that runs into its limit of processor time is not killed by somebody else.
        let mut worker = Worker::start(&program("sh", &["-c", "kill -XCPU $$"])).unwrap();
        let answer = worker.talk(Duration::from_secs(10), &|| true, |_, from| take(from));
        assert!(matches!(answer, Err(Ended::Gone(_))), "{answer:?}");
    }

    #[test]
    fn a_process_that_is_late_or_not_needed_is_killed() {
        let mut worker = Worker::start(&program("sleep", &["600"])).unwrap();
        let answer = worker.talk(Duration::from_millis(10), &|| true, |_, from| take(from));
        assert!(matches!(answer, Err(Ended::Late(_))), "{answer:?}");
        let mut worker = Worker::start(&program("sleep", &["600"])).unwrap();
        let answer = worker.talk(Duration::from_secs(600), &|| false, |_, from| take(from));
        assert!(matches!(answer, Err(Ended::Unneeded)), "{answer:?}");
    }
}
