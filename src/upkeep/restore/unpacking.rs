//! Unpacks a backup into a folder, and checks that it is complete and unaltered.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use archive::Identities;
use blobs::Blobs;
use bytes::Bytes;
use engine::contents::hex;
use engine::secrets::key_file;
use engine::secrets::signing::signer;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::source::{self, Failure, MAX_TEXT};
use crate::upkeep::backup::manifest::{FILES, LIST, MANIFEST, Manifest, SIGNATURE, Signed, newest_schema};
use crate::upkeep::backup::place::Place;
use crate::upkeep::backup::{FULL, plain};
use crate::upkeep::integrity::Witness;

/// Size of the pieces of contents.
const PIECE: usize = 256 * 1024;
/// The list of what was unpacked.
const OWN_LIST: &str = "unpacked.sha256";

/// How to unpack a backup.
pub struct Unpacking<'u> {
    /// What decrypts it.
    pub identities: Option<&'u Identities>,
    /// The folder for everything but contents.
    pub folder: &'u Path,
    /// Where contents are stored.
    pub contents: &'u Blobs,
    /// The runtime that stores them.
    pub runtime: &'u Handle,
    /// The database that it must be of, if it must be of a certain one.
    pub kind: Option<&'static str>,
}

/// What was unpacked.
pub struct Unpacked {
    /// The description of the backup.
    pub manifest: Manifest,
    /// The copy of the database.
    pub database: PathBuf,
    /// The key of its secrets, if the backup includes it.
    pub key: Option<PathBuf>,
    /// What its signature is about.
    pub signed: Signed,
    /// The signature; none if nobody signed it.
    pub signature: Option<Vec<u8>>,
}

/// The state of unpacking.
struct State<'u, 'w> {
    unpacking: &'u Unpacking<'u>,
    manifest: Option<Manifest>,
    has_database: bool,
    key: Option<PathBuf>,
    list: BufWriter<File>,
    count: u64,
    /// The bytes of the contents.
    bytes: u64,
    is_complete: bool,
    signed: Signed,
    signature: Option<Vec<u8>>,
    witness: &'w mut dyn Witness,
}

impl Unpacking<'_> {
    /// Unpacks all of a backup. A description that is refused is refused before anything is unpacked.
    pub fn run(&self, place: &Place, witness: &mut dyn Witness) -> Result<Unpacked, String> {
        let beside = self.folder.parent().unwrap_or(self.folder).display();
        let told = |why: String| match why.as_str() {
            FULL => format!(
                "{place}: there is no room for it, because the disk is full; make room in {beside}, or choose another folder with --data"
            ),
            _ => format!("{place}: {why}"),
        };
        let list = File::create(self.folder.join(OWN_LIST)).map_err(|error| told(plain(&error)))?;
        let mut state = State {
            unpacking: self,
            manifest: None,
            has_database: false,
            key: None,
            list: BufWriter::new(list),
            count: 0,
            bytes: 0,
            is_complete: false,
            signed: Signed::default(),
            signature: None,
            witness,
        };
        source::each(place, self.runtime, self.identities, &mut |name, size, content| state.take(name, size, content))
            .map_err(|failure| told(failure.0))?;
        match state.manifest {
            Some(manifest) if state.has_database && state.is_complete => {
                let database = self.folder.join(&manifest.database.file);
                Ok(Unpacked { manifest, database, key: state.key, signed: state.signed, signature: state.signature })
            }
            manifest => {
                let missing = match manifest {
                    None => MANIFEST,
                    Some(_) if !state.has_database => "the database",
                    Some(_) => LIST,
                };
                Err(told(damaged(&format!("{missing} is missing")).0))
            }
        }
    }
}

