//! Restores a backup: beside the place where it belongs, verified there, and then moved. `check` throws it away instead.

mod authenticity;
mod placing;
mod scratch;
mod source;
mod unpacking;

use std::path::Path;

use archive::Identities;
use blobs::Blobs;
use engine::clock::Clock;
use engine::config::Config;
use engine::error::Error;
use engine::secrets;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;
use store::{Database, Options, Store, TemporaryDatabase};
use tokio::runtime::Handle;

use crate::people::ENTRANCES;
use crate::upkeep::backup::manifest::{FILES, Manifest, newest_schema};
use crate::upkeep::backup::place::Place;
use crate::upkeep::integrity::schema;
use crate::upkeep::integrity::{Checked, Inspection, Problem, Witness};
use crate::upkeep::scheduled::proof;
use crate::upkeep::scheduled::retention::DatabaseId;
use placing::Target;
use scratch::Scratch;
use unpacking::{Unpacked, Unpacking};

/// How to restore a backup.
pub struct Restoring<'r> {
    /// The settings, which name the target.
    pub config: &'r Config,
    /// The runtime that reads and writes contents.
    pub runtime: &'r Handle,
    /// What decrypts the backup.
    pub identities: Option<&'r Identities>,
    /// Whether a backup is accepted that is not signed, or signed with a key that is not there.
    pub trusts_unsigned: bool,
    /// Receives the progress and the problems.
    pub witness: &'r mut dyn Witness,
}

/// What a restore says about those who were signed in.
const ENDED: &str = "Everybody who was signed in signs in again, and links that had been sent to accept an invitation, set a password or sign in no longer work. API keys still do.";

/// A backup that was restored, or could be.
pub struct Restored {
    /// Its description.
    pub manifest: Manifest,
    /// What was checked.
    pub checked: Checked,
    /// The id of its database; none if that is of an earlier version, which is not verified in full.
    pub id: Option<DatabaseId>,
    /// What the operator should know; sentences.
    pub notes: Vec<String>,
}

/// What verification found.
struct Verified {
    checked: Checked,
    id: Option<DatabaseId>,
    notes: Vec<String>,
    /// Whether the settings have another key than the one in the backup, which it needs.
    has_other_key: bool,
}

