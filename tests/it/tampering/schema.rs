//! The schema of the database: what acts in it besides the program, and what differs from what the migrations make.

use kantoor::upkeep::integrity::schema::listed;
use store::{Options, Store};

use super::{spoil, verify};
use crate::cli::{complained, kantoor};
use crate::on_both;
use crate::support::Db;

on_both![what_acts_in_the_schema_is_named, a_schema_that_differs_is_named, the_schema_is_listed];

/// What somebody puts in the schema, how it is removed, and what it is called; for each database.
fn acting(db: &Db) -> Vec<(&'static str, &'static str, &'static str)> {
    match db.url.is_empty() {
        true => vec![
            (
                "CREATE TRIGGER steal AFTER INSERT ON sessions BEGIN DELETE FROM jobs; END",
                "DROP TRIGGER steal",
                "the trigger steal on sessions",
            ),
            // Under the name of one of our own.
            (
                "DROP TRIGGER search_removed;
                 CREATE TRIGGER search_removed AFTER DELETE ON search_texts BEGIN DELETE FROM jobs; END",
                "DROP TRIGGER search_removed",
                "the trigger search_removed on search_texts",
            ),
            ("CREATE VIEW people_2 AS SELECT * FROM people", "DROP VIEW people_2", "the view people_2"),
        ],
        false => vec![
            (
                "CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
                 CREATE TRIGGER steal AFTER INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION steal()",
                "DROP TRIGGER steal ON sessions",
                "the trigger steal on sessions",
            ),
            (
                "CREATE RULE steal AS ON DELETE TO sessions DO INSTEAD NOTHING",
                "DROP RULE steal ON sessions",
                "the rule steal on sessions",
            ),
            ("CREATE VIEW people_2 AS SELECT * FROM people", "DROP VIEW people_2", "the view people_2"),
            (
                "ALTER TABLE sessions ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
                "row security on sessions",
            ),
            (
                "CREATE TABLE sessions_2 () INHERITS (sessions)",
                "ALTER TABLE sessions_2 NO INHERIT sessions",
                "the table sessions_2, whose rows are read as those of sessions",
            ),
            (
                "CREATE FUNCTION lower(BIGINT) RETURNS TEXT LANGUAGE sql AS $$SELECT 'x'$$",
                "DROP FUNCTION public.lower(BIGINT)",
                "the function lower in the schema public, which may be used instead of that of PostgreSQL",
            ),
            (
                "CREATE FUNCTION same(BIGINT, TEXT) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT true';
                 CREATE OPERATOR = (LEFTARG = BIGINT, RIGHTARG = TEXT, FUNCTION = same)",
                "DROP OPERATOR = (BIGINT, TEXT)",
                "the operator = in the schema public, which may be used instead of that of PostgreSQL",
            ),
            (
                "CREATE SCHEMA IF NOT EXISTS AUTHORIZATION CURRENT_USER;
                 DO 'BEGIN EXECUTE format(''CREATE TABLE %I.sessions AS SELECT * FROM public.sessions'', current_user); END'",
                "DO 'BEGIN EXECUTE format(''DROP SCHEMA %I CASCADE'', current_user); END'",
                "the table sessions in the schema",
            ),
            (
                "CREATE FUNCTION thief(BIGINT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS 'SELECT true';
                 ALTER TABLE sessions ADD CONSTRAINT steal CHECK (thief(account_id))",
                "ALTER TABLE sessions DROP CONSTRAINT steal",
                "the function thief in the constraint steal on table sessions",
            ),
        ],
    }
}

