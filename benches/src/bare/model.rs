//! The tables of the bare program: clients, invoices, rows and payments. One list of fields determines columns and JSON.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value as Any, json};

use crate::product::Moment;

/// A value of a column.
#[derive(Clone, Debug)]
pub enum Value {
    Text(String),
    Int(i64),
}

impl Value {
    pub fn int(&self) -> i64 {
        if let Value::Int(value) = self { *value } else { 0 }
    }

    pub fn text(&self) -> &str {
        if let Value::Text(value) = self { value } else { "" }
    }
}

/// How a column is stored and shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Text,
    /// Null when empty.
    Link,
    /// JSON, always `{}` here.
    Json,
    Int,
    Bool,
    Cents,
    Moment,
}

/// Where a field is shown: also in lists, only in a single record, under `meta`, or nowhere.
#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    Listed,
    Shown,
    Meta,
    Kept,
}

use Kind::{Bool, Cents, Int, Json, Link, Text};
use Place::{Kept, Listed, Meta, Shown as Alone};

pub struct Table {
    pub sql: &'static LazyLock<Sql>,
    pub name: &'static str,
    pub fields: &'static [(&'static str, Kind, Place)],
    /// The indexes in addition to the primary key and the one on creation.
    indexes: &'static [&'static str],
    /// Whether lists show all fields.
    pub lists_all: bool,
    /// Whether a record has a page and a PDF.
    pub has_links: bool,
}

#[rustfmt::skip]
pub static CLIENT: Table = Table {
    sql: &CLIENT_SQL,
    name: "clients",
    fields: &[
        ("id", Text, Listed), ("type", Text, Listed), ("company_name", Text, Listed), ("firstname", Text, Listed),
        ("lastname", Text, Listed), ("email", Text, Listed), ("phone", Text, Listed), ("address", Text, Listed),
        ("zipcode", Text, Listed), ("city", Text, Listed), ("country", Text, Listed),
        ("company_registration_number", Text, Listed), ("vat_number", Text, Listed), ("website", Text, Listed),
        ("iban", Text, Listed), ("bank_account_name", Text, Listed), ("bic", Text, Listed),
        ("payment_term", Int, Listed), ("quote_expiration_days", Int, Listed),
        ("default_revenue_account", Text, Listed), ("email_invoices", Text, Listed),
        ("email_reminders", Text, Listed), ("mail_salutation", Text, Listed), ("debtor_number", Text, Listed),
        ("custom_fields", Json, Listed), ("created_at", Kind::Moment, Meta), ("updated_at", Kind::Moment, Meta),
        ("version", Int, Meta), ("external_id", Text, Meta), ("owner_id", Link, Meta),
    ],
    indexes: &["company_name", "lastname", "email"],
    lists_all: true,
    has_links: false,
};

#[rustfmt::skip]
pub static INVOICE: Table = Table {
    sql: &INVOICE_SQL,
    name: "invoices",
    fields: &[
        ("id", Text, Listed), ("number", Text, Listed), ("title", Text, Listed), ("invoice_date", Text, Listed),
        ("due_date", Text, Listed), ("subtotal", Cents, Listed), ("vat_rate", Int, Listed),
        ("vat_amount", Cents, Listed), ("total_excl_vat", Cents, Listed), ("total_incl_vat", Cents, Listed),
        ("client_id", Text, Listed), ("payment_status", Text, Listed), ("paid_at", Kind::Moment, Listed),
        ("sent_at", Kind::Moment, Listed), ("project_number", Link, Listed), ("is_credit", Bool, Listed),
        ("external_id", Link, Listed), ("created_at", Kind::Moment, Listed), ("client_company_name", Text, Alone),
        ("client_firstname", Text, Alone), ("client_lastname", Text, Alone), ("custom_fields", Json, Alone),
        ("generation_mode", Text, Meta), ("updated_at", Kind::Moment, Meta), ("version", Int, Meta),
        ("finalized_at", Kind::Moment, Meta), ("revision", Int, Meta), ("language", Text, Meta),
        ("reference", Text, Meta), ("notes", Text, Meta), ("client_email", Text, Meta),
        ("corporate_identity_id", Text, Meta), ("project_id", Link, Meta), ("deal_id", Link, Meta),
        ("credited_invoice_id", Link, Meta), ("invoice_id", Link, Meta), ("quote_id", Link, Meta),
        ("subscription_id", Link, Meta), ("period_start", Link, Meta), ("period_end", Link, Meta),
        ("paid_amount", Cents, Meta), ("credited_amount", Cents, Meta), ("open_amount", Cents, Meta),
        ("accepted_at", Kind::Moment, Meta), ("accepted_by", Text, Meta), ("rejected_at", Kind::Moment, Meta),
        ("viewed_at", Kind::Moment, Meta), ("supply_date", Link, Meta), ("collection_date", Link, Meta),
        ("collection_account", Text, Meta), ("token", Text, Kept),
    ],
    indexes: &["number", "client_id", "payment_status", "invoice_date", "due_date"],
    lists_all: false,
    has_links: true,
};

