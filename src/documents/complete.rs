//! What a final document should have. The contract asks for a title alone, so what is missing is a warning; accounts with the
//! setting `strict_final` reject it.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::input::Input;
use engine::input::pending::Pending;
use engine::json::Json;
use engine::record::UPDATED;
use engine::records::{self, Image, Work};
use store::Tx;

use super::rows::{Names, ROWS, Rows};
use super::{Document, DocumentKind, Mode, PaymentStatus, Which, faults};
use crate::settings::{Generation, Settings};

/// `PATCH …/{id}`, with a warning about what a document lacks that becomes final.
pub fn patch<K: DocumentKind>(call: Call) -> Result<Work> {
    let asks = matches!(&call.body, Some(Json::Object(members)) if members.iter().any(|(name, _)| name == "rows"));
    let pending: Pending<Document<K>> = Pending::patch(&call, asks)?;
    let unread = faults::unread(&call, &pending, &ROWS);
    Ok(Box::new(move |tx, ctx| {
        let before: Document<K> = records::find_to_change(tx, ctx, &call)?;
        let patched = pending.checked(tx, ctx).and_then(|input| patch_now(tx, ctx, &before, input));
        patched.map_err(|error| faults::complete(tx, ctx, &pending, unread.as_ref(), Some(&before), error))
    }))
}

fn patch_now<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: &Document<K>,
    input: &Input<Document<K>>,
) -> Result<Answer> {
    let mut document = before.clone();
    input.merge_into(&mut document);
    let image = records::change_as(tx, ctx, before, &mut document, "updated")?;
    let warnings = warned(&document, document.is_final() && !before.is_final(), &input.warnings);
    Ok(Image::answer(image, ctx, &document, UPDATED).with_texts("warnings", &warnings))
}

/// What a document without a client is warned of, a draft too.
pub(super) const NO_CLIENT: &str = "The document has no client.";
/// What a document without rows is warned of, a draft too.
pub(super) const NO_ROWS: &str = "The document has no rows.";

/// What is wrong with a final document without a client.
const NEEDS_CLIENT: &str = "is required in a final document";

/// Something that a document lacks.
struct Lack {
    field: String,
    /// What is required, after the name of the field.
    required: &'static str,
    /// A sentence for `meta.warnings`.
    warning: String,
}

impl<K: DocumentKind> Document<K> {
    fn lacks(&self) -> Vec<Lack> {
        let mut lacks = Vec::new();
        if self.client_id.0.is_empty() {
            let warning = NO_CLIENT.to_string();
            lacks.push(Lack { field: "client_id".to_string(), required: NEEDS_CLIENT, warning });
        }
        if self.rows.0.is_empty() {
            let warning = NO_ROWS.to_string();
            lacks.push(Lack { field: "rows".to_string(), required: "are required in a final document", warning });
        }
        lacks.extend(rates(&self.rows, &ROWS, "or vat_rate is required in a final document"));
        lacks
    }

    /// Rejects a document that is to become final and lacks something, if the account is strict.
    pub(super) fn check_complete(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let lacks = self.lacks();
        if lacks.is_empty() || !Settings::of(tx, ctx)?.strict_final {
            return Ok(());
        }
        rejected(lacks)
    }

    /// Rejects the body of a document that is to be final and names no client, if the account is strict.
    pub(super) fn check_client(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let is_final = self.generate || self.generation_mode == Mode::Final;
        let is_named = !self.client_id.0.is_empty() || !self.client_external_id.is_empty();
        if !is_final || is_named || !Settings::of(tx, ctx)?.strict_final {
            return Ok(());
        }
        Err(Error::field("client_id", violation(FieldCode::Required, NEEDS_CLIENT)))
    }
}

/// Returns the VAT rates that rows lack.
fn rates(rows: &Rows, names: &Names, required: &'static str) -> impl Iterator<Item = Lack> {
    rows.0.iter().enumerate().filter(|(_, row)| row.unstated).map(move |(place, row)| {
        let warning = format!(
            "{} {} ('{}') names no VAT rate, so it has 0%. Send vat_code or vat_rate, or set default_vat_code in the settings.",
            names.one,
            place + 1,
            row.name
        );
        Lack { field: format!("{}[{place}].vat_code", names.list), required, warning }
    })
}

fn rejected(lacks: Vec<Lack>) -> Result<()> {
    let mut faults = FieldErrors::default();
    for lack in lacks {
        faults.add(lack.field, violation(FieldCode::Required, lack.required));
    }
    faults.into_result()
}

/// Returns warnings about rows of future invoices that name no VAT rate. A strict account that makes these invoices final rejects
/// the rows instead: nobody looks at such an invoice before it is sent.
pub(crate) fn check_rates(tx: &mut Tx, ctx: &Ctx, rows: &Rows, names: &Names) -> Result<Vec<String>> {
    let lacks: Vec<Lack> = rates(rows, names, "or vat_rate is required: the invoices become final").collect();
    if !lacks.is_empty() {
        let settings = Settings::of(tx, ctx)?;
        if settings.strict_final && settings.subscription_generation != Generation::Draft {
            return rejected(lacks).map(|()| Vec::new());
        }
    }
    Ok(lacks.into_iter().take(MAX_NAMED).map(|lack| lack.warning).collect())
}

/// The most rows that are named in warnings.
const MAX_NAMED: usize = 10;

/// Returns the warnings of a request, with what the document lacks if the request finalized it, and that a quote is expired.
pub(crate) fn warned<K: DocumentKind>(document: &Document<K>, finalized: bool, warnings: &[String]) -> Vec<String> {
    let lacks = if finalized { document.lacks() } else { Vec::new() };
    let new = lacks.into_iter().map(|lack| lack.warning).filter(|warning| !warnings.contains(warning));
    let is_expired = K::WHICH == Which::Quote && finalized && document.payment_status == PaymentStatus::Expired;
    let expired = is_expired.then(|| EXPIRED.to_string());
    warnings.iter().cloned().chain(new.take(MAX_NAMED)).chain(expired).collect()
}

/// What a quote is warned of that becomes final after its last valid day.
const EXPIRED: &str = "The last valid day of the quote has passed, so it is expired. A later due_date opens it.";
