use std::{fmt, io};

/// Why an archive cannot be read.
#[derive(Debug)]
pub enum Error {
    /// It is not an archive of this kind.
    Foreign,
    /// It is encrypted, and there is no identity.
    Encrypted,
    /// None of the identities can decrypt it.
    WrongIdentity,
    /// It is incomplete or was altered.
    Damaged(String),
    /// It cannot be read.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Foreign => f.write_str("this is not a backup of Kantoor; name what `kantoor backup` made"),
            Error::Encrypted => {
                f.write_str("the backup is encrypted; name the file with your age identity (--identity)")
            }
            Error::WrongIdentity => f.write_str(
                "the backup is encrypted to another age recipient than this identity; name the file with the right one (--identity)",
            ),
            Error::Damaged(why) => write!(f, "the backup is damaged or incomplete: {why}; use another one"),
            Error::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Errors of reading are those of the medium, unless the bytes themselves are wrong.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Damaged("it ends too early".to_string()),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Error::Damaged(error.to_string()),
            // Zstandard and tar report altered bytes without a kind of their own.
            io::ErrorKind::Other if error.raw_os_error().is_none() => Error::Damaged(error.to_string()),
            _ => Error::Io(error),
        }
    }
}

impl From<age::DecryptError> for Error {
    fn from(error: age::DecryptError) -> Error {
        match error {
            age::DecryptError::NoMatchingKeys => Error::WrongIdentity,
            age::DecryptError::Io(error) => error.into(),
            // The texts of age are stubs.
            age::DecryptError::InvalidHeader => Error::Damaged("its age header is invalid".to_string()),
            age::DecryptError::InvalidMac => Error::Damaged("its age header was altered".to_string()),
            age::DecryptError::UnknownFormat => Error::Damaged("its version of age is unknown".to_string()),
            age::DecryptError::DecryptionFailed
            | age::DecryptError::KeyDecryptionFailed
            | age::DecryptError::ExcessiveWork { .. } => Error::Damaged("it cannot be decrypted".to_string()),
        }
    }
}