impl Restoring<'_> {
    /// Restores a backup to the configured database and file store, which must be empty. If it fails, nothing is left.
    pub fn restore(&mut self, place: &Place) -> Result<Restored, String> {
        let mut target = Target::claim(self.config, self.runtime)?;
        let scratch = Scratch::create(target.workplace(), "restore")?;
        let contents = target.contents(scratch.path())?;
        let kind = if self.config.database_url.is_empty() { "sqlite" } else { "postgresql" };
        let unpacking = Unpacking {
            identities: self.identities,
            folder: scratch.path(),
            contents: &contents,
            runtime: self.runtime,
            kind: Some(kind),
        };
        let unpacked = unpacking.run(place, self.witness)?;
        // Before anything is done with the database: loading a dump does what the dump says.
        let unproven = self.prove(place, &unpacked)?;
        let database = match self.config.database_url.as_str() {
            "" => Database::Sqlite(unpacked.database.clone()),
            url => {
                store::load_dump(url, &unpacked.database).map_err(|error| error.to_string())?;
                target.loaded();
                Database::Postgres(url.to_string())
            }
        };
        let Verified { checked, id, mut notes, has_other_key } = self.verify(&database, &contents, &unpacked, false)?;
        if checked.problems > 0 {
            return Err(format!("{place} failed verification, and nothing was restored; use another backup"));
        }
        store::clear(&database, &ENTRANCES).map_err(|error| error.to_string())?;
        notes.extend(unproven);
        notes.push(ENDED.to_string());
        notes.extend(target.place(&unpacked, has_other_key)?);
        Ok(Restored { manifest: unpacked.manifest, checked, id, notes })
    }

    /// Restores a backup to a temporary place, verifies everything and throws it away. The problems are in the result.
    pub fn check(&mut self, place: &Place) -> Result<Restored, String> {
        let temporary = std::env::temp_dir();
        let workplace = if self.config.data.is_dir() { &self.config.data } else { &temporary };
        let scratch = Scratch::create(workplace, "check")?;
        let contents = Blobs::in_folder(&scratch.path().join(FILES)).map_err(|error| error.to_string())?;
        let (identities, folder, runtime) = (self.identities, scratch.path(), self.runtime);
        let unpacking = Unpacking { identities, folder, contents: &contents, runtime, kind: None };
        let unpacked = unpacking.run(place, self.witness)?;
        let unproven = self.prove(place, &unpacked)?;
        let Verified { checked, id, mut notes, .. } = match unpacked.manifest.database.kind.as_str() {
            "sqlite" => self.verify(&Database::Sqlite(unpacked.database.clone()), &contents, &unpacked, true)?,
            _ if self.config.database_url.is_empty() => {
                return Err(format!(
                    "{place} is a backup of PostgreSQL: name a server on which a temporary database can be created with --database-url"
                ));
            }
            _ => {
                let now = Clock::System.now().0.unsigned_abs();
                let own = TemporaryDatabase::create(&self.config.database_url, now);
                let own = own.map_err(|error| error.to_string())?;
                store::load_dump(own.url(), &unpacked.database).map_err(|error| error.to_string())?;
                self.verify(&Database::Postgres(own.url().to_string()), &contents, &unpacked, true)?
            }
        };
        notes.extend(unproven);
        Ok(Restored { manifest: unpacked.manifest, checked, id, notes })
    }

    /// Refuses a backup of which nothing shows who made it; returns what the operator should know.
    fn prove(&self, place: &Place, unpacked: &Unpacked) -> Result<Option<String>, String> {
        authenticity::prove(self.config, unpacked, self.trusts_unsigned).map_err(|why| format!("{place}: {why}"))
    }

    /// Does the checks of `kantoor verify` on what was unpacked. Without the key of its secrets a database can be restored,
    /// but it is not proven.
    fn verify(
        &mut self,
        database: &Database,
        contents: &Blobs,
        unpacked: &Unpacked,
        needs_key: bool,
    ) -> Result<Verified, String> {
        let told = |error: Error| error.internal.unwrap_or(error.message);
        let mut options = Options::new(database.clone());
        options.timeout = std::time::Duration::from_secs(3600);
        let store = Store::open_to_read(&options).map_err(|error| error.to_string())?;
        // The description says what it was made of; the database knows what it is.
        let (schema, newest) = (store.schema().map_err(|error| error.to_string())?, newest_schema());
        if schema == 0 {
            return Err("the backup contains no database of Kantoor; nothing was restored".to_string());
        }
        if schema > newest {
            return Err(format!(
                "the database in the backup is of a newer version (schema {schema}) than this program (schema {newest}); use the newer version of the program"
            ));
        }
        if schema < newest {
            // Its secrets need their key as those of the newest do.
            let (_, has_other_key) = load_keys(&store, self.config, unpacked.key.as_deref());
            let (checked, notes) = (self.verify_older(&store, unpacked), vec![older(schema)]);
            return Ok(Verified { checked, id: None, notes, has_other_key });
        }
        let (mut notes, mut lacking) = (Vec::new(), 0);
        let (loaded, has_other_key) = load_keys(&store, self.config, unpacked.key.as_deref());
        let vault = match loaded {
            Ok(vault) => vault,
            Err(error) if needs_key => {
                lacking = 1;
                let (account, table, id) = (String::new(), "secrets".to_string(), String::new());
                self.witness.hears(&Problem { account, table, id, what: told(error) });
                None
            }
            Err(error) => {
                notes.push(format!("{} Secrets and signatures were not checked.", told(error)));
                None
            }
        };
        let inspection = Inspection::new(&store, contents, self.runtime, self.witness).with_keys(vault.as_ref());
        let mut checked = inspection.run(None).map_err(told)?;
        checked.problems += lacking;
        Ok(Verified { checked, id: proof::id_of(&store), notes, has_other_key })
    }

    /// The records of an earlier schema are not those that this program knows.
    fn verify_older(&mut self, store: &Store, unpacked: &Unpacked) -> Checked {
        let mut problems = 0;
        let (manifest, witness) = (&unpacked.manifest, &mut *self.witness);
        let mut found = Vec::new();
        store.check(&mut |what| witness.sees(what, 0), &mut |unsound| found.push(unsound));
        found.extend(schema::strangers(store));
        for unsound in found {
            problems += 1;
            let (account, id) = (String::new(), String::new());
            witness.hears(&Problem { account, table: unsound.table, id, what: unsound.what });
        }
        Checked {
            accounts: manifest.accounts,
            records: manifest.records,
            lines: manifest.log_entries,
            files: manifest.files.count,
            bytes: manifest.files.bytes,
            problems,
        }
    }
}

fn older(schema: u32) -> String {
    format!(
        "The backup is of an earlier version (schema {schema}): the database itself and the hashes of all files were checked. Start this version, which migrates it, and run `kantoor verify`."
    )
}

/// Loads the keys of a database: those of the settings, or else the one in its backup. Returns whether the settings have
/// another key than the backup needs.
fn load_keys(store: &Store, config: &Config, key: Option<&Path>) -> (engine::error::Result<Option<Vault>>, bool) {
    let has_own = match KeySource::of(config) {
        KeySource::File(own) => own.exists(),
        KeySource::Setting(_) => true,
    };
    let loaded = secrets::for_database(store, config);
    let Some(key) = key.filter(|_| !has_own || loaded.is_err()) else { return (loaded, false) };
    let mut config = config.clone();
    config.secret_key.clear();
    config.secret_key_file = key.to_string_lossy().into_owned();
    match secrets::for_database(store, &config) {
        Ok(vault) => (Ok(vault), has_own),
        Err(error) => (loaded.and(Err(error)), false),
    }
}
