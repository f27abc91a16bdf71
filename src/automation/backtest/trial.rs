//! A run that is only tried: what each step would have done, at the time at which the run would have reached it.

use engine::accounts::Account;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::log;
use engine::shown::{self, Viewer};
use serde_json::{Value, json};
use store::Tx;

use crate::automation::definition::{Action, Definition, Step};
use crate::automation::events::TRIGGERED;
use crate::automation::template::{self, Names, Unknown};
use crate::automation::{about, matching, steps};

/// An event of the past.
pub struct Past {
    /// When it happened.
    pub at: Moment,
    /// Its name.
    pub name: String,
    /// The type of the record that it is about, or empty.
    pub entity_type: String,
    /// The record that it is about, or empty.
    pub entity_id: String,
    /// Its data, as JSON.
    pub data: String,
}

/// A run that the event would have started.
pub struct Trial<'t> {
    ctx: &'t Ctx,
    account: &'t Account,
    definition: &'t Definition,
    past: &'t Past,
    data: Value,
    /// The time that the run has reached: waits move it forward.
    clock: Moment,
    names: Names,
}

impl<'t> Trial<'t> {
    /// At the moment of the event.
    pub fn of(
        tx: &mut Tx,
        ctx: &'t Ctx,
        account: &'t Account,
        definition: &'t Definition,
        past: &'t Past,
    ) -> Result<Trial<'t>> {
        let data = matching::flatten_meta(serde_json::from_str(&past.data).unwrap_or_default());
        let mut trial = Trial { ctx, account, definition, past, data, clock: past.at, names: Names::new(Vec::new()) };
        trial.names = trial.names_now(tx)?;
        Ok(trial)
    }

    /// Returns what a step would do, and whether the run would continue after it.
    pub fn take(&mut self, tx: &mut Tx, step: &Step, place: usize) -> Result<(Value, bool)> {
        let (then, at) = (self.ctx.at(self.clock), self.clock.to_string());
        let would = steps::preview(&then, step, &self.names).and_then(|would| match step.action {
            Action::Wait => {
                let until = steps::end_of_wait(&then, step, &self.names).map_err(|error| error.words)?;
                Ok((would, Some(until)))
            }
            _ => Ok((would, None)),
        });
        Ok(match would {
            Ok((mut would, until)) => {
                if let Some(until) = until {
                    would["until"] = until.to_string().into();
                    self.pass(tx, until)?;
                }
                let goes_on = step.action != Action::Condition || would["holds"] == true;
                (json!({"place": place, "type": step.kind, "at": at, "would": would}), goes_on)
            }
            Err(why) => (json!({"place": place, "type": step.kind, "at": at, "error": why}), step.continue_on_error),
        })
    }

    /// Moves the time forward to the end of a wait.
    fn pass(&mut self, tx: &mut Tx, until: Moment) -> Result<()> {
        if until > self.clock {
            self.clock = until;
            self.names = self.names_now(tx)?;
        }
        Ok(())
    }

    /// The names that the run would have now; the results of its steps are unknown.
    fn names_now(&self, tx: &mut Tx) -> Result<Names> {
        let about = about::account(tx, self.ctx, self.account, self.definition, self.clock)?;
        Ok(Names::new(vec![
            ("event", self.past.name.as_str().into()),
            ("entity_type", self.past.entity_type.as_str().into()),
            ("data", template::of(&self.data)),
            ("record", self.record_now(tx)?),
            ("account", template::of(&about)),
            ("now", self.clock.to_string().into()),
            ("steps", minijinja::Value::from_object(Unknown("steps".to_string()))),
        ]))
    }

    /// The record as it was at this time, according to the log.
    fn record_now(&self, tx: &mut Tx) -> Result<minijinja::Value> {
        if self.past.entity_id.is_empty() {
            return Ok(().into());
        }
        if self.clock == self.past.at || !self.definition.uses_record {
            return Ok(template::of(&self.data));
        }
        let sql = format!(
            "SELECT type, {} FROM log{} WHERE account_id = $1 AND entity_id = $2 AND entity_type = $3 AND at <= $4
             AND type <> '{TRIGGERED}' ORDER BY seq DESC LIMIT 1",
            log::DATA,
            tx.dialect().indexed_by("log_records")
        );
        let past = self.past;
        let values =
            [self.ctx.account.into(), (&past.entity_id).into(), (&past.entity_type).into(), self.clock.0.into()];
        let viewer = Viewer::of(self.ctx);
        let found = tx.first(&sql, &values, |row| {
            let (is_deleted, logged) = (row.text(0)?.ends_with(".deleted"), row.text(1)?);
            Ok::<_, Error>((!is_deleted).then(|| shown::data(&viewer, &past.entity_type, logged).into_owned()))
        })?;
        Ok(match found.flatten() {
            Some(record) => {
                let record = serde_json::from_str(&record).unwrap_or_default();
                template::of(&matching::flatten_meta(record))
            }
            None => ().into(),
        })
    }
}
