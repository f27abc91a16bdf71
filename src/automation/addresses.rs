//! The URLs in a body. Whether they may be called is known outside the transaction only; their errors are reported with those
//! of the other fields.

use std::sync::Arc;

use engine::app::App;
use engine::call::Answer;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::records::Work;
use store::Tx;

/// URLs with the paths of their fields.
#[derive(Clone, Debug, Default)]
pub struct Addresses(pub Vec<(String, String)>);

impl Addresses {
    fn check(&self, app: &App) -> FieldErrors {
        let mut faults = FieldErrors::default();
        for (path, url) in &self.0 {
            if let Err(refused) = app.web.check_url(url) {
                let why = refused.to_string();
                let message = format!("cannot be called: {}", why.trim_end_matches('.'));
                faults.add(path.as_str(), violation(FieldCode::InvalidFormat, message));
            }
        }
        faults
    }

    /// Rejects a body that is invalid, with the errors of its URLs.
    pub fn reject(self, error: Error) -> Result<Work> {
        if error.code != Code::ValidationFailed || self.0.is_empty() {
            return Err(error);
        }
        Ok(self.checked(move |_, _, faults| {
            let mut all = FieldErrors(error.faults.clone());
            all.join(faults.into_result())?;
            Err(Error::invalid(all))
        }))
    }

    /// Runs `work` with the errors of the URLs, to which it adds what else is wrong.
    pub fn checked(self, work: impl Fn(&mut Tx, &Ctx, FieldErrors) -> Result<Answer> + Send + Sync + 'static) -> Work {
        let work = Arc::new(work);
        Box::new(move |tx, ctx| {
            if self.0.is_empty() {
                return work(tx, ctx, FieldErrors::default());
            }
            let (addresses, work) = (self.clone(), work.clone());
            Ok(Answer::after(move |app, _| {
                let (faults, work) = (addresses.check(app), work.clone());
                Ok(Box::new(move |tx, ctx| work(tx, ctx, faults.clone())))
            }))
        })
    }
}
