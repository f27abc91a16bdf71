use clap::{Subcommand, ValueEnum};
use engine::app::App;
use engine::jobs::{self, SHARED};
use serde_json::json;

use super::{error_line, say};

#[derive(Subcommand)]
pub enum Jobs {
    /// List jobs, newest first; by default those that are parked or failed
    List {
        /// List only jobs in this state
        #[arg(long)]
        state: Option<State>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put parked or failed jobs back in the queue
    Retry {
        /// Ids of the jobs
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum State {
    /// Started several times, but the process died each time; or added or changed outside the program
    Parked,
    /// Used up all attempts
    Failed,
    /// Waiting in the queue
    Ready,
    /// In progress
    Running,
    /// Completed
    Done,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Parked => "parked",
            State::Failed => "failed",
            State::Ready => "ready",
            State::Running => "running",
            State::Done => "done",
        }
    }
}

impl Jobs {
    pub fn run(&self, app: &App) -> Result<(), String> {
        match self {
            Jobs::List { state, json } => list(app, *state, *json),
            Jobs::Retry { ids } => retry(app, ids),
        }
    }
}

fn list(app: &App, state: Option<State>, json: bool) -> Result<(), String> {
    let states = state.map_or(vec!["parked", "failed"], |state| vec![state.name()]);
    let found = app.store.read_now(move |tx| jobs::list(tx, &states)).map_err(error_line)?;
    if json {
        let rows = found.iter().map(|job| {
            json!({
                "id": job.id, "account_id": job.account, "kind": job.kind, "state": job.state,
                "run_at": job.run_at.to_string(), "attempts": job.attempts, "lost": job.lost,
                "last_error": job.last_error,
            })
        });
        return say(&json!(rows.collect::<Vec<_>>()).to_string());
    }
    if found.is_empty() {
        return say("No jobs found.");
    }
    for job in found {
        let account = if job.account.is_empty() { "(server)" } else { &job.account };
        let (id, state, kind) = (&job.id, &job.state, &job.kind);
        say(&format!(
            "{id}  {state}  {kind}  {account}  {}  attempts {}  {}",
            job.run_at, job.attempts, job.last_error
        ))?;
    }
    Ok(())
}

fn retry(app: &App, ids: &[String]) -> Result<(), String> {
    let mut unknown = Vec::new();
    for id in ids {
        let (own, now) = (id.clone(), app.clock.now());
        let done = app.store.write_now(SHARED, move |tx| jobs::retry(tx, &own, now));
        match done.map_err(error_line)? {
            true => say(&format!("{id} is back in the queue."))?,
            false => unknown.push(id.as_str()),
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(format!("not a parked or failed job: {}", unknown.join(", "))) }
}