/// Rows have no id: they are identified by their invoice and their position.
#[rustfmt::skip]
pub static ROW: Table = Table {
    sql: &ROW_SQL,
    name: "invoice_rows",
    fields: &[
        ("invoice_id", Text, Kept), ("place", Int, Kept), ("name", Text, Listed), ("quantity", Int, Listed),
        ("unit", Text, Listed), ("unit_price", Cents, Listed), ("vat_rate", Text, Listed),
        ("total_excl_vat", Cents, Listed), ("total_incl_vat", Cents, Listed), ("description", Text, Listed),
        ("vat_code", Text, Listed), ("product_id", Text, Listed),
    ],
    indexes: &[],
    lists_all: false,
    has_links: false,
};

const PAYMENTS: &str = "CREATE TABLE payments (account_id BIGINT NOT NULL, id TEXT NOT NULL, invoice_id TEXT NOT NULL,
    amount BIGINT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (account_id, id));
CREATE INDEX payments_invoice ON payments (account_id, invoice_id);
CREATE TABLE numbers (account_id BIGINT NOT NULL PRIMARY KEY, last BIGINT NOT NULL);
";

/// All tables, for both databases.
pub fn schema() -> String {
    [&CLIENT, &INVOICE, &ROW].iter().map(|table| table.schema()).collect::<String>() + PAYMENTS
}