impl State<'_, '_> {
    fn take(&mut self, name: &str, size: u64, content: &mut dyn Read) -> Result<(), Failure> {
        if self.is_complete {
            return self.keep_signature(name, size, content);
        }
        let Some(manifest) = self.manifest.clone() else {
            return self.describe(name, size, content);
        };
        let key = name.strip_prefix(FILES).and_then(|rest| rest.strip_prefix('/'));
        match key {
            Some(key) => self.content(&manifest, name, key, content),
            None if name == manifest.database.file && self.has_database => Err(twice(name)),
            None if name == manifest.database.file => self.database(&manifest, size, content),
            None if name == LIST => self.compare(&manifest, content),
            None if name == key_file::NAME && self.key.is_some() => Err(twice(name)),
            None if name == key_file::NAME => self.save_key(size, content),
            None if name == MANIFEST => Err(twice(name)),
            None => Err(damaged(&format!("{} is no part of a backup", quoted(name)))),
        }
    }

    /// Keeps the signature, which comes last.
    fn keep_signature(&mut self, name: &str, size: u64, content: &mut dyn Read) -> Result<(), Failure> {
        if name != SIGNATURE {
            return Err(damaged(&format!("{} comes after {LIST}, where only the signature may be", quoted(name))));
        }
        if self.signature.is_some() {
            return Err(twice(name));
        }
        let text = text(name, size, content)?;
        let signature = key_file::unhex(text.trim_end()).filter(|bytes| signer(bytes).is_some());
        let wrong = || damaged(&format!("its signature ({SIGNATURE}) is not one that Kantoor makes"));
        self.signature = Some(signature.ok_or_else(wrong)?);
        Ok(())
    }

