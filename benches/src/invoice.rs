//! Invoices for lists, filters and searches.

use rusqlite::{Connection, params};

use crate::client;
use crate::product::{self, Moment};
use crate::rows::{created, id, scatter};

/// Number of invoices per client, whatever the size of the table: more than a page, so that they are counted too.
pub const OF_CLIENT: i64 = 40;
/// Number of invoices per day.
pub const OF_DAY: i64 = 100;
/// A word in the title of `WITH_WORD` invoices; its trigrams are in many other titles.
const WORD: &str = "dakgootinspectie";
/// Number of invoices with the word.
const WITH_WORD: i64 = 20;

/// The name of the counter of invoices.
const KIND: &str = "invoice";
const DAY: i64 = 24 * 60 * 60 * 1000;
/// 1998-01-01: a million invoices take 27 years.
const FIRST_DAY: i64 = 883_612_800_000;

const INSERT: &str = "INSERT INTO invoices (account_id, id, created_at, updated_at, version, number, title, \
    invoice_date, due_date, subtotal, vat_rate, vat_amount, total_excl_vat, total_incl_vat, client_id, payment_status, \
    paid_at, sent_at, project_number, is_credit, external_id, rows, client_company_name, client_firstname, \
    client_lastname, custom_fields, generation_mode, finalized_at, revision, language, reference, notes, client_email, \
    corporate_identity_id, project_id, deal_id, credited_invoice_id, invoice_id, quote_id, paid_amount, \
    credited_amount, accepted_at, accepted_by, rejected_at, viewed_at, token, client, sender) \
    VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7, ?8, 2100, ?9, ?8, ?10, ?11, 'paid', ?3, ?3, '', 0, '', ?12, ?13, ?14, \
    ?15, '{}', 'final', ?3, 1, 'nl', '', '', ?16, '', '', '', '', '', '', ?10, 0, 0, '', 0, 0, ?17, '{}', '{}')";
const SEARCH: &str = "INSERT INTO search_texts (account_id, kind, record_id, folded) VALUES (?1, ?2, ?3, ?4)";
/// The indexes are created after the rows, which takes a tenth of the time.
const INDEXES: &str =
    "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'invoices' AND type = 'index' AND sql <> ''";

const WORK: &str = "Onderhoud Reparatie Inspectie Levering Montage Advies Ontwerp Schilderwerk Keuring Vervanging \
    Installatie Schoonmaak Training Verhuur Transport Afvoer Aanleg Controle Voorschot Eindafrekening";
const THING: &str = "dakkapel goot dakraam regenpijp boiler keuken badkamer vloer tuin schuur website netwerk kassa \
    koelcel lift trap gevel kozijn zonnepaneel dakgoot garagedeur alarm verlichting parket bestrating schoorsteen";
const MONTH: [&str; 12] = [
    "januari",
    "februari",
    "maart",
    "april",
    "mei",
    "juni",
    "juli",
    "augustus",
    "september",
    "oktober",
    "november",
    "december",
];

/// Inserts invoices into Kantoor's tables, all pending for its search index.
pub struct Seed {
    clients: client::Seed,
    work: Vec<&'static str>,
    thing: Vec<&'static str>,
    /// The statements that recreate the indexes.
    indexes: Vec<String>,
}

impl Seed {
    /// Drops the indexes until `finish`.
    pub fn start(conn: &Connection) -> Seed {
        let mut statement = conn.prepare(INDEXES).unwrap();
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let (names, indexes): (Vec<String>, Vec<String>) = found.map(Result::unwrap).unzip();
        for name in names {
            conn.execute(&format!("DROP INDEX {name}"), []).unwrap();
        }
        let [work, thing] = [WORK, THING].map(|words| words.split_whitespace().collect());
        Seed { clients: client::Seed::new(), work, thing, indexes }
    }

    /// Inserts invoice `n` of `rows`.
    pub fn insert(&self, conn: &Connection, account: i64, n: i64, rows: i64) {
        let chance = scatter(n);
        let (invoice, moment, to) = (id(n), created(n), client_of(n, rows));
        let client = self.clients.client(to, rows);
        let (number, title, date) = (number(n), self.title(n, rows), day_of(n));
        let due = day(FIRST_DAY + (n / OF_DAY + 30) * DAY);
        let net = (chance % 500_000) as i64;
        let tax = net * 21 / 100;
        let sold = format!(
            r#"[{{"name":"{title}","description":"","quantity":1000000,"unit":"","unit_price":{},"vat_rate":2100,"vat_code":"","category":"S","product_id":"","net":{net},"gross":{},"credited":false}}]"#,
            net * 10_000,
            net + tax
        );
        let token = format!("{:016x}{:016x}", chance, scatter(!n));
        let folded = [number.as_str(), &title, &client.company, &client.first, &client.last, &client.email];
        let folded: Vec<&str> = folded.into_iter().filter(|text| !text.is_empty()).collect();
        let folded = folded.join("\n").to_lowercase();
        let (to, gross) = (id(to), net + tax);
        let values = params![
            account,
            invoice,
            moment,
            number,
            title,
            date,
            due,
            net,
            tax,
            gross,
            to,
            sold,
            client.company,
            client.first,
            client.last,
            client.email,
            token
        ];
        conn.prepare_cached(INSERT).unwrap().execute(values).unwrap();
        conn.prepare_cached(SEARCH).unwrap().execute(params![account, KIND, invoice, folded]).unwrap();
    }

    /// Recreates the indexes, and sets the counts.
    pub fn finish(self, conn: &Connection, account: i64, rows: i64) {
        for index in &self.indexes {
            conn.execute(index, []).unwrap();
        }
        product::count(conn, account, KIND, rows).unwrap();
    }

    fn title(&self, n: i64, rows: i64) -> String {
        let chance = scatter(-n) as usize;
        let (work, thing) = (self.work[chance % self.work.len()], self.thing[chance / 64 % self.thing.len()]);
        match n % (rows / WITH_WORD) {
            3 => format!("{work} en {WORD} {}", MONTH[chance / 4096 % 12]),
            _ => format!("{work} {thing} {}", MONTH[chance / 4096 % 12]),
        }
    }
}

/// Returns the search words with the number of invoices that each finds: the number of invoice `n`, a client and a word
/// in the title.
pub fn searches(n: i64) -> [(String, i64); 3] {
    [(number(n), 1), (client::SEARCHES[0].to_string(), OF_CLIENT), (WORD.to_string(), WITH_WORD)]
}

/// Returns the client of invoice `n`; each of the first clients has the same number of invoices, years apart.
fn client_of(n: i64, rows: i64) -> i64 {
    n % clients(rows)
}

/// Returns the number of clients with invoices.
pub fn clients(rows: i64) -> i64 {
    rows / OF_CLIENT
}

/// Returns the number of invoice `n`, which no other number contains.
fn number(n: i64) -> String {
    format!("B{n:07}")
}

/// Returns the date of invoice `n`.
pub fn day_of(n: i64) -> String {
    day(FIRST_DAY + n / OF_DAY * DAY)
}

fn day(moment: i64) -> String {
    Moment(moment).to_string()[..10].to_string()
}