impl Table {
    fn schema(&self) -> String {
        let Table { name, .. } = self;
        let columns = self.fields.iter().map(|(field, kind, _)| match kind {
            Text | Link | Json => format!("{field} TEXT NOT NULL"),
            _ => format!("{field} BIGINT NOT NULL"),
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        let key = if self.has("place") { "invoice_id, place" } else { "id" };
        let mut sql =
            format!("CREATE TABLE {name} (account_id BIGINT NOT NULL, {columns}, PRIMARY KEY (account_id, {key}));\n");
        if self.has("created_at") {
            sql += &format!("CREATE INDEX {name}_created ON {name} (account_id, created_at, id);\n");
        }
        for field in self.indexes {
            sql += &format!("CREATE INDEX {name}_{field} ON {name} (account_id, {field}, id);\n");
        }
        sql
    }

    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, ..)| *name == field)
    }

    fn columns(&self) -> String {
        self.fields.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The fields that lists show.
    pub fn listed(&self) -> impl Iterator<Item = &(&'static str, Kind, Place)> {
        self.fields.iter().filter(|(_, _, place)| self.lists_all || *place == Listed)
    }

    /// Inserts `count` records at once; each has the account first.
    fn insert(&self, count: usize) -> String {
        let width = self.fields.len() + 1;
        let values = (0..count).map(|record| {
            let places = (1..=width).map(|place| format!("${}", record * width + place)).collect::<Vec<_>>();
            format!("({})", places.join(", "))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        format!("INSERT INTO {} (account_id, {}) VALUES {values}", self.name, self.columns())
    }

    fn sql(&self) -> Sql {
        let (columns, name) = (self.columns(), self.name);
        let listed = self.listed().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        Sql {
            insert: self.insert(1),
            insert_three: self.insert(3),
            get: format!("SELECT {columns} FROM {name} WHERE account_id = $1 AND id = $2"),
            list: format!(
                "SELECT {listed} FROM {name} WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 25"
            ),
            total: format!("SELECT count(*) FROM {name} WHERE account_id = $1"),
            of_invoice: format!(
                "SELECT {columns} FROM {name} WHERE account_id = $1 AND invoice_id = $2 ORDER BY place"
            ),
        }
    }
}

/// The statements of a table, built once. Their first value is the account.
pub struct Sql {
    pub insert: String,
    pub insert_three: String,
    pub get: String,
    pub list: String,
    pub total: String,
    /// Only for rows.
    pub of_invoice: String,
}

impl Sql {
    /// Returns the statement for this number of records.
    pub fn insert(&self, count: usize) -> &str {
        match count {
            1 => &self.insert,
            3 => &self.insert_three,
            odd => panic!("one record or three rows, not {odd}"),
        }
    }
}

static CLIENT_SQL: LazyLock<Sql> = LazyLock::new(|| CLIENT.sql());
static INVOICE_SQL: LazyLock<Sql> = LazyLock::new(|| INVOICE.sql());
static ROW_SQL: LazyLock<Sql> = LazyLock::new(|| ROW.sql());

/// The next number of an account. Values: account.
pub const NUMBER: &str = "INSERT INTO numbers (account_id, last) VALUES ($1, 1)
    ON CONFLICT (account_id) DO UPDATE SET last = numbers.last + 1 RETURNING last";
/// Values: number, when, account, id.
pub const FINALIZE: &str = "UPDATE invoices SET number = $1, generation_mode = 'final', payment_status = 'open',
    open_amount = total_incl_vat, finalized_at = $2, updated_at = $2, revision = 1, version = version + 1
    WHERE account_id = $3 AND id = $4";
/// Values: account, id, invoice, amount, when.
pub const PAYMENT: &str =
    "INSERT INTO payments (account_id, id, invoice_id, amount, created_at) VALUES ($1, $2, $3, $4, $5)";
/// Values: amount, when, account, invoice.
pub const PAID: &str = "UPDATE invoices SET paid_amount = paid_amount + $1, open_amount = open_amount - $1,
    payment_status = CASE WHEN paid_amount + $1 >= total_incl_vat THEN 'paid' ELSE 'partial' END, paid_at = $2,
    updated_at = $2, version = version + 1 WHERE account_id = $3 AND id = $4 RETURNING paid_amount, total_incl_vat";

/// The number that people see.
pub fn number(last: i64) -> String {
    format!("F2026-{last:04}")
}

/// Values of a table's fields, in their order; in a list, of those that it shows.
#[derive(Clone)]
pub struct Record(pub Vec<Value>);

impl Record {
    fn new(table: &Table, given: impl Fn(&str) -> Option<Value>) -> Record {
        let default = |kind: &Kind| match kind {
            Text | Link => Value::Text(String::new()),
            Json => Value::Text("{}".to_string()),
            _ => Value::Int(0),
        };
        Record(table.fields.iter().map(|(name, kind, _)| given(name).unwrap_or_else(|| default(kind))).collect())
    }

    pub fn client(id: String, now: Moment, sent: &Any) -> Record {
        Record::new(&CLIENT, |name| match name {
            "id" => Some(Value::Text(id.clone())),
            "type" => Some(Value::Text("company".to_string())),
            "created_at" | "updated_at" => Some(Value::Int(now.0)),
            "version" => Some(Value::Int(1)),
            "payment_term" => Some(Value::Int(14)),
            "quote_expiration_days" => Some(Value::Int(30)),
            name => sent[name].as_str().map(|text| Value::Text(text.to_string())),
        })
    }

    pub fn get(&self, table: &Table, field: &str) -> &Value {
        let place = table.fields.iter().position(|(name, ..)| *name == field).expect("a field of the table");
        &self.0[place]
    }

    pub fn set(&mut self, table: &Table, field: &str, value: Value) {
        let place = table.fields.iter().position(|(name, ..)| *name == field).expect("a field of the table");
        self.0[place] = value;
    }
}

/// The body of an invoice.
#[derive(Deserialize)]
pub struct Input {
    title: String,
    client_id: String,
    generation_mode: String,
    rows: Vec<InputRow>,
}

#[derive(Deserialize)]
struct InputRow {
    name: String,
    quantity: i64,
    unit_price: f64,
    vat_rate: String,
}

impl Input {
    pub fn is_final(&self) -> bool {
        self.generation_mode == "final"
    }
}

/// An invoice and its rows.
pub struct Document {
    pub record: Record,
    pub rows: Vec<Record>,
}

impl Document {
    pub fn invoice(id: String, now: Moment, sent: &Input) -> Document {
        let cents = |amount: f64| (amount * 100.0).round() as i64;
        let (mut net, mut rows) = (0, Vec::new());
        for (place, row) in sent.rows.iter().enumerate() {
            let price = cents(row.unit_price);
            let total = price * row.quantity;
            net += total;
            rows.push(Record::new(&ROW, |name| match name {
                "invoice_id" => Some(Value::Text(id.clone())),
                "place" => Some(Value::Int(place as i64)),
                "name" => Some(Value::Text(row.name.clone())),
                "quantity" => Some(Value::Int(row.quantity)),
                "unit_price" => Some(Value::Int(price)),
                "vat_rate" => Some(Value::Text(row.vat_rate.clone())),
                "total_excl_vat" => Some(Value::Int(total)),
                "total_incl_vat" => Some(Value::Int(total + (total * 21 + 50) / 100)),
                _ => None,
            }));
        }
        let vat = (net * 21 + 50) / 100;
        let (is_final, day) = (sent.is_final(), now.to_string()[..10].to_string());
        let record = Record::new(&INVOICE, |name| match name {
            "id" => Some(Value::Text(id.clone())),
            "number" => Some(Value::Text(format!("DRAFT-{}", &id[24..]))),
            "title" => Some(Value::Text(sent.title.clone())),
            "client_id" => Some(Value::Text(sent.client_id.clone())),
            "invoice_date" | "due_date" => Some(Value::Text(day.clone())),
            "subtotal" | "total_excl_vat" => Some(Value::Int(net)),
            "vat_rate" => Some(Value::Int(21)),
            "vat_amount" => Some(Value::Int(vat)),
            "total_incl_vat" => Some(Value::Int(net + vat)),
            "created_at" | "updated_at" => Some(Value::Int(now.0)),
            "version" => Some(Value::Int(1)),
            "generation_mode" => Some(Value::Text(sent.generation_mode.clone())),
            "payment_status" => Some(Value::Text(if is_final { "open" } else { "draft" }.to_string())),
            "open_amount" if is_final => Some(Value::Int(net + vat)),
            "finalized_at" if is_final => Some(Value::Int(now.0)),
            "revision" if is_final => Some(Value::Int(1)),
            "language" => Some(Value::Text("nl".to_string())),
            "token" => Some(Value::Text(id.replace('-', ""))),
            _ => None,
        });
        Document { record, rows }
    }

    /// Copies the fields of the client that an invoice stores.
    pub fn address_to(&mut self, client: &Record) {
        for (own, field) in [
            ("client_company_name", "company_name"),
            ("client_firstname", "firstname"),
            ("client_lastname", "lastname"),
            ("client_email", "email"),
        ] {
            self.record.set(&INVOICE, own, client.get(&CLIENT, field).clone());
        }
    }
}

#[derive(Clone)]
pub struct Payment {
    pub id: String,
    pub invoice: String,
    pub amount: i64,
    pub at: Moment,
}

impl Payment {
    pub fn new(id: String, at: Moment, invoice: String, sent: &Any) -> Payment {
        let amount = (sent["amount"].as_f64().unwrap_or_default() * 100.0).round() as i64;
        Payment { id, invoice, amount, at }
    }

    pub fn shown(&self) -> Any {
        let Payment { id, invoice, amount, at } = self;
        let at = at.to_string();
        json!({
            "id": id, "amount": *amount as f64 / 100.0, "date": &at[..10], "status": "paid", "type": "manual",
            "method": "banktransfer", "external_id": "", "provider": "",
            "meta": {"created_at": at, "updated_at": at, "version": 1, "payment_data": {}, "feedback_data": {},
                "invoice_id": invoice}
        })
    }

    /// Returns the invoice as in the response.
    pub fn of(id: &str, paid: i64, total: i64) -> Any {
        json!({"id": id, "paid_amount": paid as f64 / 100.0, "price": total as f64 / 100.0})
    }
}