fn what_acts_in_the_schema_is_named(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    for (harm, undo, name) in acting(&db) {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        assert!(!good && words.contains(&format!("Kantoor did not make {name}")), "{harm}: {words}");
        for command in [&["migrate"][..], &["account", "list"], &["secrets", "trust"]] {
            let words = complained(&kantoor(&db, command));
            assert!(
                words.contains(&format!("the database has {name}")) && words.contains(", which Kantoor did not make"),
                "{words}"
            );
            assert!(words.contains("remove it (") && words.lines().count() == 1, "{words}");
        }
        let words = complained(&kantoor(&db, &["backup", file.to_str().unwrap()]));
        assert!(words.contains("failed verification") && !file.exists(), "{words}");
        spoil(&db, undo);
        assert!(kantoor(&db, &["account", "list"]).status.success(), "{undo}");
    }
}

/// An operator may have made these. They are named, and are no problem.
#[test]
fn what_copies_a_database_is_named() {
    let Some(db) = Db::postgres() else { return };
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    for (made, undo, name) in [
        (
            "CREATE PUBLICATION thief FOR ALL TABLES",
            "DROP PUBLICATION thief",
            "the publication thief, which sends what is stored to others",
        ),
        (
            "CREATE FUNCTION look() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
             CREATE EVENT TRIGGER look ON ddl_command_end EXECUTE FUNCTION look()",
            "DROP EVENT TRIGGER look",
            "the event trigger look, which acts on ddl_command_end",
        ),
    ] {
        spoil(&db, made);
        let (good, words) = verify(&db, &[]);
        assert!(good && words.contains(&format!("NOTE: Kantoor did not make {name}")), "{made}: {words}");
        assert!(words.contains(&format!("remove it ({undo})")), "{words}");
        spoil(&db, undo);
        assert!(!verify(&db, &[]).1.contains("NOTE"), "{undo}");
    }
}

fn a_schema_that_differs_is_named(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    // An operator may add tables and indexes.
    spoil(&db, "CREATE TABLE report (id BIGINT); CREATE INDEX report_people ON people (email, id)");
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    let narrow = match db.url.is_empty() {
        true => "CREATE INDEX sessions_seen ON sessions (account_id, seen_at) WHERE account_id = 2",
        false => "CREATE INDEX sessions_seen ON public.sessions (account_id, seen_at) WHERE account_id = 2",
    };
    for (harm, name) in [
        ("DROP INDEX sessions_seen", "sessions  PROBLEM: The index sessions_seen is missing"),
        (narrow, "sessions  PROBLEM: The index sessions_seen is not the one that Kantoor made"),
        (
            if db.url.is_empty() {
                "ALTER TABLE sessions ADD COLUMN extra INTEGER NOT NULL DEFAULT 0"
            } else {
                "ALTER TABLE sessions ADD COLUMN extra BIGINT NOT NULL DEFAULT 0"
            },
            "sessions  PROBLEM: Its columns, defaults or constraints are not those that Kantoor made",
        ),
        (
            "CREATE UNIQUE INDEX evil ON clients (account_id)",
            "clients  PROBLEM: Kantoor did not make the index evil, which refuses rows",
        ),
        (
            "CREATE TABLE own (product TEXT PRIMARY KEY, client TEXT REFERENCES search_pieces (piece))",
            "own  PROBLEM: Kantoor did not make this table, whose references",
        ),
        ("DROP TABLE sessions", "sessions  PROBLEM: The table is missing"),
    ] {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        assert!(!good && words.contains(name), "{harm}: {words}");
    }
}

/// `make docs-snapshots` writes the list of the schema; otherwise it is compared.
fn the_schema_is_listed(db: Db) {
    kantoor::registry::install();
    let store = Store::open(&Options::new(engine::open::database(&db.config()))).unwrap();
    store.migrate(&engine::migrations::all()).unwrap();
    let list = listed(&store.read_now(|tx| tx.catalogue()).unwrap());
    let name = if db.url.is_empty() { "sqlite" } else { "postgresql" };
    let file = format!("src/upkeep/integrity/schema/{name}.txt");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file, list).unwrap();
    } else {
        assert!(list == std::fs::read_to_string(&file).unwrap(), "{file} is old: run make docs-snapshots");
    }
}
