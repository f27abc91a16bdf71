//! Small jobs: some are invoiced the same day, others are planned as a workorder first.

use serde_json::{Value, json};

use super::documents::{extra, finished, invoice, paid, paid_online, product, reminded, send};
use super::{DemoStep, act, change, make, make_of};
use Paid::{Bank, Cash, No, Online, Reminded};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = Vec::new();
    for (number, job) in (1..).zip(JOBS) {
        steps.extend(done(&format!("klus {number}"), job));
    }
    for (number, order) in (1..).zip(ORDERS) {
        steps.extend(planned(&format!("bon {number}"), order));
    }
    steps.extend(put_right());
    steps.extend(drafts());
    steps
}

/// How an invoice was paid, and how many working days ago.
#[derive(Clone, Copy)]
enum Paid {
    Bank(i64),
    Online(i64),
    /// In cash.
    Cash(i64),
    /// Not paid yet.
    No,
    /// Not paid after these reminders.
    Reminded(&'static [i64]),
}

/// Material used, and its price.
type Part = (&'static str, &'static str);
const NOTHING: Part = ("", "");

/// Client, working days ago, description, hours, material, and payment.
type Job = (&'static str, i64, &'static str, &'static str, Part, Paid);

#[rustfmt::skip]
const JOBS: &[Job] = &[
    ("smit", 122, "Onderhoud cv-ketel", "1.5", ("Dichtingsset", "18.40"), Online(119)),
    ("ster", 120, "Lekkende afvoer in de bakkerij", "2", ("Bochten en manchetten", "26.75"), Bank(112)),
    ("linde", 119, "Radiator in de wachtkamer", "1", NOTHING, Bank(101)),
    ("havenzicht", 114, "Storing ketel woning 31", "1.25", ("Ontstekingspen", "41.20"), Bank(95)),
    ("havenzicht", 111, "Expansievat woning 7", "1.5", ("Expansievat 18 liter", "64.90"), Bank(90)),
    ("anker", 107, "Boiler derde verdieping ontkalkt", "3", ("Magnesiumanode", "38.50"), Bank(86)),
    ("ster", 105, "Onderhoud combiketel bovenwoning", "1.5", NOTHING, Bank(97)),
    ("anker", 102, "Mengkranen in zes kamers", "4.5", ("Zes thermostatische mengkranen", "714"), Bank(81)),
    ("havenzicht", 98, "Storing ketel woning 19", "1", ("Waterdruksensor", "52.30"), Bank(77)),
    ("smit", 94, "Buitenkraan vorstvrij gemaakt", "1.25", ("Vorstvrije gevelkraan", "89"), Cash(94)),
    ("draak", 93, "Spoelkleppen in de toiletten", "2.5", ("Vier spoelkleppen", "92"), Bank(70)),
    ("linde", 87, "Kraan in de behandelkamer", "1", ("Elleboogkraan", "168"), Bank(66)),
    ("anker", 83, "Lekkage in de linnenkamer", "2.75", ("Koppelingen en buis", "48.15"), Bank(63)),
    ("havenzicht", 79, "Rookgasmeting in zes woningen", "5", NOTHING, Bank(52)),
    ("jansen", 77, "Thermostaatkraan vervangen", "0.75", ("Thermostaatkraan", "34.95"), Online(75)),
    ("ster", 73, "Vetafscheider gereinigd", "2.5", ("Afvoer van vet", "145"), Bank(64)),
    ("draak", 68, "Cv bijgevuld na lekkage", "1.5", NOTHING, Bank(46)),
    ("anker", 64, "Circulatiepomp warm water", "2.25", ("Circulatiepomp", "386"), Bank(43)),
    ("havenzicht", 57, "Storing ketel woning 3", "1.25", ("Gasklep", "118.60"), Bank(31)),
    ("smit", 54, "Mechanische ventilatie gereinigd", "2", ("Filterset", "32.50"), Online(50)),
    ("ster", 51, "Warmwaterleiding geïsoleerd", "3", ("Leidingisolatie", "84.20"), Bank(42)),
    ("linde", 44, "Jaarlijks onderhoud twee ketels", "3.5", ("Twee onderhoudssets", "74"), Bank(25)),
    ("smit", 42, "Waterdruk valt weg", "1.5", ("Vulkraan", "27.80"), Online(39)),
    ("anker", 39, "Douchemengkraan kamer 12", "1", ("Douchemengkraan", "142"), Bank(19)),
    ("havenzicht", 36, "Storing ketel woning 44", "1", ("Ventilator", "176.40"), Reminded(&[9])),
    ("draak", 29, "Boiler in de keuken vervangen", "3", ("Keukenboiler 15 liter", "219"), Reminded(&[3])),
    ("jansen", 25, "Onderhoud cv-ketel", "1.25", NOTHING, Online(24)),
    ("ster", 21, "Afzuigkap aangesloten", "2", ("Flexibele aansluiting", "58.20"), Bank(12)),
    ("anker", 17, "Radiatoren in de ontbijtzaal gespoeld", "5.5", NOTHING, No),
    ("linde", 12, "Radiatorkraan spreekkamer 2", "0.75", ("Radiatorkraan", "31.50"), No),
    ("havenzicht", 8, "Storing ketel woning 26", "1.5", ("Printplaat", "264"), No),
    ("smit", 6, "Lekkende radiator op zolder", "1", ("Radiatorkraan", "31.50"), No),
    ("ster", 3, "Kraan boven de spoelbak", "1.25", ("Voorspoeldouche", "126"), No),
];

fn body(client: &str, title: &str, hours: &str, (part, price): Part) -> Value {
    let mut rows = vec![product("voorrijden", "1"), product("arbeid", hours)];
    if !part.is_empty() {
        rows.push(extra(part, "1", "post", price));
    }
    json!({"title": title, "client_id": format!("@{client}"), "rows": rows})
}

/// A job that is done and invoiced immediately.
fn done(name: &str, (client, ago, title, hours, part, how): &Job) -> Vec<DemoStep> {
    let mut steps = invoice(*ago, name, body(client, title, hours, *part));
    steps.extend(settled(name, *how));
    steps
}

fn settled(invoice: &str, how: Paid) -> Vec<DemoStep> {
    match how {
        Bank(ago) => vec![paid(ago, invoice)],
        Online(ago) => paid_online(ago, invoice),
        Cash(ago) => vec![change(ago, &format!("/v1/invoices/@{invoice}"), json!({"payment_status": "paid"}))],
        No => Vec::new(),
        Reminded(days) => (1..).zip(days).map(|(time, ago)| reminded(*ago, invoice, time)).collect(),
    }
}

/// The state of a workorder, and how many working days ago it was reached.
enum Fate {
    Draft,
    /// Planned a number of working days from today.
    Planned(i64),
    /// Done under a contract, without an invoice.
    Done(i64),
    /// Done and invoiced.
    Invoiced(i64, i64, Paid),
    /// Done; the invoice is still a draft.
    ToInvoice(i64, i64),
}

/// Client, working days ago, description, hours, material, and state.
type Order = (&'static str, i64, &'static str, &'static str, Part, Fate);

#[rustfmt::skip]
const ORDERS: &[Order] = &[
    ("linde", 92, "Oude ketels verwijderen en nieuwe plaatsen", "43", NOTHING, Fate::Done(72)),
    ("anker", 76, "Onderhoud van twaalf kamerboilers", "9", ("Twaalf anodes", "462"), Fate::Invoiced(74, 73, Bank(51))),
    ("havenzicht", 69, "Ketelcontrole trappenhuis A", "6", NOTHING, Fate::Invoiced(67, 65, Bank(44))),
    ("ster", 55, "Geen warm water: driewegklep", "2", ("Driewegklep", "87.30"), Fate::Done(54)),
    ("draak", 52, "Radiatoren in lokaal 2 en 5", "4", ("Twee radiatoren", "418"), Fate::Invoiced(47, 46, Bank(21))),
    ("jansen", 33, "Wandverwarming aansluiten", "3.5", ("Leidingset", "96.40"), Fate::Invoiced(31, 30, Online(27))),
    ("anker", 18, "Zes kamerboilers ontkalken", "4.5", NOTHING, Fate::Invoiced(15, 14, No)),
    ("morgentau", 11, "Survey of the greenhouse", "16", NOTHING, Fate::Done(8)),
    ("havenzicht", 7, "Storing ketels woning 8 en 9", "2.5", ("Twee ontstekingspennen", "82.40"), Fate::ToInvoice(5, 2)),
    ("ster", 4, "Leidingwerk warmtepomp afpersen", "3", NOTHING, Fate::Done(2)),
    ("anker", 2, "Inlaatcombinatie derde verdieping", "1.5", ("Inlaatcombinatie", "48.90"), Fate::Planned(1)),
    ("havenzicht", 1, "Storing F28 in woning 12", "1", NOTHING, Fate::Planned(1)),
    ("smit", 1, "Jaarlijkse onderhoudsbeurt", "1.5", ("Onderhoudsset", "37"), Fate::Draft),
];

fn planned(name: &str, (client, ago, title, hours, part, fate): &Order) -> Vec<DemoStep> {
    let mut body = body(client, title, hours, *part);
    body["generate"] = json!(!matches!(fate, Fate::Draft));
    if let Fate::Planned(day) = fate {
        body["due_date"] = json!(format!("@+{day}"));
    }
    let mut steps = vec![make(*ago, name, "/v1/workorders", body)];
    let own = format!("workorders/@{name}");
    let complete = |day: i64| [act(day, &format!("/v1/{own}/complete")), send(day, &own, "workorder")];
    let invoice = format!("factuur {name}");
    match fate {
        Fate::Draft | Fate::Planned(_) => {}
        Fate::Done(day) => steps.extend(complete(*day)),
        Fate::Invoiced(day, later, how) => {
            steps.extend(complete(*day));
            steps.push(make_of(*later, &invoice, &format!("/v1/{own}/invoice")));
            steps.extend(finished(*later, &invoice));
            steps.extend(settled(&invoice, *how));
        }
        Fate::ToInvoice(day, later) => {
            steps.extend(complete(*day));
            steps.push(make_of(*later, &invoice, &format!("/v1/{own}/invoice")));
        }
    }
    steps
}

/// An invoice that was sent to the wrong client, and one that was partly refunded.
fn put_right() -> Vec<DemoStep> {
    let job = |client| body(client, "Storing ketel woning 22", "1.25", ("Ontstekingspen", "41.20"));
    let mut steps = invoice(89, "verkeerd", job("anker"));
    steps.push(make_of(88, "credit verkeerd", "/v1/invoices/@verkeerd/credit"));
    steps.push(send(88, "invoices/@credit verkeerd", "credit"));
    steps.extend(invoice(88, "goed", job("havenzicht")));
    steps.push(paid(69, "goed"));

    let rows = [product("thermostaat", "1"), product("thermostaat", "1"), product("arbeid", "1.5")];
    let two = json!({"title": "Twee slimme thermostaten", "client_id": "@linde", "rows": rows});
    steps.extend(invoice(60, "thermostaten", two));
    steps.push(paid(43, "thermostaten"));
    let one = json!({"credit_all": false, "row_indexes": [1]});
    steps.push(make(37, "credit thermostaat", "/v1/invoices/@thermostaten/credit", one));
    steps.push(send(37, "invoices/@credit thermostaat", "credit"));
    steps.push(paid(35, "credit thermostaat"));
    steps
}

/// Unfinished invoices.
fn drafts() -> Vec<DemoStep> {
    let job = body("anker", "Stookseizoen: drie bezoeken", "6.5", ("Klein materiaal", "73.15"));
    let insulation = json!({
        "title": "Isolatie van de kruipruimte", "client_id": "@jansen",
        "rows": [product("isolatie", "11"), json!({"name": "Isolatiefolie", "quantity": "46", "unit": "m²",
            "unit_price": "6.80", "vat_code": "NL21"})],
    });
    vec![make(4, "", "/v1/invoices", job), make(2, "", "/v1/invoices", insulation)]
}
