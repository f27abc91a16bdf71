//! Products in the bare program: Kantoor's table, its statements and its JSON.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize, Serializer};

/// The tables as Kantoor creates them on SQLite (src/sales/product.rs, crates/engine/src/accounts.rs), without the
/// references to its other tables.
pub const SCHEMA: &str = "
CREATE TABLE products (
    account_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    code TEXT NOT NULL,
    price INTEGER NOT NULL,
    vat_rate TEXT NOT NULL,
    unit TEXT NOT NULL,
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX products_created ON products (account_id, created_at, id);
CREATE INDEX products_name ON products (account_id, name, id);
CREATE INDEX products_code ON products (account_id, code, created_at, id);
CREATE INDEX products_code_sort ON products (account_id, code, id);
CREATE INDEX products_price ON products (account_id, price, id);
CREATE INDEX products_active ON products (account_id, active, created_at, id);
CREATE TABLE record_counts (
    account_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (account_id, kind)
) STRICT, WITHOUT ROWID;
";

macro_rules! select {
    () => {
        "SELECT products.id, products.created_at, products.updated_at, products.version, products.name, \
         products.code, products.price, products.vat_rate, products.unit, products.active FROM products"
    };
}

/// Values: account, id.
pub const GET: &str = concat!(select!(), " WHERE account_id = $1 AND id = $2");
/// Values: account, limit, offset.
pub const LIST: &str = concat!(
    select!(),
    " WHERE products.account_id = $1 ORDER BY products.created_at desc, products.id desc LIMIT $2 OFFSET $3"
);
/// Values: account, kind.
pub const TOTAL: &str = "SELECT total FROM record_counts WHERE account_id = $1 AND kind = $2";

const INSERT: &str = "INSERT INTO products (account_id, id, created_at, updated_at, version, name, code, price, \
                      vat_rate, unit, active) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const COUNT: &str = "INSERT INTO record_counts (account_id, kind, total) VALUES ($1, $2, $3) \
                     ON CONFLICT (account_id, kind) DO UPDATE SET total = record_counts.total + excluded.total";

/// The name of the counter of products.
pub const KIND: &str = "product";

/// Prices are stored in millionths.
const SCALE: f64 = 1e6;

/// The body of a POST.
#[derive(Deserialize)]
pub struct Input {
    pub name: String,
    pub code: String,
    pub price: f64,
    pub vat_rate: String,
    pub unit: String,
    pub active: bool,
}

/// A record in a response.
#[derive(Serialize)]
pub struct Product {
    pub id: String,
    pub name: String,
    pub code: String,
    pub price: f64,
    pub vat_rate: String,
    pub unit: String,
    pub active: bool,
    pub meta: Meta,
}

#[derive(Serialize)]
pub struct Meta {
    pub created_at: Moment,
    pub updated_at: Moment,
    pub version: i64,
}

impl Product {
    /// Creates a record from a body.
    pub fn new(input: Input, id: String, now: Moment) -> Product {
        let Input { name, code, price, vat_rate, unit, active } = input;
        let meta = Meta { created_at: now, updated_at: now, version: 1 };
        Product { id, name, code, price, vat_rate, unit, active, meta }
    }

    /// Reads a row of `GET` or `LIST`.
    pub fn from_row(row: &Row) -> rusqlite::Result<Product> {
        Ok(Product {
            id: row.get(0)?,
            meta: Meta { created_at: Moment(row.get(1)?), updated_at: Moment(row.get(2)?), version: row.get(3)? },
            name: row.get(4)?,
            code: row.get(5)?,
            price: row.get::<_, i64>(6)? as f64 / SCALE,
            vat_rate: row.get(7)?,
            unit: row.get(8)?,
            active: row.get(9)?,
        })
    }

    pub fn insert(&self, conn: &Connection, account: i64) -> rusqlite::Result<()> {
        conn.prepare_cached(INSERT)?.execute(params![
            account,
            self.id,
            self.meta.created_at.0,
            self.meta.updated_at.0,
            self.meta.version,
            self.name,
            self.code,
            (self.price * SCALE).round() as i64,
            self.vat_rate,
            self.unit,
            self.active,
        ])?;
        Ok(())
    }
}

/// Adds to the total of lists.
pub fn count(conn: &Connection, account: i64, kind: &str, change: i64) -> rusqlite::Result<()> {
    conn.prepare_cached(COUNT)?.execute(params![account, kind, change])?;
    Ok(())
}

/// Returns a UUIDv7. It increases with `moment` (milliseconds), and within one with `rest`.
pub fn uuid7(moment: i64, rest: u64) -> String {
    let (time, end) = (moment >> 16, moment & 0xffff);
    let (first, second, third) = (rest >> 52, 0x8000 | ((rest >> 38) & 0x3fff), rest & 0x3f_ffff_ffff);
    format!("{time:08x}-{end:04x}-7{first:03x}-{second:04x}-{third:012x}")
}

/// Milliseconds since 1970; formatted as RFC 3339.
#[derive(Clone, Copy)]
pub struct Moment(pub i64);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "the bare program has no account whose clock it could ask")]
    pub fn now() -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
        Moment(since.as_millis() as i64)
    }
}

impl fmt::Display for Moment {
    /// Written out, since a bare program would use the fastest way: the days of the Gregorian calendar in cycles of 400
    /// years, each year starting in March.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(86_400_000) + 719_468, self.0.rem_euclid(86_400_000));
        let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = year + cycle * 400 + later;
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
