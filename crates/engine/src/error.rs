//! The error type: a code for programs, a message for people, the invalid fields, and a cause for the log that is never
//! sent to clients.

use std::collections::BTreeSet;
use std::fmt;

/// The class of an error code. `http` maps each class to a status; nothing below it knows statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request cannot be parsed.
    BadRequest,
    /// The caller is not authenticated.
    Unauthorized,
    /// The caller lacks a permission.
    Forbidden,
    /// The path or record does not exist.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The request did not arrive in time.
    Timeout,
    /// The request conflicts with the stored state.
    Conflict,
    /// The record has another version than the caller expects.
    PreconditionFailed,
    /// The body is too large.
    TooLarge,
    /// The type of the body is not supported.
    UnsupportedMedia,
    /// The request can be parsed, but not carried out.
    Invalid,
    /// There were too many requests.
    TooMany,
    /// The server cannot handle the request now.
    Unavailable,
    /// The server failed.
    Internal,
}

/// The declaration of an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name in the API.
    pub name: &'static str,
    /// Its class.
    pub class: Class,
    /// Its meaning, for the documentation.
    pub meaning: &'static str,
    /// Whether the same request may succeed later: after someone else acts or finishes, or after a failure of the
    /// server.
    pub retry: bool,
}

/// Declares the codes that all areas share, one per line.
macro_rules! shared_codes {
    ($( $(#[doc = $doc:literal])+ $code:ident = $wire:literal, $class:ident, retry: $retry:literal; )+) => {
        /// The code of an error. An area declares its own codes with [`crate::error_codes!`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $( $(#[doc = $doc])+ $code, )+
            /// A code that one area declares.
            Area(&'static Declared),
        }

        impl Code {
            /// The codes that all areas share.
            pub const SHARED: &[Code] = &[$( Code::$code, )+];

            /// Returns its declaration.
            pub const fn declared(self) -> &'static Declared {
                match self {
                    $( Code::$code => const {
                        &Declared {
                            name: $wire,
                            class: Class::$class,
                            meaning: concat!($($doc),+).trim_ascii_start(),
                            retry: $retry,
                        }
                    }, )+
                    Code::Area(declared) => declared,
                }
            }
        }
    };
}

shared_codes! {
    /// The body is not valid JSON or UTF-8, or is nested too deeply.
    MalformedJson = "malformed_json", BadRequest, retry: false;
    /// An object contains the same key twice.
    DuplicateKey = "duplicate_key", BadRequest, retry: false;
    /// A header has an invalid value.
    InvalidHeader = "invalid_header", BadRequest, retry: false;
    /// The `Idempotency-Key` is not 1 to 255 visible ASCII characters.
    InvalidIdempotencyKey = "invalid_idempotency_key", BadRequest, retry: false;
    /// The key or the session is missing, unknown, revoked or expired, or the password at sign-in is wrong.
    Unauthorized = "unauthorized", Unauthorized, retry: false;
    /// The caller lacks the scope named in the message, a session is used from another site, or the password that confirms an
    /// action or is being replaced is wrong.
    Forbidden = "forbidden", Forbidden, retry: false;
    /// The account is closed: nothing was deleted, and the operator of the server can reopen it.
    AccountClosed = "account_closed", Forbidden, retry: true;
    /// The account has used up a quota: files, bytes of files, mail per day (`Retry-After` says when the next day begins) or endpoints per host. The message names the quota, its limit and what to do.
    QuotaExceeded = "quota_exceeded", Forbidden, retry: true;
    /// The path does not exist, or your account has no such record.
    NotFound = "not_found", NotFound, retry: false;
    /// The record was merged into another one; the message names it, and `Location` has its path.
    Merged = "merged", NotFound, retry: false;
    /// The path does not support this method; `Allow` lists the supported ones.
    MethodNotAllowed = "method_not_allowed", MethodNotAllowed, retry: false;
    /// The body did not arrive in time.
    RequestTimeout = "request_timeout", Timeout, retry: true;
    /// A request with this `Idempotency-Key` is still being processed.
    IdempotencyInFlight = "idempotency_in_flight", Conflict, retry: true;
    /// Another record of the same type has this `external_id`.
    DuplicateExternalId = "duplicate_external_id", Conflict, retry: false;
    /// Another record of the same type has this value in a field that must be unique.
    Duplicate = "duplicate", Conflict, retry: false;
    /// The record cannot move from its current state to the requested one.
    InvalidTransition = "invalid_transition", Conflict, retry: true;
    /// The record is final and cannot be changed.
    Locked = "locked", Conflict, retry: false;
    /// Other records refer to this one, so it cannot be deleted.
    InUse = "in_use", Conflict, retry: true;
    /// The page that sends the request was made for another user than the one who is signed in now. Nothing was done.
    UserChanged = "user_changed", Conflict, retry: false;
    /// The account has the maximum number of these records.
    LimitReached = "limit_reached", Conflict, retry: true;
    /// A stored value cannot be read: somebody changed or damaged it outside the program. The message names the record and its column; the operator finds it with `kantoor verify`.
    Unreadable = "unreadable", Conflict, retry: true;
    /// The version of the record differs from the one in `If-Match`.
    PreconditionFailed = "precondition_failed", PreconditionFailed, retry: true;
    /// The body exceeds 2 MiB, or a file 25 MiB.
    BodyTooLarge = "body_too_large", TooLarge, retry: false;
    /// The response exceeds `responses_mib`; request fewer records.
    ResponseTooLarge = "response_too_large", Invalid, retry: false;
    /// The `Content-Type` is not JSON.
    UnsupportedMediaType = "unsupported_media_type", UnsupportedMedia, retry: false;
    /// Fields or parameters are invalid; see `details`.
    ValidationFailed = "validation_failed", Invalid, retry: false;
    /// The key was used before for a different request.
    IdempotencyKeyReused = "idempotency_key_reused", Invalid, retry: false;
    /// The rate limit is exceeded; `Retry-After` says when to continue.
    TooManyRequests = "too_many_requests", TooMany, retry: true;
    /// The server has too much work waiting; `Retry-After` says when to retry.
    Overloaded = "overloaded", Unavailable, retry: true;
    /// The server's disk is full; nothing was changed.
    DiskFull = "disk_full", Unavailable, retry: true;
    /// The database cannot be reached.
    Unavailable = "unavailable", Unavailable, retry: true;
    /// Internal error. The server log has the cause under the request id.
    Internal = "internal_error", Internal, retry: true;
}

impl Code {
    /// Returns its name in the API.
    pub const fn wire(self) -> &'static str {
        self.declared().name
    }

    /// Returns its meaning.
    pub const fn meaning(self) -> &'static str {
        self.declared().meaning
    }

    /// Returns its class.
    pub const fn class(self) -> Class {
        self.declared().class
    }

    /// Whether the same request may succeed later.
    pub const fn may_pass(self) -> bool {
        self.declared().retry
    }
}

