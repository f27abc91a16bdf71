//! Projects: work for a client, with a budget and hours.

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use engine::record::{COMPUTED, Day, INPUT, Link, Model, REQUIRED};
use engine::resource::Resource;
use engine::{choice, counters, record};
use money::Amount;
use store::{Migration, Tx};

choice! {
    /// The status of a project.
    pub enum Status {
        /// Not started.
        #[default]
        Planned = "planned",
        /// In progress.
        Active = "active",
        /// On hold.
        OnHold = "on_hold",
        /// Completed.
        Completed = "completed",
        /// Cancelled.
        Cancelled = "cancelled",
    }
}

record! {
    /// Work for a client, with a budget and hours.
    pub struct Project = "project" in "projects";

    /// Name.
    name: String = REQUIRED.names().search().sort().example("\"New website\"");
    /// Number, assigned on creation.
    number: String = COMPUTED.search().filter().sort();
    /// Status.
    status: Status = INPUT.filter().example("\"active\"");
    /// The client.
    client_id: Link = INPUT.refers("clients").filter();
    /// Budget excluding VAT.
    budget: Amount = INPUT.between(0, 999_999_999_999).resets_to("0").example("5000");
    /// Start date.
    start_date: Day = INPUT.sort().example("\"2026-05-01\"");
    /// End date.
    end_date: Day = INPUT.sort().example("\"2026-07-31\"");
}

impl Model for Project {
    fn check(&self, faults: &mut FieldErrors) {
        if let (Some(start), Some(end)) = (self.start_date.0, self.end_date.0)
            && end < start
        {
            faults.add("end_date", violation(FieldCode::OutOfRange, "must not be before start_date"));
        }
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_none() {
            self.number = format!("P{:04}", counters::next(tx, ctx, "project")?);
        }
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        let completed = self.status == Status::Completed;
        match before {
            Some(before) if before.status == self.status => Vec::new(),
            Some(_) if completed => vec!["status_changed", "completed"],
            Some(_) => vec!["status_changed"],
            None if completed => vec!["completed"],
            None => Vec::new(),
        }
    }
}

/// The resource of projects.
pub fn resource() -> Resource {
    Resource::of::<Project>("Projects", "projects", MIGRATIONS)
        .list::<Project>()
        .create::<Project>()
        .get::<Project>()
        .patch::<Project>()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 31,
    name: "projects",
    sql: "
CREATE TABLE projects (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    number TEXT NOT NULL,
    status TEXT NOT NULL,
    client_id TEXT NOT NULL,
    budget BIGINT NOT NULL,
    start_date TEXT NOT NULL,
    end_date TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX projects_created ON projects (account_id, created_at, id);
CREATE INDEX projects_name ON projects (account_id, name, id);
CREATE UNIQUE INDEX projects_number_once ON projects (account_id, number);
CREATE INDEX projects_number ON projects (account_id, number, created_at, id);
CREATE INDEX projects_number_sort ON projects (account_id, number, id);
CREATE INDEX projects_status ON projects (account_id, status, created_at, id);
CREATE INDEX projects_client ON projects (account_id, client_id, created_at, id);
CREATE INDEX projects_start ON projects (account_id, start_date, id);
CREATE INDEX projects_end ON projects (account_id, end_date, id);
",
}];
