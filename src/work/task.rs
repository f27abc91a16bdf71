//! Tasks.

use engine::call::Call;
use engine::error::Result;
use engine::record::{ACTED, COMPUTED, CREATED, DETAIL, Day, INPUT, LIST, Link, Model, REQUIRED, UPDATED};
use engine::records::{self, Work};
use engine::resource::{Method, Resource, Returns};
use engine::{choice, record};
use store::Migration;

choice! {
    /// The category of a task.
    pub enum Category {
        /// A general task.
        #[default]
        Task = "task",
        /// A phone call.
        Call = "call",
        /// A meeting.
        Meeting = "meeting",
    }
}

choice! {
    /// The status of a task.
    pub enum Status {
        /// To do.
        #[default]
        Open = "open",
        /// Done.
        Completed = "completed",
    }
}

record! {
    /// A task, optionally with a deadline.
    pub struct Task = "task" in "tasks", created_at: LIST.and(DETAIL), meta: LIST.and(DETAIL).and(CREATED).and(UPDATED);

    /// Title.
    title: String = REQUIRED.names().sort().example("\"Call about the renewal\"");
    /// Category.
    category: Category = INPUT.filter().shown(LIST.and(DETAIL).and(CREATED).and(UPDATED)).example("\"call\"");
    /// `open` or `completed`; change it with the actions.
    status: Status = COMPUTED.filter();
    /// Description.
    notes: String = INPUT.long().shown(DETAIL.and(UPDATED)).example("\"She prefers mornings.\"");
    /// Deadline.
    deadline: Day = INPUT.sort().range("deadline_from", "deadline_to").shown(LIST.and(DETAIL).and(UPDATED)).example("\"2026-05-04\"");
    /// Estimated duration, in minutes.
    duration_minutes: i64 = INPUT.between(0, 525_600).resets_to("0").shown(DETAIL).example("30");
    /// The client.
    client_id: Link = INPUT.create_only().refers("clients").filter().shown(LIST.and(DETAIL));
    /// The project it belongs to.
    project_id: Link = INPUT.create_only().refers("projects").filter().shown(LIST.and(DETAIL));
    /// The deal that the task belongs to.
    deal_id: Link = INPUT.create_only().refers("deals").filter().in_meta();
    /// The user who is responsible; cleared if the user is deleted. A suspended user cannot be chosen.
    assignee_id: Link = INPUT.refers("users").filter().in_meta();
}

impl Model for Task {}

/// The resource of tasks.
pub fn resource() -> Resource {
    Resource::of::<Task>("Tasks", "tasks", MIGRATIONS)
        .list::<Task>()
        .create::<Task>()
        .get::<Task>()
        .patch::<Task>()
        .delete::<Task>()
        .route(Method::Post, "/{id}/complete", "Mark a task as done", |call| {
            set_status(call, Status::Completed, "completed")
        })
        .returns(Returns::Item(ACTED))
        .route(Method::Post, "/{id}/reopen", "Mark a task as not done", |call| {
            set_status(call, Status::Open, "reopened")
        })
        .returns(Returns::Item(ACTED))
}

fn set_status(call: Call, status: Status, event: &'static str) -> Result<Work> {
    records::act(call, ACTED, move |task: &mut Task, _| {
        task.status = status;
        Ok(event)
    })
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 33,
    name: "tasks",
    sql: "
CREATE TABLE tasks (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    title TEXT NOT NULL,
    category TEXT NOT NULL,
    status TEXT NOT NULL,
    notes TEXT NOT NULL,
    deadline TEXT NOT NULL,
    duration_minutes BIGINT NOT NULL,
    client_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    deal_id TEXT NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX tasks_created ON tasks (account_id, created_at, id);
CREATE INDEX tasks_title ON tasks (account_id, title, id);
CREATE INDEX tasks_deadline ON tasks (account_id, deadline, id);
CREATE INDEX tasks_category ON tasks (account_id, category, created_at, id);
CREATE INDEX tasks_status ON tasks (account_id, status, created_at, id);
CREATE INDEX tasks_client ON tasks (account_id, client_id, created_at, id);
CREATE INDEX tasks_project ON tasks (account_id, project_id, created_at, id);
CREATE INDEX tasks_deal ON tasks (account_id, deal_id, created_at, id);
CREATE INDEX tasks_assignee ON tasks (account_id, assignee_id, created_at, id);
CREATE INDEX tasks_due ON tasks (account_id, deadline, assignee_id) WHERE status = 'open' AND deadline <> '';
CREATE INDEX tasks_of_deal ON tasks (account_id, deal_id) WHERE status = 'open' AND deal_id <> '';
",
}];