/// Declares the error codes of an area as constants, and `CODES` with all of them for the registry.
#[macro_export]
macro_rules! error_codes {
    ($( $(#[doc = $doc:literal])+ $code:ident = $wire:literal, $class:ident, retry: $retry:literal; )+) => {
        $( $(#[doc = $doc])+
        pub const $code: $crate::error::Code = $crate::error::Code::Area(&$crate::error::Declared {
            name: $wire,
            class: $crate::error::Class::$class,
            meaning: concat!($($doc),+).trim_ascii_start(),
            retry: $retry,
        }); )+

        /// The error codes of this area.
        pub const CODES: &[$crate::error::Code] = &[$( $code, )+];
    };
}

/// Declares a closed set of codes, each with its API name and a sentence for the documentation.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $( $(#[doc = $doc:literal])+ $code:ident = $wire:literal, )+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $code, )+ }

        impl $name {
            /// All codes, for the documentation.
            pub const ALL: &[$name] = &[$( $name::$code, )+];

            /// Returns its name in the API.
            pub const fn wire(self) -> &'static str {
                match self { $( $name::$code => $wire, )+ }
            }

            /// Returns its meaning.
            pub fn meaning(self) -> &'static str {
                match self { $( $name::$code => concat!($($doc),+).trim_start(), )+ }
            }
        }
    };
}

