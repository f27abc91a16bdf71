//! Stores contents by key, in a folder or an S3-compatible store. A content is durable when [`Blobs::keep`] returns.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::io::AsyncWriteExt;

/// A store of contents.
#[derive(Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    folder: Option<PathBuf>,
}

/// The settings of an S3-compatible store.
#[derive(Clone, Default)]
pub struct S3 {
    /// The bucket.
    pub bucket: String,
    /// Prefix of every key.
    pub prefix: String,
    /// The URL of the store; empty for the default endpoint of the region.
    pub endpoint: String,
    /// The region.
    pub region: String,
    /// The access key; empty to use the machine's role.
    pub access_key: String,
    /// The secret key.
    pub secret_key: String,
}

/// Why a content could not be stored or read.
#[derive(Debug)]
pub enum Error {
    /// No content has this key.
    Missing,
    /// The disk is full.
    Full,
    /// The sender of the content gave up, or the content is invalid.
    Broken(String),
    /// The store is unavailable; a message for the log.
    Unavailable(String),
}

/// A result with this error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A readable content.
pub struct Content {
    /// Its length in bytes.
    pub size: u64,
    /// Its bytes.
    pub bytes: futures_util::stream::BoxStream<'static, Result<Bytes>>,
}

/// Size of the upload buffer: the minimum size of an S3 part.
const BUFFER: usize = 5 * 1024 * 1024;
/// Size of the upload buffer for large contents.
const LARGE_BUFFER: usize = 16 * 1024 * 1024;

/// Where a machine at AWS is asked for its role, if there are no keys.
const ROLES: &str = "169.254.169.254";

/// Gives a file or folder the owner of another. A command that an administrator runs as root must not leave what the
/// service cannot write; anybody else cannot change an owner and creates files as the service does.
fn take_owner(path: &Folder, other: &Folder) {
    // A link is not followed: the service could point it at a file of the system.
    let (Ok(own), Ok(other)) = (std::fs::symlink_metadata(path), std::fs::metadata(other)) else { return };
    if own.uid() != other.uid() {
        let _ = std::os::unix::fs::lchown(path, Some(other.uid()), Some(other.gid()));
    }
}

