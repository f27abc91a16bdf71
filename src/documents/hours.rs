//! Invoicing hours: a draft invoice of the approved hours of a project, with a row for each activity and person. Hours keep their
//! invoice, so they are billed once; those of a draft, or of an invoice that is credited in full, can be released.

use std::collections::HashMap;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::input::{Input, did_you_mean};
use engine::record::{Body, CREATED, Day, INPUT, Link, Texts};
use engine::records::{self, Image, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use engine::slice::TOGETHER;
use money::Price;
use serde_json::json;
use store::Tx;

use super::complete::NO_CLIENT;
use super::pdf::Style;
use super::rows::{Row, Rows};
use super::{Invoice, Language, Mode, new};
use crate::people::user::User;
use crate::relations::client::Client;
use crate::settings::tax_rate;
use crate::work::hour::{self, Hour};
use crate::work::project::Project;

/// Maximum number of entries on an invoice: all of them are changed in one transaction.
const MOST: usize = 1000;
/// Maximum number of characters of a title and of the name of a row.
const MAX_NAME: usize = 255;
/// Maximum number of characters of the project in a title.
const MAX_PROJECT: usize = 180;
/// Millionths of an hour in a hundredth of an hour.
const PER_HUNDREDTH: i64 = 10_000;

input! {
    /// Which hours to invoice, and at which price.
    pub struct InvoiceHours;

    /// First day of the hours; without it, from the first hours on.
    from: Day = INPUT.example("\"2026-05-01\"");
    /// Last day of the hours; without it, until the last hours.
    to: Day = INPUT.example("\"2026-05-31\"");
    /// Price of an hour, excluding VAT; 0 if it is not sent.
    unit_price: Price = INPUT.between(0, 1_000_000).example("85");
    /// Code of the tax rate of the rows; defaults to that of the settings.
    vat_code: String = INPUT.example("\"NL21\"");
    /// Title of the invoice; by default the project and the period, in the language of the invoice.
    title: String = INPUT.example("\"Design in May\"");
}

impl Body for InvoiceHours {
    fn check(&self, faults: &mut FieldErrors) {
        if let (Some(from), Some(to)) = (self.from.0, self.to.0)
            && to < from
        {
            faults.add("to", violation(FieldCode::OutOfRange, "must not be before from"));
        }
    }
}

/// Adds the invoice of the hours to the routes of projects.
pub(crate) fn billable(projects: Resource) -> Resource {
    projects
        .route(Method::Post, "/{id}/invoice", "Create a draft invoice of the approved hours of a project", invoice)
        .body::<InvoiceHours>(RequestBody::Maybe)
        .returns(Returns::CreatedOf("invoices"))
        .with(|route| route.also_needs = Some("invoices.write"))
        .extension()
}

input! {
    /// Which hours to release from an invoice.
    pub struct ReleaseHours;

    /// The ids of the entries: 200 at most; without it, all hours of the invoice.
    ids: Texts = INPUT.example("[\"0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11\"]");
}

impl Body for ReleaseHours {}

const RELEASED: &[Part] = &[Part("released", "array", "The ids of the entries that can be invoiced again.")];

/// Adds the release of hours to the routes of invoices.
pub(crate) fn releasable(invoices: Resource) -> Resource {
    invoices
        .route(Method::Post, "/{id}/release-hours", "Release hours of an invoice, to invoice them again", release)
        .body::<ReleaseHours>(RequestBody::Maybe)
        .returns(Returns::Parts(RELEASED))
        .with(|route| route.also_needs = Some("projects.write"))
        .extension()
}

/// `POST /v1/invoices/{id}/release-hours`. The rows of the invoice stay as they are.
fn release(call: Call) -> Result<Work> {
    let (mut chosen, mut warnings) = (None, Vec::new());
    if call.body.is_some() {
        let input: Input<ReleaseHours> = input::create(&call)?;
        chosen = input.has("ids").then(|| input.record().ids.0);
        warnings = input.warnings;
    }
    Ok(Box::new(move |tx, ctx| {
        let invoice: Invoice = records::find_to_change(tx, ctx, &call)?;
        // The hours would be billed twice.
        if invoice.generation_mode == Mode::Final && !invoice.rows.0.iter().all(|row| row.credited) {
            let number = &invoice.number;
            let message =
                format!("{number} is final and not credited in full, so it keeps its hours. Credit it first.");
            return Err(Error::new(Code::InvalidTransition, message));
        }
        let mut released = Vec::new();
        for hour in hour::billed_by(tx, ctx, &invoice.base.id)? {
            if chosen.as_ref().is_none_or(|ids: &Vec<String>| ids.contains(&hour.base.id)) {
                hour.bill(tx, ctx, "")?;
                released.push(hour.base.id);
            }
        }
        Ok(Answer::json(&json!({"released": released})).with_texts("warnings", &warnings))
    }))
}

/// `POST /v1/projects/{id}/invoice`
fn invoice(call: Call) -> Result<Work> {
    let (mut wish, mut warnings) = (InvoiceHours::default(), Vec::new());
    if call.body.is_some() {
        let input: Input<InvoiceHours> = input::create(&call)?;
        (wish, warnings) = (input.record(), input.warnings);
    }
    Ok(Box::new(move |tx, ctx| {
        let project: Project = records::find_to_change(tx, ctx, &call)?;
        let (invoice, image) = invoice_hours(tx, ctx, &project, &wish)?;
        let mut warnings = warnings.clone();
        if invoice.client_id.0.is_empty() {
            warnings.push(NO_CLIENT.to_string());
        }
        Ok(image.created(ctx, &invoice, CREATED).with_texts("warnings", &warnings))
    }))
}

/// Creates the draft, and gives the hours their invoice.
fn invoice_hours(tx: &mut Tx, ctx: &Ctx, project: &Project, wish: &InvoiceHours) -> Result<(Invoice, Image)> {
    let vat_code = wish.vat_code.trim();
    check_rate(tx, ctx, vat_code)?;
    let hours = hour::unbilled(tx, ctx, &project.base.id, [&wish.from, &wish.to], MOST + 1)?;
    let refused = match hours.len() {
        0 => "No approved hours of this period are left to invoice.".to_string(),
        1..=MOST => String::new(),
        _ => format!("More than {MOST} entries of this period are left to invoice. Choose a shorter period."),
    };
    if !refused.is_empty() {
        return Err(Error::new(Code::InvalidTransition, refused));
    }
    let language = match project.client_id.0.as_str() {
        "" => new::language_of(None),
        id => new::language_of(Some(&*records::known::<Client>(tx, ctx, id)?)),
    };
    let names = names(tx, ctx, &hours)?;
    let rows = grouped(&hours).into_iter().map(|group| Row {
        name: group.name(language, names.get(group.user).map(String::as_str)),
        quantity: hour::in_hours(group.minutes).scaled() * PER_HUNDREDTH,
        unit: if language == Language::Dutch { "uur" } else { "hour" }.to_string(),
        unit_price: wish.unit_price.scaled(),
        vat_code: vat_code.to_string(),
        ..Row::default()
    });
    let mut invoice = Invoice {
        title: if wish.title.trim().is_empty() { title(language, project, wish, &hours) } else { wish.title.clone() },
        client_id: project.client_id.clone(),
        project_id: Link(project.base.id.clone()),
        rows: Rows(rows.collect()),
        language,
        ..Invoice::default()
    };
    invoice.work_out(tx, ctx, None)?;
    invoice.start(tx, ctx)?;
    let image = new::save(tx, ctx, &mut invoice)?;
    for hour in &hours {
        hour.bill(tx, ctx, &invoice.base.id)?;
    }
    Ok((invoice, image))
}

fn check_rate(tx: &mut Tx, ctx: &Ctx, code: &str) -> Result<()> {
    if code.is_empty() {
        return Ok(());
    }
    let rates = tax_rate::all(tx, ctx)?;
    if rates.iter().any(|rate| rate.code.eq_ignore_ascii_case(code)) {
        return Ok(());
    }
    let guess = did_you_mean(code, rates.iter().map(|rate| rate.code.as_str()));
    let message = format!("is not the code of any tax rate{guess}");
    Err(Error::field("vat_code", violation(FieldCode::ReferenceNotFound, message)))
}

/// The hours of one activity and person.
struct Group<'h> {
    activity: &'h str,
    user: &'h str,
    minutes: i64,
}

