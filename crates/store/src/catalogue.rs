//! What the schema of a database consists of, to be compared with what the migrations make, and what in it acts on its own:
//! triggers, rules, views and the like, which are nowhere to be seen in the rows.

use sha2::{Digest, Sha256};

use crate::{Dialect, Error, Migration, Result, Store, Tx};

/// Something in the schema that acts when rows are read or written, and that no migration made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// What it is, such as `the trigger x on people`.
    pub what: String,
    /// How to remove it; a statement.
    pub remedy: String,
}

/// A table as the schema describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDigest {
    /// Its name.
    pub name: String,
    /// A digest of its columns, defaults and constraints.
    pub digest: String,
    /// The tables to which it refers.
    pub refers: Vec<String>,
    /// Its indexes, besides those of constraints, in the order of their names.
    pub indexes: Vec<IndexDigest>,
}

/// An index as the schema describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDigest {
    /// Its name.
    pub name: String,
    /// A digest of its definition.
    pub digest: String,
    /// Whether it refuses rows.
    pub is_unique: bool,
}

/// Everything that a PostgreSQL schema can have besides tables and indexes and that changes what statements do. What belongs to
/// an extension is left out, and so are the triggers of foreign keys.
const STRANGERS: &str = "
SELECT 'the trigger ' || tgname::TEXT || ' on ' || relname::TEXT,
       'DROP TRIGGER ' || quote_ident(tgname::TEXT) || ' ON ' || quote_ident(relname::TEXT)
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND relnamespace = current_schema()::REGNAMESPACE
UNION ALL
SELECT 'the rule ' || rulename::TEXT || ' on ' || relname::TEXT,
       'DROP RULE ' || quote_ident(rulename::TEXT) || ' ON ' || quote_ident(relname::TEXT)
FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::REGNAMESPACE
UNION ALL
SELECT CASE relkind WHEN 'v' THEN 'the view ' ELSE 'the materialized view ' END || relname::TEXT,
       CASE relkind WHEN 'v' THEN 'DROP VIEW ' ELSE 'DROP MATERIALIZED VIEW ' END || quote_ident(relname::TEXT)
FROM pg_class
WHERE relkind IN ('v', 'm') AND relnamespace = current_schema()::REGNAMESPACE
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::REGCLASS AND objid = pg_class.oid AND deptype = 'e')
UNION ALL
SELECT 'row security on ' || relname::TEXT, 'ALTER TABLE ' || quote_ident(relname::TEXT) || ' DISABLE ROW LEVEL SECURITY'
FROM pg_class
WHERE relkind IN ('r', 'p') AND (relrowsecurity OR relforcerowsecurity)
    AND relnamespace = current_schema()::REGNAMESPACE
UNION ALL
SELECT 'the table ' || child.relname::TEXT || ', whose rows are read as those of ' || parent.relname::TEXT,
       'ALTER TABLE ' || quote_ident(child.relname::TEXT) || ' NO INHERIT ' || quote_ident(parent.relname::TEXT)
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
WHERE parent.relkind = 'r' AND parent.relnamespace = current_schema()::REGNAMESPACE
UNION ALL
SELECT 'the function ' || proname::TEXT || ' in the ' || pg_describe_object(used.classid, used.objid, used.objsubid),
       'DROP FUNCTION ' || used.refobjid::REGPROCEDURE::TEXT || ' CASCADE'
FROM pg_depend AS used JOIN pg_proc ON used.refclassid = 'pg_proc'::REGCLASS AND pg_proc.oid = used.refobjid
WHERE COALESCE(
        (SELECT adrelid FROM pg_attrdef WHERE used.classid = 'pg_attrdef'::REGCLASS AND pg_attrdef.oid = used.objid),
        (SELECT conrelid FROM pg_constraint WHERE used.classid = 'pg_constraint'::REGCLASS AND pg_constraint.oid = used.objid),
        (SELECT indrelid FROM pg_index WHERE used.classid = 'pg_class'::REGCLASS AND indexrelid = used.objid)
    ) IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::REGNAMESPACE)
    AND NOT EXISTS (SELECT 1 FROM pg_depend AS of_extension WHERE of_extension.classid = 'pg_proc'::REGCLASS
        AND of_extension.objid = pg_proc.oid AND of_extension.deptype = 'e')";

/// What PostgreSQL finds by `search_path` instead of our tables and its own functions and operators. Of functions, those that
/// statements call: an operator may have others with the names of new ones of PostgreSQL.
const HIDING: &str = "
WITH path AS (
    SELECT pg_namespace.oid, nspname, place FROM unnest(current_schemas(true)) WITH ORDINALITY AS own (name, place)
        JOIN pg_namespace ON nspname = own.name WHERE nspname NOT LIKE 'pg\\_temp%'
), home AS (
    SELECT relnamespace AS oid, place FROM pg_class JOIN path ON path.oid = relnamespace
    WHERE pg_class.oid = to_regclass('schema_migrations')
)
SELECT CASE hiding.relkind WHEN 'v' THEN 'the view ' WHEN 'r' THEN 'the table ' ELSE 'the relation ' END
           || hiding.relname::TEXT || ' in the schema ' || nspname::TEXT || ', which is used instead of that of Kantoor',
       'DROP ' || CASE hiding.relkind WHEN 'v' THEN 'VIEW ' WHEN 'm' THEN 'MATERIALIZED VIEW ' ELSE 'TABLE ' END
           || quote_ident(nspname::TEXT) || '.' || quote_ident(hiding.relname::TEXT)
