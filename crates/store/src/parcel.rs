//! What comes back from another thread. Its type is left out, so that channels and tasks are compiled once, and not for each of
//! the closures that transactions consist of.

use std::any::Any;

use crate::{Error, Result};

pub(crate) type Parcel = Box<dyn Any + Send>;

/// A read that is done on another thread.
pub(crate) type Work = Box<dyn FnOnce() -> Parcel + Send>;

/// Opens what came back from a read.
pub(crate) fn opened<T: 'static, E: From<Error> + 'static>(parcel: Result<Parcel>) -> Result<T, E> {
    match parcel?.downcast::<Result<T, E>>() {
        Ok(done) => *done,
        Err(_) => Err(Error::Unavailable("nothing was read".into()).into()),
    }
}
