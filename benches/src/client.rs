//! Clients for searches: names of companies and persons with as much in common as real ones.

use rusqlite::{Connection, params};

use crate::product::{self, Moment};
use crate::rows::{created, id, scatter};

/// The search terms: a last name, a company name and a part of an e-mail address. Each is in `MATCHES` clients whatever
/// the size of the table, but its trigrams are in many others.
pub const SEARCHES: [&str; 3] = ["brouwershaven", "kwekerij de robijn", "s.waterink@"];
/// Number of clients that each search finds.
pub const MATCHES: i64 = 20;

/// The name of the counter of clients.
const KIND: &str = "client";

const INSERT: &str = "INSERT INTO clients (account_id, id, created_at, updated_at, version, type, company_name, \
    firstname, lastname, email, phone, address, zipcode, city, country, company_registration_number, vat_number, \
    website, iban, bank_account_name, bic, payment_term, quote_expiration_days, default_revenue_account, \
    email_invoices, email_reminders, mail_salutation, debtor_number, external_id) \
    VALUES (?1, ?2, ?3, ?3, 1, ?4, ?5, ?6, ?7, ?8, '', ?9, '1234 AB', ?10, 'NL', '', '', '', '', '', '', 30, 30, '', \
    '', '', '', ?11, '')";
const SEARCH: &str = "INSERT INTO search_texts (account_id, kind, record_id, folded) VALUES (?1, ?2, ?3, ?4)";

const FIRST: &str = "Anna Jan Pieter Maria Sophie Daan Emma Lucas Julia Sem Tess Levi Mila Finn Sara Noah Eva Milan \
    Lisa Bram Fleur Thijs Lotte Ruben Anouk Jesse Femke Tim Sanne Luuk Iris Koen Marieke Joost Hanneke Willem Ingrid \
    Hendrik Margriet Cornelis Johanna Gerrit Wilma Arjen Mohammed Fatima Yusuf Aylin Chantal Patrick Ronald Esther \
    Vincent Nicole Sebastiaan Charlotte Maximiliaan Guus Pim Roos";
const BEFORE: [&str; 8] = ["", "", "", "van der ", "van den ", "de ", "van ", "ter "];
const ROOT: &str = "Berg Dijk Molen Bos Veld Meer Brouwer Bakker Visser Smit Mulder Jansen Vries Hoek Kamp Wal Linden \
    Haar Horst Beek Poel Graaf Kuiper Timmer Schuur Schaap Wolf Vogel Haan Zwaan Water Zand Steen Goud Zilver Konings \
    Prins Hertog Ridder Schout Boer Heuvel Laan Weg Brug Poort Toren Kerk Klooster Markt Dorp Stad Haven Eiland Duin \
    Heide Grond Akker Tuin Eik Beuk";
const AFTER: [&str; 20] = [
    "", "", "", "", "s", "man", "ma", "stra", "sen", "huis", "hof", "mans", "ink", "sma", "aar", "veld", "haven",
    "dijk", "horst", "kamp",
];
const TRADE: &str = "Bakkerij Slagerij Garage Schildersbedrijf Bouwbedrijf Installatiebedrijf Administratiekantoor \
    Adviesbureau Webdesign Fotografie Kapsalon Restaurant Cafe Bloemisterij Hoveniersbedrijf Transport Logistiek \
    Drukkerij Uitgeverij Makelaardij Notariskantoor Advocaten Tandartspraktijk Fysiotherapie Apotheek Kinderopvang \
    Rijschool Reisbureau Hotel Camping Boekhandel Fietsenwinkel Juwelier Optiek Meubelmakerij Timmerbedrijf Loodgieter \
    Elektrotechniek Metaalbewerking Machinefabriek Schoonmaakbedrijf Beveiliging Uitzendbureau Software Consultancy \
    Marketing Communicatie Architecten Ingenieursbureau Veehouderij Kwekerij Wijnhandel Groothandel Catering \
    Evenementen Muziekschool Sportschool Yogastudio Dierenkliniek";
const THING: &str = "Ster Molen Linde Eik Zwaan Leeuw Adelaar Roos Tulp Zon Maan Regenboog Horizon Haven Brug Toren \
    Anker Kompas Vuurtoren Meeuw Reiger Ooievaar Vos Hert Egel Bever Kroon Schakel Sleutel Spiegel Lantaarn Klok Wagen \
    Ploeg Korenaar Druif Appel Peer Kers Hoeve Schans Wal Dam Sluis Vaart Plas Heuvel Vallei Bron Beek Rivier Oase \
    Parel Diamant Robijn Saffier";