/// Adds up the hours by activity and person, in the order of their first hours.
fn grouped(hours: &[Hour]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    for hour in hours {
        let (activity, user) = (hour.activity_name.as_str(), hour.user_id.0.as_str());
        let place = *places.entry((activity, user)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.minutes += hour.minutes,
            None => groups.push(Group { activity, user, minutes: hour.minutes }),
        }
    }
    groups
}

impl Group<'_> {
    /// `Design, Anna Jansen`
    fn name(&self, language: Language, person: Option<&str>) -> String {
        let activity = match (self.activity.trim(), language) {
            ("", Language::Dutch) => "Werk",
            ("", Language::English) => "Work",
            (activity, _) => activity,
        };
        let name = person.map_or_else(|| activity.to_string(), |person| format!("{activity}, {person}"));
        name.chars().take(MAX_NAME).collect()
    }
}

/// Returns the names of the users who worked, by id.
fn names(tx: &mut Tx, ctx: &Ctx, hours: &[Hour]) -> Result<HashMap<String, String>> {
    let mut ids: Vec<&str> = hours.iter().map(|hour| hour.user_id.0.as_str()).filter(|id| !id.is_empty()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut names = HashMap::with_capacity(ids.len());
    for some in ids.chunks(TOGETHER) {
        let users = records::find_some::<User>(tx, ctx, some)?;
        names.extend(users.into_iter().map(|user| (user.base.id, user.name)));
    }
    Ok(names)
}

/// `Hours New website, 1 May 2026 – 31 May 2026`: the days that were asked for, or those of the hours.
fn title(language: Language, project: &Project, wish: &InvoiceHours, hours: &[Hour]) -> String {
    let word = if language == Language::Dutch { "Uren" } else { "Hours" };
    let project: String = project.name.chars().take(MAX_PROJECT).collect();
    let day = |wished: &Day, hour: Option<&Hour>| wished.0.or_else(|| hour?.date.0);
    let days = [day(&wish.from, hours.first()), day(&wish.to, hours.last())];
    let mut days: Vec<String> = days.into_iter().flatten().map(|date| Style(language).date(date)).collect();
    days.dedup();
    format!("{word} {project}, {}", days.join(" – "))
}