codes! {
    /// The code of an invalid field.
    FieldCode {
        /// The field must have a value.
        Required = "required",
        /// The field does not exist.
        UnknownField = "unknown_field",
        /// The field cannot be set here.
        ReadOnly = "read_only",
        /// The value has the wrong JSON type.
        WrongType = "wrong_type",
        /// The text is too long.
        TooLong = "too_long",
        /// The value is not one of the allowed ones.
        InvalidChoice = "invalid_choice",
        /// The value has an invalid format.
        InvalidFormat = "invalid_format",
        /// The text contains characters that are not allowed.
        InvalidCharacters = "invalid_characters",
        /// The number is too small or too large.
        OutOfRange = "out_of_range",
        /// The number has too many decimals.
        TooPrecise = "too_precise",
        /// No record with this id exists in the account.
        ReferenceNotFound = "reference_not_found",
        /// The same parameter is given more than once.
        GivenTwice = "given_twice",
        /// A total does not match the rows.
        TotalsMismatch = "totals_mismatch",
        /// The body contains no field to change.
        NoFields = "no_fields",
        /// The parameter does not exist. Only with `Prefer: handling=strict`.
        UnknownParameter = "unknown_parameter",
        /// Records of this type need the record; `count` says how many.
        InUse = "in_use",
    }
}

/// Why a value is invalid, before its field is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The code, for programs.
    pub code: FieldCode,
    /// The message, for people.
    pub message: String,
    /// Errors inside the value, by their path in it (`[2].quantity`); then the other members are unused.
    pub inside: Vec<FieldError>,
    /// How many records it is about.
    pub count: Option<i64>,
}

impl Violation {
    /// Sets how many records it is about.
    pub fn counted(self, count: i64) -> Violation {
        Violation { count: Some(count), ..self }
    }
}

/// Creates a violation.
pub fn violation(code: FieldCode, message: impl Into<String>) -> Violation {
    Violation { code, message: message.into(), inside: Vec::new(), count: None }
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Its path: `name`, `rows[2].quantity`.
    pub field: String,
    /// Why it is invalid.
    pub wrong: Violation,
}

impl FieldError {
    /// Whether the error is on this field or inside it.
    pub fn is_in(&self, field: &str) -> bool {
        self.field.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

/// The field errors found so far.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    /// Adds an error; those beyond a hundred are dropped.
    pub fn add(&mut self, field: impl Into<String>, wrong: Violation) {
        if self.is_full() {
            return;
        }
        let field = field.into();
        if wrong.inside.is_empty() {
            self.0.push(FieldError { field, wrong });
        } else {
            for inner in wrong.inside {
                self.add(format!("{field}{}", inner.field), inner.wrong);
            }
        }
    }

    /// Whether further errors are dropped.
    pub fn is_full(&self) -> bool {
        self.0.len() >= 100
    }

    /// Whether a field already has an error, so that rules that depend on its value are skipped.
    pub fn has(&self, field: &str) -> bool {
        self.0.iter().any(|fault| fault.is_in(field))
    }

    /// Returns the value, or adds its error.
    pub fn take<T>(&mut self, field: &str, value: Result<T, Violation>) -> Option<T> {
        value.map_err(|wrong| self.add(field, wrong)).ok()
    }

    /// Converts the errors into a violation of the value that contains the fields.
    pub fn inside(self) -> Result<(), Violation> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Violation { inside: self.0, ..violation(FieldCode::InvalidFormat, "is invalid") })
    }

    /// Returns the value, or adds the errors of fields that have none yet; any other error is returned.
    pub fn join<T>(&mut self, done: Result<T, Error>) -> Result<Option<T>, Error> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.code == Code::ValidationFailed => {
                let new = |fault: &FieldError| !self.has(&fault.field);
                let faults: Vec<FieldError> = error.faults.into_iter().filter(new).collect();
                faults.into_iter().for_each(|fault| self.add(fault.field, fault.wrong));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns an error if there are any field errors.
    pub fn into_result(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::invalid(self)) }
    }
}

