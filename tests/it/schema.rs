//! The schema of each database as a file that people can read: every table with its indexes and triggers, by name.

use std::fmt::Write;

use store::{Error, Options, Store, Tx};

use crate::on_both;
use crate::support::Db;

on_both![the_schema_is_the_one_in_the_repository];

/// `make docs-snapshots` writes the file; otherwise it is compared.
fn the_schema_is_the_one_in_the_repository(db: Db) {
    kantoor::registry::install();
    let db = db.emptied();
    let store = Store::open(&Options::new(engine::open::database(&db.config()))).unwrap();
    store.migrate(&engine::migrations::all()).unwrap();
    let (name, written) = match db.url.is_empty() {
        true => ("sqlite", store.read_now(of_sqlite)),
        false => ("postgres", store.read_now(of_postgres)),
    };
    let written = format!("-- Written by `make docs-snapshots`.\n{}", written.unwrap());
    let file = format!("docs/schema.{name}.sql");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file, written).unwrap();
    } else {
        assert!(
            written == std::fs::read_to_string(&file).unwrap_or_default(),
            "{file} is old: run make docs-snapshots"
        );
    }
}

/// Selects rows of texts.
fn texts(tx: &mut Tx, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, Error> {
    tx.all(sql, &[], |row| (0..columns).map(|column| Ok(row.text(column)?.to_string())).collect())
}

/// SQLite keeps the statements.
fn of_sqlite(tx: &mut Tx) -> Result<String, Error> {
    // Tables first, then indexes and triggers.
    let sql = "SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
               AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
               ORDER BY tbl_name, CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END, name";
    let (mut out, mut before) = (String::new(), String::new());
    for row in texts(tx, sql, 2)? {
        let gap = if row[0] == before { "" } else { "\n" };
        before.clone_from(&row[0]);
        let _ = writeln!(out, "{gap}{};", row[1]);
    }
    Ok(out)
}

/// PostgreSQL keeps what the statements mean.
fn of_postgres(tx: &mut Tx) -> Result<String, Error> {
    let extensions = "SELECT extname::TEXT FROM pg_extension WHERE extname <> 'plpgsql' ORDER BY extname";
    let tables = "SELECT relname::TEXT FROM pg_class
                  WHERE relkind = 'r' AND relnamespace = current_schema()::REGNAMESPACE ORDER BY relname";
    let columns = "
        SELECT relname::TEXT,
               quote_ident(attname::TEXT) || ' ' || format_type(atttypid, atttypmod)
                   || CASE WHEN collname IS NULL OR collname = 'default' THEN '' ELSE ' COLLATE ' || quote_ident(collname::TEXT) END
                   || CASE attidentity WHEN '' THEN '' ELSE ' GENERATED ALWAYS AS IDENTITY' END
                   || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
                   || COALESCE(' DEFAULT ' || pg_get_expr(adbin, adrelid), '')
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
            LEFT JOIN pg_collation ON pg_collation.oid = attcollation
            LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relkind = 'r' AND relnamespace = current_schema()::REGNAMESPACE AND attnum > 0 AND NOT attisdropped
        ORDER BY relname, attnum";
    let constraints = "
        SELECT relname::TEXT, pg_get_constraintdef(pg_constraint.oid)
        FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid
        WHERE relnamespace = current_schema()::REGNAMESPACE AND contype IN ('p', 'u', 'f', 'c')
        ORDER BY relname, contype DESC, conname";
    let indexes = "
        SELECT owner.relname::TEXT, replace(pg_get_indexdef(indexrelid), quote_ident(current_schema()::TEXT) || '.', '')
        FROM pg_index JOIN pg_class AS own ON own.oid = indexrelid JOIN pg_class AS owner ON owner.oid = indrelid
        WHERE owner.relnamespace = current_schema()::REGNAMESPACE
            AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))
        ORDER BY own.relname";
    let mut out = String::new();
    for row in texts(tx, extensions, 1)? {
        let _ = writeln!(out, "\nCREATE EXTENSION {};", row[0]);
    }
    let (columns, constraints, indexes) = (texts(tx, columns, 2)?, texts(tx, constraints, 2)?, texts(tx, indexes, 2)?);
    for table in texts(tx, tables, 1)? {
        let own = |rows: &[Vec<String>]| -> Vec<String> {
            rows.iter().filter(|row| row[0] == table[0]).map(|row| row[1].clone()).collect()
        };
        let lines: Vec<String> = own(&columns).into_iter().chain(own(&constraints)).collect();
        let _ = writeln!(out, "\nCREATE TABLE {} (\n    {}\n);", table[0], lines.join(",\n    "));
        own(&indexes).iter().for_each(|index| {
            let _ = writeln!(out, "{};", index.replace(" USING btree", ""));
        });
    }
    Ok(out)
}
