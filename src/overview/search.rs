//! `GET /v1/search`: records of every kind that contain some words.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::record::Shape;
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Method, Part, Resource, Returns};
use engine::search;
use serde_json::{Value, json};
use store::Tx;

static SHAPE: Shape = Shape::new("search_result", "search", &["A record that contains the words of a search."]);

/// Maximum number of results of each kind.
const MOST: i64 = 5;
/// Longer than any name.
const MAX_LENGTH: usize = 255;

const QUERY: &[Part] = &[Part(
    "q",
    "string 255",
    "The words to search for, ignoring case and accents: 255 characters at most. Fewer than three are compared with the latest 500 records of each type.",
)];

const MEMBERS: &[Part] = &[
    Part("type", "string", "The type of the record, such as `client`."),
    Part("id", "string", "The id of the record."),
    Part("name", "string", "Its name, title or number."),
    Part("detail", "string", "A second line that distinguishes it from others; may be empty."),
    Part("path", "string", "The path of the record in the API."),
];

/// The route of the search.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Search", "relations", &[])
        .route(Method::Get, "", "Search all records", find)
        .returns(Returns::Found(MEMBERS, QUERY))
        // Each kind of record requires its own scope.
        .with(|route| route.scope = String::new())
        .extension()
}

/// How the results of a kind are shown.
pub struct Shown {
    /// The name of the record.
    pub kind: &'static str,
    /// The columns that are read.
    columns: &'static [&'static str],
    /// Returns the name and the second line, from these columns.
    lines: fn(&[String]) -> (String, String),
}

const CONTACT: &[&str] = &["company_name", "firstname", "lastname", "city", "email"];
const DOCUMENT: &[&str] = &["number", "title", "client_company_name", "client_firstname", "client_lastname"];

/// The kinds that are searched, in the order of the response.
pub const KINDS: &[Shown] = &[
    Shown { kind: "client", columns: CONTACT, lines: contact },
    Shown { kind: "supplier", columns: CONTACT, lines: contact },
    Shown { kind: "invoice", columns: DOCUMENT, lines: document },
    Shown { kind: "quote", columns: DOCUMENT, lines: document },
    Shown { kind: "workorder", columns: DOCUMENT, lines: document },
    Shown { kind: "subscription", columns: &["number", "title", "client_names"], lines: subscription },
    Shown { kind: "deal", columns: &["title", "status"], lines: plain },
    Shown { kind: "ticket", columns: &["subject", "number", "client_name"], lines: plain },
    Shown { kind: "project", columns: &["name", "number"], lines: plain },
    Shown { kind: "product", columns: &["name", "code"], lines: plain },
    Shown { kind: "flow", columns: &["name", "trigger_key"], lines: plain },
    Shown { kind: "user", columns: &["name", "email"], lines: plain },
];

/// The first column is the name.
fn plain(values: &[String]) -> (String, String) {
    let (name, rest) = values.split_first().map_or((String::new(), values), |(name, rest)| (name.clone(), rest));
    (name, together(rest.iter().map(String::as_str), " · "))
}

fn contact(values: &[String]) -> (String, String) {
    let [company, first, last, city, email] = values else { return plain(values) };
    let person = together([first.as_str(), last], " ");
    match (company.is_empty(), person.is_empty()) {
        (false, _) => (company.clone(), together([person.as_str(), city], " · ")),
        (true, false) => (person, together([city.as_str(), email], " · ")),
        (true, true) => (email.clone(), city.clone()),
    }
}

fn document(values: &[String]) -> (String, String) {
    let [number, title, company, first, last] = values else { return plain(values) };
    let person = together([first.as_str(), last], " ");
    let client = if company.is_empty() { person } else { company.clone() };
    match number.starts_with("DRAFT-") {
        true => (title.clone(), client),
        false => (number.clone(), together([title.as_str(), &client], " · ")),
    }
}

fn subscription(values: &[String]) -> (String, String) {
    let [number, title, names] = values else { return plain(values) };
    (number.clone(), together([title.as_str(), names.lines().next().unwrap_or_default()], " · "))
}

/// Joins the values that are not empty.
fn together<'v>(values: impl IntoIterator<Item = &'v str>, separator: &str) -> String {
    values.into_iter().filter(|value| !value.is_empty()).collect::<Vec<_>>().join(separator)
}

/// `GET /v1/search`
fn find(call: Call) -> Result<Work> {
    let words = call.query.get("q").unwrap_or_default().trim().to_string();
    if words.chars().count() > MAX_LENGTH {
        let message = format!("may have at most {MAX_LENGTH} characters");
        return Err(Error::field("q", violation(FieldCode::TooLong, message)));
    }
    Ok(Box::new(move |tx, ctx| {
        let found = if words.is_empty() { Vec::new() } else { results(tx, ctx, &words)? };
        let mut answer = Answer::json(&Value::from(found.clone()));
        answer.meta.push(format!("\"total\":{}", found.len()));
        Ok(answer)
    }))
}

fn results(tx: &mut Tx, ctx: &Ctx, words: &str) -> Result<Vec<Value>> {
    let readable = KINDS.iter().filter_map(|shown| {
        let resource = registry().named(shown.kind)?;
        ctx.may(&format!("{}.read", resource.area)).then_some((shown, resource))
    });
    let readable: Vec<(&Shown, &Resource)> = readable.collect();
    let kinds: Vec<&'static str> = readable.iter().map(|(shown, _)| shown.kind).collect();
    let found = search::among_kinds(tx, ctx, &kinds, words, MOST)?;
    let mut results = Vec::new();
    for (shown, resource) in readable {
        let of_kind = found.iter().filter(|(kind, _)| kind == shown.kind);
        let ids: Vec<&str> = of_kind.map(|(_, id)| id.as_str()).collect();
        results.extend(described(tx, ctx, shown, resource, &ids)?);
    }
    Ok(results)
}

/// Returns the results with these ids, in this order.
fn described(tx: &mut Tx, ctx: &Ctx, shown: &Shown, resource: &Resource, ids: &[&str]) -> Result<Vec<Value>> {
    let Some(last) = ids.last() else { return Ok(Vec::new()) };
    // One by one: for `IN`, SQLite would scan a table that was small when it last looked. Padded with the last id, so that
    // there is one statement for each kind.
    let (columns, table) = (shown.columns.join(", "), resource.shape.table);
    let one = |place: i64| format!("SELECT id, {columns} FROM {table} WHERE account_id = $1 AND id = ${}", place + 2);
    let sql = (0..MOST).map(one).collect::<Vec<_>>().join(" UNION ALL ");
    let padded = ids.iter().copied().chain(std::iter::repeat(*last)).take(usize::try_from(MOST).unwrap_or_default());
    let mut values: Vec<store::Value> = vec![ctx.account.into()];
    values.extend(padded.map(store::Value::from));
    let mut rows = tx.all(&sql, &values, |row| {
        let columns = (1..=shown.columns.len()).map(|column| row.text(column).map(str::to_string));
        let (name, detail) = (shown.lines)(&columns.collect::<store::Result<Vec<_>>>()?);
        let id = row.text(0)?;
        let path = format!("{}/{id}", resource.path);
        Ok::<_, Error>(json!({"type": shown.kind, "id": id, "name": name, "detail": detail, "path": path}))
    })?;
    rows.sort_by_key(|row| ids.iter().position(|id| row["id"] == *id));
    rows.dedup_by(|one, other| one["id"] == other["id"]);
    Ok(rows)
}