/// An error for the caller.
#[derive(Clone, Debug)]
pub struct Error {
    /// The code, for programs.
    pub code: Code,
    /// The message, for people.
    pub message: String,
    /// The invalid fields.
    pub faults: Vec<FieldError>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<u32>,
    /// The path of the record to use instead.
    pub location: Option<Box<str>>,
    /// The cause, for the log only.
    pub internal: Option<String>,
}

/// A result with this error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), faults: Vec::new(), retry_after: None, location: None, internal: None }
    }

    /// Creates an error for invalid fields.
    pub fn invalid(faults: FieldErrors) -> Error {
        let fields: BTreeSet<&str> = faults.0.iter().map(|fault| fault.field.as_str()).collect();
        let message = match faults.0.as_slice() {
            [one] => format!("'{}' {}", one.field, one.wrong.message),
            [one, ..] if fields.len() == 1 => format!("'{}' has {} errors; see details", one.field, faults.0.len()),
            _ => format!("{} fields are invalid; see details", fields.len()),
        };
        Error { faults: faults.0, ..Error::new(Code::ValidationFailed, message) }
    }

    /// Creates an error for one invalid field.
    pub fn field(field: &str, wrong: Violation) -> Error {
        let mut faults = FieldErrors::default();
        faults.add(field, wrong);
        Error::invalid(faults)
    }

    /// Creates an error for a record that does not exist in this account.
    pub fn not_found(what: &str) -> Error {
        Error::new(Code::NotFound, format!("Your account has no {} with this id.", what.replace('_', " ")))
    }

    /// Creates an internal error; `why` goes to the log.
    pub fn internal(why: impl Into<String>) -> Error {
        Error {
            internal: Some(why.into()),
            ..Error::new(Code::Internal, "Internal error. The server log has the cause under the request id.")
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.internal {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        use store::Error as Cause;
        let why = error.to_string();
        let later = |code, message: &str| Error {
            retry_after: Some(1),
            internal: Some(why.clone()),
            ..Error::new(code, message)
        };
        match error {
            Cause::DiskFull => later(Code::DiskFull, "The server's disk is full; nothing was changed."),
            Cause::Overloaded => later(Code::Overloaded, "Too many writes are waiting; retry shortly."),
            Cause::Unavailable(_) | Cause::Disconnected(_) | Cause::Conflict(_) => {
                later(Code::Unavailable, "The database is unavailable; nothing was changed.")
            }
            Cause::Unknown(_) => later(
                Code::Unavailable,
                "The connection to the database was lost during the commit. Send the request again with the same Idempotency-Key.",
            ),
            Cause::Unique(_)
            | Cause::Undo
            | Cause::Io(_)
            | Cause::NewerSchema { .. }
            | Cause::Panic(_)
            | Cause::Copy(_)
            | Cause::Database(_) => Error::internal(why),
            Cause::Unreadable { table, id, column, .. } if !table.is_empty() => Error {
                internal: Some(why),
                ..Error::new(
                    Code::Unreadable,
                    format!(
                        "The column '{column}' of {table} {id} cannot be read: it was changed outside the program. Nothing was changed. The operator of the server finds it with `kantoor verify`, and can restore it from a backup."
                    ),
                )
            },
            Cause::Unreadable { .. } => Error::internal(why),
        }
    }
}