FROM home JOIN pg_class AS own ON own.relnamespace = home.oid AND own.relkind IN ('r', 'p')
    JOIN pg_class AS hiding ON hiding.relname = own.relname
    JOIN path ON path.oid = hiding.relnamespace AND path.place < home.place
UNION ALL
SELECT 'the function ' || proname::TEXT || ' in the schema ' || nspname::TEXT
           || ', which may be used instead of that of PostgreSQL',
       'DROP FUNCTION ' || pg_proc.oid::REGPROCEDURE::TEXT || ' CASCADE'
FROM pg_proc JOIN path ON path.oid = pronamespace
WHERE nspname <> 'pg_catalog' AND proname = ANY (string_to_array('{functions}', ' '))
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_proc'::REGCLASS AND objid = pg_proc.oid AND deptype = 'e')
UNION ALL
SELECT 'the operator ' || oprname::TEXT || ' in the schema ' || nspname::TEXT
           || ', which may be used instead of that of PostgreSQL',
       'DROP OPERATOR ' || pg_operator.oid::REGOPERATOR::TEXT || ' CASCADE'
FROM pg_operator JOIN path ON path.oid = oprnamespace
WHERE nspname <> 'pg_catalog'
    AND EXISTS (SELECT 1 FROM pg_operator AS own WHERE own.oprname = pg_operator.oprname
        AND own.oprnamespace = 'pg_catalog'::REGNAMESPACE)
    AND NOT EXISTS (SELECT 1 FROM pg_type WHERE pg_type.oid IN (oprleft, oprright)
        AND typnamespace <> 'pg_catalog'::REGNAMESPACE)
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_operator'::REGCLASS AND objid = pg_operator.oid
        AND deptype = 'e')
UNION ALL
SELECT 'the search_path ' || current_setting('search_path') || ', in which pg_catalog is not first',
       'ALTER ROLE ' || quote_ident(current_user::TEXT) || ' RESET search_path, or ALTER DATABASE '
           || quote_ident(current_database()::TEXT) || ' RESET search_path'
FROM path AS own WHERE nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM path WHERE path.place < own.place)";

/// The functions that statements call.
pub const CALLED: &str = "abs clock_timestamp concat count length lower max min octet_length replace round row_number \
                          string_agg strpos substr sum trim upper";

/// What copies what is stored, or acts beside it, in the whole database. Operators may have made these, so they are no problem.
const BESIDE: &str = "
SELECT 'the publication ' || pubname::TEXT || ', which sends what is stored to others',
       'DROP PUBLICATION ' || quote_ident(pubname::TEXT)
FROM pg_publication
UNION ALL
SELECT 'the subscription ' || subname::TEXT || ', which stores what others send',
       'DROP SUBSCRIPTION ' || quote_ident(subname::TEXT)
FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL
SELECT 'the replication slot ' || slot_name::TEXT || ', with which others read what is stored',
       'SELECT pg_drop_replication_slot(' || quote_literal(slot_name::TEXT) || ')'
FROM pg_replication_slots WHERE database = current_database() AND NOT temporary
UNION ALL
SELECT 'the event trigger ' || evtname::TEXT || ', which acts on ' || evtevent::TEXT,
       'DROP EVENT TRIGGER ' || quote_ident(evtname::TEXT)
FROM pg_event_trigger
WHERE NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_event_trigger'::REGCLASS AND objid = pg_event_trigger.oid
    AND deptype = 'e')";

/// The columns of a table, then its constraints, without their names. Not-null constraints are with the columns: only some
/// versions list them besides.
const DEFINITIONS: &str = "
SELECT relname::TEXT,
       attname::TEXT || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull::TEXT || ' ' || attgenerated::TEXT
           || attidentity::TEXT || ' ' || COALESCE(collname::TEXT, '') || ' ' || COALESCE(pg_get_expr(adbin, adrelid), '')
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::REGNAMESPACE AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT relname::TEXT, pg_get_constraintdef(pg_constraint.oid)
FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid
WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::REGNAMESPACE AND contype IN ('p', 'u', 'f', 'c', 'x')";

/// Indexes: the table, the name and the definition.
const INDEXES: &str = "
SELECT owner.relname::TEXT, own.relname::TEXT, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class AS own ON own.oid = indexrelid JOIN pg_class AS owner ON owner.oid = indrelid
WHERE owner.relnamespace = current_schema()::REGNAMESPACE
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'))";

