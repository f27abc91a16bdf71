//! A backup as one file: a tar archive, compressed with Zstandard and, by choice, encrypted with age. `tar --zstd` and
//! `age --decrypt` read it too. Everything is streamed.

mod error;
mod keys;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

pub use error::Error;
pub use keys::{Identities, Recipients};

/// What a file starts with that age has encrypted.
const AGE: &[u8] = b"age-encryption.org/";
/// What a Zstandard frame starts with.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Size of the buffers.
const BUFFER: usize = 256 * 1024;

/// The output below the compression.
enum Output<W: Write> {
    Plain(BufWriter<W>),
    Encrypted(Box<age::stream::StreamWriter<BufWriter<W>>>),
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(output) => output.write(bytes),
            Output::Encrypted(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Plain(output) => output.flush(),
            Output::Encrypted(output) => output.flush(),
        }
    }
}

/// Writes an archive.
pub struct Writer<W: Write> {
    tar: tar::Builder<zstd::Encoder<'static, Output<W>>>,
}

impl<W: Write> Writer<W> {
    /// Starts an archive, encrypted if there are recipients.
    pub fn new(output: W, recipients: &Recipients) -> io::Result<Writer<W>> {
        let output = BufWriter::with_capacity(BUFFER, output);
        let output = match recipients.encryptor()? {
            Some(encryptor) => Output::Encrypted(Box::new(encryptor.wrap_output(output)?)),
            None => Output::Plain(output),
        };
        let mut compressed = zstd::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        // A reader notices altered bytes.
        compressed.include_checksum(true)?;
        Ok(Writer { tar: tar::Builder::new(compressed) })
    }

    /// Adds a file that only its owner may read. `content` must have exactly `size` bytes. A name that does not fit into a plain
    /// header is an error: a [`Reader`] would refuse the archive.
    pub fn add(&mut self, name: &str, size: u64, seconds: u64, content: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        header.set_mtime(seconds);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_path(name)?;
        let mut exact = Exact { content: content.take(size), left: size };
        header.set_cksum();
        self.tar.append(&header, &mut exact)
    }

    /// Completes the archive and returns the output, which has received all bytes.
    pub fn finish(self) -> io::Result<W> {
        let output = self.tar.into_inner()?.finish()?;
        let buffered = match output {
            Output::Plain(output) => output,
            Output::Encrypted(output) => output.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// A content that must not end early: the header of the archive has its size already.
struct Exact<R: Read> {
    content: io::Take<R>,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.content.read(buffer)?;
        self.left = self.left.saturating_sub(length as u64);
        match length {
            0 if self.left > 0 && !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            length => Ok(length),
        }
    }
}

/// Whether these first bytes are those of an archive.
pub fn is_archive(start: &[u8]) -> bool {
    start.starts_with(AGE) || start.starts_with(ZSTD)
}

/// Reads an archive.
pub struct Reader<'r> {
    tar: tar::Archive<Box<dyn Read + 'r>>,
}

impl<'r> Reader<'r> {
    /// Opens an archive, and decrypts it with one of the identities if it is encrypted.
    pub fn open(input: impl Read + 'r, identities: Option<&Identities>) -> Result<Reader<'r>, Error> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let start = peek(&mut input, AGE.len())?;
        let compressed: Box<dyn Read + 'r> = if start.starts_with(AGE) {
            let identities = identities.ok_or(Error::Encrypted)?;
            let header = header(start, &mut input)?;
            let decryptor = age::Decryptor::new(io::Cursor::new(header).chain(input))?;
            Box::new(decryptor.decrypt(identities.all())?)
        } else if start.starts_with(ZSTD) {
            Box::new(io::Cursor::new(start).chain(input))
        } else {
            return Err(Error::Foreign);
        };
        let plain = zstd::Decoder::new(compressed)?;
        Ok(Reader { tar: tar::Archive::new(Box::new(plain)) })
    }

    /// Calls `take` with the name, the size and the content of every file, in order, and checks that nothing is missing at
    /// the end.
    ///
    /// Only plain headers are accepted, as [`Writer`] writes them. Long names and extended headers of tar have any size: the
    /// library would read them into memory as a whole, so a small compressed file could take all of it.
    pub fn each<E: From<Error>>(
        mut self,
        mut take: impl FnMut(&str, u64, &mut dyn Read) -> Result<(), E>,
    ) -> Result<(), E> {
        for (place, entry) in self.tar.entries().map_err(Error::from)?.raw(true).enumerate() {
            let mut entry = entry.map_err(Error::from)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if entry.header().entry_type() != tar::EntryType::Regular || !is_plain(&name) {
                // A backup starts as one.
                let why = format!("its entry {name:?} is no file with a plain name");
                return Err(if place == 0 { Error::Foreign } else { Error::Damaged(why) }.into());
            }
            let size = entry.size();
            take(&name, size, &mut entry)?;
        }
        // The checksum of the compression and the end of the encryption come after the last file.
        let mut rest = self.tar.into_inner();
        io::copy(&mut rest, &mut io::sink()).map_err(Error::from)?;
        Ok(())
    }
}

/// Whether a name stays inside the folder to which it is extracted.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(char::REPLACEMENT_CHARACTER)
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// The header of an encrypted archive may be this long, and for this many recipients. The library parses it again for each piece that
/// it reads, so the time grows with the square of its length.
const LONGEST_HEADER: usize = 16 * 1024;
const MOST_RECIPIENTS: usize = 64;

/// Reads the rest of the header of an encrypted archive, which ends with a line of dashes.
fn header(mut start: Vec<u8>, input: &mut impl BufRead) -> Result<Vec<u8>, Error> {
    let too_long = || Error::Damaged("its age header is too long".to_string());
    let mut recipients = 0;
    loop {
        let before = start.len();
        let room = (LONGEST_HEADER - before) as u64;
        input.by_ref().take(room).read_until(b'\n', &mut start)?;
        let line = &start[before..];
        recipients += usize::from(line.starts_with(b"->"));
        if recipients > MOST_RECIPIENTS || start.len() >= LONGEST_HEADER {
            return Err(too_long());
        }
        // What ends early is for the library to say.
        if line.starts_with(b"---") || !line.ends_with(b"\n") {
            return Ok(start);
        }
    }
}

/// Reads up to `length` bytes from the start.
fn peek(input: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(length);
    input.take(length as u64).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(test)]
mod tests;
