//! The last verification of an account: how far it has come, or what it found. Each row has a mark, so that nobody without the
//! key can move its place past a line, or say that a log is intact.

use engine::accounts::Account;
use engine::clock::Moment;
use engine::contents::hex;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::heads::{self, Marks};
use engine::log::{self, Place, Verdict};
use engine::secrets::vault::Vault;
use serde_json::{Value as Json, json};
use store::{Migration, Row, Tx, Value};

/// The table.
pub(crate) const MIGRATION: Migration = Migration {
    number: 61,
    name: "verifications of the log",
    sql: "
CREATE TABLE log_verifications (
    account_id BIGINT NOT NULL PRIMARY KEY REFERENCES accounts (id),
    id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done')),
    ended_at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash BLOB NOT NULL,
    emptied_seq BIGINT NOT NULL,
    signed_seq BIGINT NOT NULL,
    foreign_seq BIGINT NOT NULL,
    total BIGINT NOT NULL,
    problem TEXT NOT NULL,
    mark BLOB NOT NULL
) STRICT, WITHOUT ROWID;
",
};

/// A verification.
#[derive(Clone, Debug)]
pub(super) struct Verification {
    account: i64,
    id: String,
    /// When it ended, if it has.
    ended_at: Option<Moment>,
    place: Place,
    /// The number of lines, as far as it has seen.
    total: i64,
    /// What is wrong with the log; empty if nothing is.
    problem: String,
}

impl Verification {
    /// Starts a verification, which replaces the last one.
    pub(super) fn begin(tx: &mut Tx, ctx: &Ctx) -> Result<Verification> {
        let signed = heads::saved_of(tx, ctx.account)?.map_or(0, |head| head.seq);
        let own = Verification {
            account: ctx.account,
            id: ctx.new_id(),
            ended_at: None,
            place: Place { signed, ..Place::default() },
            total: log::last(tx, ctx.account)?,
            problem: String::new(),
        };
        tx.execute("DELETE FROM log_verifications WHERE account_id = $1", &[ctx.account.into()])?;
        own.write(
            tx,
            &ctx.site.vault,
            "INSERT INTO log_verifications (state, ended_at, seq, hash, emptied_seq, signed_seq, foreign_seq, total, problem, mark,
             account_id, id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        )?;
        Ok(own)
    }

    /// Returns the last verification; `None` if there is none that the program wrote.
    pub(super) fn find(tx: &mut Tx, vault: &Vault, account: i64) -> Result<Option<Verification>> {
        let sql = "SELECT id, ended_at, seq, hash, emptied_seq, signed_seq, foreign_seq, total, problem, state, mark
                   FROM log_verifications WHERE account_id = $1";
        let found = tx.first(sql, &[account.into()], |row| {
            Ok::<_, Error>((Verification::from_row(account, row)?, row.bytes(10)?.to_vec()))
        })?;
        let Some((own, mark)) = found else { return Ok(None) };
        Ok(vault.is_mark(own.text().as_bytes(), &mark)?.then_some(own))
    }

    fn from_row(account: i64, row: &Row) -> Result<Verification> {
        let is_done = row.text(9)? == "done";
        Ok(Verification {
            account,
            id: row.text(0)?.to_string(),
            ended_at: if is_done { Some(Moment::from_db(row, 1)?) } else { None },
            place: Place {
                seq: row.int(2)?,
                hash: row.bytes(3)?.to_vec(),
                emptied: row.int(4)?,
                signed: row.int(5)?,
                foreign: row.int(6)?,
            },
            total: row.int(7)?,
            problem: row.text(8)?.to_string(),
        })
    }

    /// Whether it has ended.
    pub(super) fn is_done(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Checks up to a thousand lines more.
    pub(super) fn advance(&self, tx: &mut Tx, vault: &Vault, now: Moment) -> Result<Verification> {
        // Read before the log, which continues it.
        let head = heads::saved_of(tx, self.account)?;
        let mut own = self.clone();
        let verdict = own.place.advance(tx, vault, self.account)?;
        own.total = own.place.seq.max(log::last(tx, self.account)?);
        if let Some(verdict) = verdict {
            let account = Account::numbered(tx, self.account)?;
            let marks = Marks { after: own.place.signed, foreign: own.place.foreign };
            let broken = own.conclude(&verdict, now);
            let found = heads::check_seen(tx, Some(vault), &account, head.as_ref(), broken.is_none(), Some(marks))?;
            let problems: Vec<String> = broken.into_iter().chain(found.into_iter().map(|(_, what)| what)).collect();
            own.problem = problems.join("; ");
        }
        Ok(own)
    }

    /// Ends it with what the chain shows; returns what is wrong with a line, if one is.
    fn conclude(&mut self, verdict: &Verdict, now: Moment) -> Option<String> {
        self.ended_at = Some(now);
        match verdict {
            Verdict::Whole { rows, .. } => {
                self.place.seq = *rows;
                None
            }
            Verdict::Broken { seq, at, why } => {
                self.place.seq = seq - 1;
                Some(format!("Line {seq} of {at}: {why}"))
            }
        }
    }

    /// Stores how far it has come; nothing if it has ended already, or another one was started.
    pub(super) fn keep(&self, tx: &mut Tx, vault: &Vault) -> Result<()> {
        self.write(
            tx,
            vault,
            "UPDATE log_verifications SET state = $1, ended_at = $2, seq = $3, hash = $4, emptied_seq = $5, signed_seq = $6,
             foreign_seq = $7, total = $8, problem = $9, mark = $10 WHERE account_id = $11 AND id = $12 AND ended_at = 0",
        )
    }

    fn write(&self, tx: &mut Tx, vault: &Vault, sql: &str) -> Result<()> {
        let place = &self.place;
        let mark = vault.mark(self.text().as_bytes())?;
        let values: [Value; 12] = [
            self.state().into(),
            self.ended_at.map_or(0, |at| at.0).into(),
            place.seq.into(),
            place.hash.as_slice().into(),
            place.emptied.into(),
            place.signed.into(),
            place.foreign.into(),
            self.total.into(),
            (&self.problem).into(),
            mark.as_slice().into(),
            self.account.into(),
            (&self.id).into(),
        ];
        tx.execute(sql, &values)?;
        Ok(())
    }

    fn state(&self) -> &'static str {
        if self.is_done() { "done" } else { "running" }
    }

    /// Returns what the mark covers.
    fn text(&self) -> String {
        let Verification { account, id, place, total, problem, .. } = self;
        let Place { seq, hash, emptied, signed, foreign } = place;
        let (state, ended, hash) = (self.state(), self.ended_at.map_or(0, |at| at.0), hex(hash));
        format!(
            "verification of a log of Kantoor\n{account} {id} {state} {ended} {seq} {hash} {emptied} {signed} {foreign} {total}\n{problem}"
        )
    }

    /// Returns it as callers see it.
    pub(super) fn shown(&self) -> Json {
        let is_intact = self.problem.is_empty();
        let head = if self.is_done() && is_intact { hex(&self.place.hash) } else { String::new() };
        json!({
            "state": self.state(),
            "lines": self.place.seq,
            "total": self.total,
            "intact": self.is_done().then_some(is_intact),
            "head": head,
            "problem": self.problem,
            "verified_at": self.ended_at.map(|at| at.to_string()),
        })
    }

    /// Returns what callers see before the first one.
    pub(super) fn none() -> Json {
        json!({"state": "none", "lines": 0, "total": 0, "intact": null, "head": "", "problem": "", "verified_at": null})
    }
}