impl Store {
    /// Returns what acts in the schema although no migration made it.
    pub fn strangers(&self, migrations: &[Migration]) -> Result<Vec<Stranger>> {
        let dialect = self.dialect();
        let found = self.read_now(|tx| match dialect {
            Dialect::Postgres => {
                let hiding = HIDING.replace("{functions}", CALLED);
                let mut found = named(tx, STRANGERS)?;
                found.extend(named(tx, &hiding)?);
                Ok::<_, Error>(found.into_iter().map(|stranger| (stranger, String::new())).collect())
            }
            Dialect::Sqlite => {
                let sql = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
                           WHERE type IN ('trigger', 'view') ORDER BY name";
                tx.all(sql, &[], |row| {
                    let (kind, name) = (row.text(0)?, row.text(1)?);
                    let on = if kind == "trigger" { format!(" on {}", row.text(2)?) } else { String::new() };
                    let remedy = format!("DROP {} \"{}\"", kind.to_uppercase(), name.replace('"', "\"\""));
                    Ok((stranger(&format!("the {kind} {name}{on}"), &remedy), plain(row.text(3)?)))
                })
            }
        })?;
        // SQLite keeps the text of the statement.
        let own: Vec<String> = match found.is_empty() {
            true => Vec::new(),
            false => {
                let makes = migrations.iter().filter(|migration| migration.sql.contains("CREATE TRIGGER"));
                makes.map(|migration| plain(&dialect.schema(migration.sql))).collect()
            }
        };
        let is_own = |text: &str| !text.is_empty() && own.iter().any(|migration| migration.contains(text));
        Ok(found.into_iter().filter(|(_, text)| !is_own(text)).map(|(stranger, _)| stranger).collect())
    }
}

impl Store {
    /// Returns what copies what is stored, or acts in the database beside the schema. An operator may have made it.
    pub fn beside(&self) -> Result<Vec<Stranger>> {
        match self.dialect() {
            Dialect::Sqlite => Ok(Vec::new()),
            Dialect::Postgres => self.read_now(|tx| named(tx, BESIDE)),
        }
    }
}

fn named(tx: &mut Tx, sql: &str) -> Result<Vec<Stranger>> {
    tx.all(sql, &[], |row| Ok::<_, Error>(stranger(row.text(0)?, row.text(1)?)))
}

fn stranger(what: &str, remedy: &str) -> Stranger {
    Stranger { what: what.to_string(), remedy: remedy.to_string() }
}

impl Tx<'_> {
    /// Describes the tables and their indexes, in the order of their names. Tables that the database itself makes, such as those
    /// behind an index of texts, are left out.
    pub fn catalogue(&mut self) -> Result<Vec<TableDigest>> {
        let (definitions, indexes) = match self.dialect() {
            Dialect::Sqlite => (
                "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                 AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')",
                "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
            ),
            Dialect::Postgres => (DEFINITIONS, INDEXES),
        };
        let schema = match self.dialect() {
            Dialect::Sqlite => String::new(),
            Dialect::Postgres => {
                let own = self.all("SELECT ' ON ' || quote_ident(current_schema()::TEXT) || '.'", &[], |row| {
                    Ok::<_, Error>(row.text(0)?.to_string())
                })?;
                own.into_iter().next().unwrap_or_default()
            }
        };
        let mut lines =
            self.all(definitions, &[], |row| Ok::<_, Error>((row.text(0)?.to_string(), plain(row.text(1)?))))?;
        let mut indexes = self.all(indexes, &[], |row| {
            let text = plain(row.text(2)?);
            let text = if schema.is_empty() { text } else { text.replace(&schema, " ON ") };
            let is_unique = text.to_ascii_uppercase().starts_with("CREATE UNIQUE");
            let index = IndexDigest { name: row.text(1)?.to_string(), digest: digest([text.as_str()]), is_unique };
            Ok::<_, Error>((row.text(0)?.to_string(), index))
        })?;
        lines.sort_unstable();
        indexes.sort_unstable_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        let of_one = lines.chunk_by(|(one, _), (other, _)| one == other);
        Ok(of_one
            .map(|lines| {
                let name = lines[0].0.clone();
                let own = indexes.iter().filter(|(table, _)| *table == name);
                let indexes = own.map(|(_, index)| index.clone()).collect();
                let refers = lines.iter().flat_map(|(_, text)| referred(text)).collect();
                TableDigest { name, digest: digest(lines.iter().map(|(_, text)| text.as_str())), refers, indexes }
            })
            .collect())
    }
}

/// Returns the tables to which a definition refers.
fn referred(definition: &str) -> Vec<String> {
    let words: Vec<&str> = definition.split([' ', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).filter(|pair| pair[0].eq_ignore_ascii_case("references"));
    named
        .map(|pair| pair[1].rsplit('.').next().unwrap_or_default().trim_matches(['"', '`', '[', ']']).to_string())
        .collect()
}

/// Returns a text with single spaces.
fn plain(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn digest<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    let mut hash = Sha256::new();
    lines.into_iter().for_each(|line| hash.update(format!("{line}\n")));
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