const PLACE: &str = "Amsterdam Rotterdam Utrecht Groningen Eindhoven Tilburg Almere Breda Nijmegen Apeldoorn Haarlem \
    Arnhem Enschede Amersfoort Zaanstad Hoofddorp Zwolle Leiden Dordrecht Zoetermeer Maastricht Delft Alkmaar \
    Leeuwarden Venlo Deventer Helmond Hilversum Roosendaal Oss Gouda Assen Lelystad Hoorn Kampen Veendam Antwerpen \
    Gent Brugge Leuven Mechelen Hasselt";
const FORM: [&str; 8] = ["", "", " B.V.", " B.V.", " V.O.F.", " N.V.", " Holding B.V.", " & Zonen"];
const MAIL: [&str; 6] = ["kpn", "ziggo", "gmail", "hotmail", "outlook", "xs4all"];

/// Inserts clients into Kantoor's tables, all pending for its search index.
pub struct Seed {
    first: Vec<&'static str>,
    root: Vec<&'static str>,
    trade: Vec<&'static str>,
    thing: Vec<&'static str>,
    place: Vec<&'static str>,
}

#[derive(Default)]
pub struct Client {
    pub company: String,
    pub first: String,
    pub last: String,
    pub email: String,
    place: String,
    debtor: String,
}

impl Seed {
    pub fn new() -> Seed {
        let [first, root, trade, thing, place] =
            [FIRST, ROOT, TRADE, THING, PLACE].map(|words| words.split_whitespace().collect());
        Seed { first, root, trade, thing, place }
    }

    /// Inserts client `n` of `rows`.
    pub fn insert(&self, conn: &Connection, account: i64, n: i64, rows: i64) {
        let (client, id, moment) = (self.client(n, rows), id(n), Moment(created(n)));
        let kind = if client.company.is_empty() { "private" } else { "company" };
        let Client { company, first, last, email, place, debtor } = &client;
        let address = format!("Dorpsstraat {}", n % 400 + 1);
        let values = params![account, id, moment.0, kind, company, first, last, email, address, place, debtor];
        conn.prepare_cached(INSERT).unwrap().execute(values).unwrap();
        conn.prepare_cached(SEARCH).unwrap().execute(params![account, KIND, id, client.folded()]).unwrap();
    }

    pub fn count(conn: &Connection, account: i64, rows: i64) {
        product::count(conn, account, KIND, rows).unwrap();
    }

    /// Returns client `n` of `rows`.
    pub fn client(&self, n: i64, rows: i64) -> Client {
        let wanted = usize::try_from(n % (rows / MATCHES)).unwrap();
        let mut client = self.any(n);
        match wanted {
            0 => client.last = "Brouwershaven".to_string(),
            1 => client.company = "Kwekerij De Robijn".to_string(),
            2 => client.email = "s.waterink@ziggo.example".to_string(),
            _ => {}
        }
        let folded = client.folded();
        let by_chance = |(search, words): (usize, &&str)| search != wanted && folded.contains(*words);
        if SEARCHES.iter().enumerate().any(by_chance) {
            client = Client { last: "Jansen".to_string(), email: client.debtor.clone() + "@kpn.example", ..client };
            client.company.clear();
        }
        client
    }

    fn any(&self, n: i64) -> Client {
        let mut dice = Dice(scatter(n));
        let first = dice.pick(&self.first);
        let last = format!("{}{}{}", dice.pick(&BEFORE), dice.pick(&self.root), dice.pick(&AFTER));
        let name = last.replace(' ', "");
        let place = dice.pick(&self.place);
        let mut client = Client {
            first: first.to_string(),
            place: place.to_string(),
            debtor: (10_000 + n).to_string(),
            ..Client::default()
        };
        if dice.below(10) < 6 {
            let (trade, thing) = (dice.pick(&self.trade), dice.pick(&self.thing));
            let (names, site) = match dice.below(4) {
                0 => (format!("{trade} De {thing}"), thing),
                1 => (format!("{trade} {last}"), name.as_str()),
                2 => (format!("{thing} {trade} {place}"), thing),
                _ => (format!("{trade} {thing} {place}"), thing),
            };
            client.company = names + dice.pick(&FORM);
            let who = match dice.below(4) {
                0 => "info".to_string(),
                1 => "administratie".to_string(),
                2 => first.to_string(),
                _ => format!("{}.{name}", &first[..1]),
            };
            client.email = format!("{who}@{trade}-{site}.example").to_lowercase();
        } else {
            let number = dice.below(100);
            client.email = format!("{first}.{name}{number}@{}.example", dice.pick(&MAIL)).to_lowercase();
        }
        client.last = last;
        client
    }
}

impl Client {
    /// Folds these names as crates/engine/src/text.rs does; they have no accents.
    fn folded(&self) -> String {
        let fields = [&self.company, &self.first, &self.last, &self.email, &self.debtor];
        let fields: Vec<&str> = fields.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        fields.join("\n").to_lowercase()
    }
}

/// Pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = scatter(self.0 as i64);
        (self.0 % end as u64) as usize
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }
}