impl Blobs {
    /// Opens a folder, which is created if it does not exist.
    pub fn in_folder(folder: &Folder) -> Result<Blobs> {
        let is_new = !folder.exists();
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::Unavailable(format!("cannot create the folder {}: {error}", folder.display())))?;
        if let (true, Some(parent)) = (is_new, folder.parent()) {
            take_owner(folder, parent);
        }
        let store = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true).with_automatic_cleanup(true);
        Ok(Blobs { store: Arc::new(store), folder: Some(folder.to_path_buf()) })
    }

    /// Opens a store in memory, for tests.
    pub fn in_memory() -> Blobs {
        Blobs { store: Arc::new(InMemory::new()), folder: None }
    }

    /// Opens an S3-compatible store.
    pub fn in_s3(s3: &S3) -> Result<Blobs> {
        // An earlier caller installed the same provider; see Cargo.toml.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&s3.bucket)
            .with_region(if s3.region.is_empty() { "us-east-1" } else { &s3.region })
            .with_conditional_put(S3ConditionalPut::ETagMatch);
        if !s3.endpoint.is_empty() {
            builder = builder.with_endpoint(&s3.endpoint).with_allow_http(s3.endpoint.starts_with("http://"));
        }
        if !s3.access_key.is_empty() {
            builder = builder.with_access_key_id(&s3.access_key).with_secret_access_key(&s3.secret_key);
        }
        let store = builder.build()?;
        Ok(Blobs { store: Arc::new(PrefixStore::new(store, s3.prefix.as_str())), folder: None })
    }

    /// Stores a content that arrives in pieces. It is durable when this returns; if the pieces end with an error,
    /// nothing is stored.
    pub async fn keep<S, E>(&self, key: &str, pieces: S) -> Result<()>
    where
        S: Stream<Item = Result<Bytes, E>>,
        Error: From<E>,
    {
        self.keep_in_parts(key, pieces, BUFFER).await
    }

    /// [`Blobs::keep`] for contents of up to 160 GB: S3 accepts 10,000 parts.
    pub async fn keep_large<S, E>(&self, key: &str, pieces: S) -> Result<()>
    where
        S: Stream<Item = Result<Bytes, E>>,
        Error: From<E>,
    {
        self.keep_in_parts(key, pieces, LARGE_BUFFER).await
    }

    async fn keep_in_parts<S, E>(&self, key: &str, pieces: S, part: usize) -> Result<()>
    where
        S: Stream<Item = Result<Bytes, E>>,
        Error: From<E>,
    {
        let mut writer = BufWriter::with_capacity(self.store.clone(), Path::from(key), part).with_max_concurrency(2);
        let mut pieces = std::pin::pin!(pieces);
        while let Some(piece) = pieces.next().await {
            let kept = match piece {
                Ok(piece) => writer.put(piece).await.map_err(|error| stored_nowhere(error.into())),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = kept {
                let _ = writer.abort().await;
                return Err(error);
            }
        }
        writer.shutdown().await.map_err(|error| stored_nowhere(error.into()))?;
        if let Some(folder) = &self.folder {
            let file = folder.join(Path::from(key).as_ref());
            file.ancestors().take_while(|path| *path != folder).for_each(|path| take_owner(path, folder));
        }
        Ok(())
    }

    /// Checks that contents can be looked up. No content has this key; unlike a HEAD, the answer to a GET says whether the
    /// object or its bucket is missing.
    pub async fn check(&self) -> Result<()> {
        match self.store.get(&Path::from("doctor")).await.map_err(Error::from) {
            Ok(_) | Err(Error::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the content of a key.
    pub async fn open(&self, key: &str) -> Result<Content> {
        let found = self.store.get(&Path::from(key)).await?;
        Ok(Content { size: found.meta.size, bytes: found.into_stream().map_err(Error::from).boxed() })
    }

    /// Reads the whole content of a key.
    pub async fn read(&self, key: &str) -> Result<Bytes> {
        Ok(self.store.get(&Path::from(key)).await?.bytes().await?)
    }

    /// Deletes a content; a missing content is not an error.
    pub async fn drop(&self, key: &str) -> Result<()> {
        if let Some(folder) = &self.folder {
            // An upload that a crash interrupted is stored next to it under this name.
            let _ = std::fs::remove_file(folder.join(format!("{}#1", Path::from(key))));
        }
        match self.store.delete(&Path::from(key)).await.map_err(Error::from) {
            Err(Error::Missing) => Ok(()),
            done => done,
        }
    }

    /// Returns the size of the content of a key, if it exists.
    pub async fn size(&self, key: &str) -> Result<Option<u64>> {
        match self.store.head(&Path::from(key)).await.map_err(Error::from) {
            Err(Error::Missing) => Ok(None),
            found => Ok(Some(found?.size)),
        }
    }

    /// Streams all keys.
    pub fn list(&self) -> futures_util::stream::BoxStream<'static, Result<String>> {
        self.store.list(None).map_ok(|found| found.location.to_string()).map_err(Error::from).boxed()
    }

    /// Returns all keys.
    pub async fn keys(&self) -> Result<Vec<String>> {
        let found = self.store.list(None).map_ok(|found| found.location.to_string());
        Ok(found.try_collect().await?)
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Error {
        if let object_store::Error::NotFound { source, .. } = &error {
            return if source.to_string().contains("NoSuchBucket") { no_bucket() } else { Error::Missing };
        }
        // The cause is nested in several errors.
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(layer) = cause {
            if layer.downcast_ref::<std::io::Error>().is_some_and(is_full) {
                return Error::Full;
            }
            cause = layer.source();
        }
        let words = error.to_string();
        Error::Unavailable(if words.contains(ROLES) { no_role() } else { words })
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        if is_full(&error) {
            return Error::Full;
        }
        match error.downcast::<object_store::Error>() {
            Ok(error) => error.into(),
            Err(error) => Error::Unavailable(error.to_string()),
        }
    }
}

/// Converts the error of a write: a content that is being stored cannot be missing, but the place for it can.
fn stored_nowhere(error: Error) -> Error {
    if let Error::Missing = error { no_bucket() } else { error }
}

fn no_bucket() -> Error {
    Error::Unavailable("the bucket does not exist; create it, or correct its name in the settings".to_string())
}

fn no_role() -> String {
    "s3_access_key and s3_secret_key are not set, and this machine has no role at AWS; set both, and s3_endpoint if the store is elsewhere"
        .to_string()
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Missing => f.write_str("no content is stored under this key"),
            Error::Full => f.write_str("the disk is full"),
            Error::Broken(why) | Error::Unavailable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn pieces(count: usize, size: usize) -> impl Stream<Item = Result<Bytes>> {
        stream::iter((0..count).map(move |n| Ok(Bytes::from(vec![n as u8; size]))))
    }

    async fn round_trip(blobs: &Blobs) {
        for (count, size) in [(0, 0), (1, 10), (13, 1024 * 1024)] {
            blobs.keep("a/b", pieces(count, size)).await.unwrap();
            let content = blobs.open("a/b").await.unwrap();
            assert_eq!(content.size as usize, count * size);
            let read = blobs.read("a/b").await.unwrap();
            assert_eq!(read.len(), count * size);
            assert!(read.chunks(size.max(1)).enumerate().all(|(n, chunk)| chunk.iter().all(|byte| *byte == n as u8)));
        }
        let broken = pieces(9, 1024 * 1024).chain(stream::iter([Err(Error::Broken("gone".into()))]));
        assert!(matches!(blobs.keep("a/c", broken).await, Err(Error::Broken(_))));
        assert!(matches!(blobs.open("a/c").await, Err(Error::Missing)));
        assert_eq!(blobs.keys().await.unwrap(), ["a/b"]);
        blobs.drop("a/b").await.unwrap();
        blobs.drop("a/b").await.unwrap();
        assert!(matches!(blobs.read("a/b").await, Err(Error::Missing)));
    }

    #[tokio::test]
    async fn contents_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        round_trip(&Blobs::in_folder(&folder.path().join("new/folder")).unwrap()).await;
        round_trip(&Blobs::in_memory()).await;
        assert_eq!(std::fs::read_dir(folder.path().join("new/folder")).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_machine_without_a_role_needs_keys() {
        let source = "error sending request for url (http://169.254.169.254/latest/api/token)".into();
        let error = Error::from(object_store::Error::Generic { store: "S3", source });
        assert!(error.to_string().contains("s3_access_key and s3_secret_key are not set"), "{error}");
    }

    #[tokio::test]
    async fn keys_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(&folder.path().join("in")).unwrap();
        for key in ["../out", "/etc/out", "a/../../out", "..", "a\\..\\out"] {
            let _ = blobs.keep(key, pieces(1, 1)).await;
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