    /// Reads the description, which comes first.
    fn describe(&mut self, name: &str, size: u64, content: &mut dyn Read) -> Result<(), Failure> {
        if name != MANIFEST {
            return Err(archive::Error::Foreign.into());
        }
        let text = text(name, size, content)?;
        self.signed.manifest = hex(&Sha256::digest(&text));
        let wrong = |why: &str| damaged(&format!("its description ({MANIFEST}) {why}"));
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| wrong(&format!("is malformed: {error}")))?;
        let (own, newest) = (manifest.schema, newest_schema());
        if own > newest {
            return Err(Failure(format!(
                "the backup is of a newer version ({}, schema {own}) than this program (schema {newest}); use that version",
                manifest.kantoor
            )));
        }
        let names = [("sqlite", store::SQLITE_COPY), ("postgresql", store::POSTGRES_COPY)];
        if !names.contains(&(manifest.database.kind.as_str(), manifest.database.file.as_str())) {
            return Err(wrong("names a database that Kantoor does not have"));
        }
        match self.unpacking.kind {
            Some("sqlite") if manifest.database.kind != "sqlite" => Err(Failure(
                "this is a backup of PostgreSQL; restore it to an empty database with --database-url".to_string(),
            )),
            Some("postgresql") if manifest.database.kind != "postgresql" => Err(Failure(
                "this is a backup of SQLite; restore it to a folder with --data, without --database-url, and then move it with `kantoor copy`"
                    .to_string(),
            )),
            _ => {
                self.manifest = Some(manifest);
                Ok(())
            }
        }
    }

    fn database(&mut self, manifest: &Manifest, size: u64, content: &mut dyn Read) -> Result<(), Failure> {
        let other =
            |what: &str| damaged(&format!("the database is not the one that was backed up: its {what} differs"));
        if size != manifest.database.bytes {
            return Err(other("size"));
        }
        let path = self.unpacking.folder.join(&manifest.database.file);
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = created.map_err(|error| Failure(plain(&error)))?;
        let (mut hash, mut piece, mut done) = (Sha256::new(), vec![0; PIECE], 0);
        loop {
            let length = content.read(&mut piece).map_err(archive::Error::from)?;
            if length == 0 {
                break;
            }
            file.write_all(&piece[..length]).map_err(|error| Failure(plain(&error)))?;
            hash.update(&piece[..length]);
            done += length as u64;
            self.witness.copies("the database (KiB)", done / 1024);
        }
        file.sync_all().map_err(|error| Failure(plain(&error)))?;
        if done != size || hex(&hash.finalize()) != manifest.database.sha256 {
            return Err(other("checksum"));
        }
        self.has_database = true;
        Ok(())
    }

    fn save_key(&mut self, size: u64, content: &mut dyn Read) -> Result<(), Failure> {
        if size > MAX_TEXT {
            return Err(too_long(key_file::NAME));
        }
        let path = self.unpacking.folder.join(key_file::NAME);
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = created.map_err(|error| Failure(plain(&error)))?;
        let mut bytes = Vec::new();
        content.take(MAX_TEXT).read_to_end(&mut bytes).map_err(archive::Error::from)?;
        file.write_all(&bytes).map_err(|error| Failure(plain(&error)))?;
        file.sync_all().map_err(|error| Failure(plain(&error)))?;
        self.signed.key = hex(&Sha256::digest(&bytes));
        self.key = Some(path);
        Ok(())
    }

    fn content(&mut self, manifest: &Manifest, name: &str, key: &str, content: &mut dyn Read) -> Result<(), Failure> {
        // A small file can unpack to any number of contents of any size.
        if self.count >= manifest.files.count {
            return Err(damaged("the files are not those that were backed up"));
        }
        let most = manifest.files.bytes.saturating_sub(self.bytes);
        let mut content = content.take(most.saturating_add(1));
        let (mut hash, mut broken) = (Sha256::new(), None);
        let pieces = std::iter::from_fn(|| {
            let mut piece = vec![0; PIECE];
            match content.read(&mut piece) {
                Ok(0) => None,
                Ok(length) => {
                    piece.truncate(length);
                    hash.update(&piece);
                    Some(Ok(Bytes::from(piece)))
                }
                Err(error) => {
                    broken = Some(archive::Error::from(error));
                    Some(Err(blobs::Error::Broken(String::new())))
                }
            }
        });
        let Unpacking { runtime, contents, .. } = self.unpacking;
        let kept = runtime.block_on(contents.keep(key, futures_util::stream::iter(pieces)));
        match (broken, kept) {
            (Some(error), _) => return Err(error.into()),
            (None, Err(error)) => return Err(Failure(error.to_string())),
            (None, Ok(())) => {}
        }
        // One byte more than there may be shows that there are too many.
        let read = most.saturating_add(1) - content.limit();
        if read > most {
            return Err(damaged("the files are not those that were backed up"));
        }
        self.bytes += read;
        self.count += 1;
        self.witness.copies("files", self.count);
        let written = writeln!(self.list, "{}  {name}", hex(&hash.finalize()));
        written.map_err(|error| Failure(plain(&error)))
    }

    /// Compares the contents with their list, which comes last.
    fn compare(&mut self, manifest: &Manifest, content: &mut dyn Read) -> Result<(), Failure> {
        self.list.flush().map_err(|error| Failure(plain(&error)))?;
        let own = File::open(self.unpacking.folder.join(OWN_LIST)).map_err(|error| Failure(plain(&error)))?;
        let (mut own, mut hash) = (BufReader::new(own).bytes(), Sha256::new());
        for byte in BufReader::new(Hashed { content, hash: &mut hash }).bytes() {
            let byte = byte.map_err(archive::Error::from)?;
            match own.next() {
                Some(Ok(mine)) if mine == byte => {}
                _ => return Err(damaged("the files are not those that were backed up")),
            }
        }
        if own.next().is_some() || self.count != manifest.files.count {
            return Err(damaged("the files are not those that were backed up"));
        }
        self.signed.list = hex(&hash.finalize());
        self.is_complete = true;
        Ok(())
    }
}

/// Hashes what is read.
struct Hashed<'h> {
    content: &'h mut dyn Read,
    hash: &'h mut Sha256,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.content.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}

/// Reads a short text.
fn text(name: &str, size: u64, content: &mut dyn Read) -> Result<String, Failure> {
    if size > MAX_TEXT {
        return Err(too_long(name));
    }
    let mut text = String::new();
    content.take(MAX_TEXT).read_to_string(&mut text).map_err(archive::Error::from)?;
    Ok(text)
}

fn too_long(name: &str) -> Failure {
    damaged(&format!("{name} has more than {} MiB", MAX_TEXT / (1024 * 1024)))
}

fn twice(name: &str) -> Failure {
    damaged(&format!("it has {name} twice"))
}

/// Returns a name from an archive of somebody else, on one line.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.escape_debug())
}

fn damaged(why: &str) -> Failure {
    archive::Error::Damaged(why.to_string()).into()
}
