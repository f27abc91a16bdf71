//! SEPA direct debit files: `pain.008.001.08`, the version of the scheme's rulebooks since November 2023.
//!
//! [`write()`] checks what a bank would reject and describes it. Texts are never rejected: characters that the scheme
//! does not support are transliterated, and texts are truncated to its limits.

mod text;

use std::fmt;

use jiff::civil::{Date, DateTime};
use money::Amount;
use sepa::{
    Bic, CreditorId, DirectDebitEntry, DirectDebitGroup, DirectDebitScheme, Iban, IsoDate, IsoDateTime, Pain008Builder,
    SequenceType,
};

/// The creditor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creditor {
    /// The name that debtors see; 70 characters.
    pub name: String,
    /// The account that receives the money.
    pub iban: String,
    /// The bank of that account. Banks derive it from the IBAN if it is absent.
    pub bic: Option<String>,
    /// The creditor identifier: see [`creditor_id_is_valid`].
    pub creditor_id: String,
}

/// One collection from one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debit {
    /// The creditor's reference, which is included in every message about this debit; 35 characters.
    pub end_to_end_id: String,
    /// The amount, in euros.
    pub amount: Amount,
    /// The reference of the mandate, as communicated to the debtor; 35 characters.
    pub mandate_id: String,
    /// The date on which the mandate was signed.
    pub mandate_date: Date,
    /// The position of this debit in the series of its mandate.
    pub sequence: Sequence,
    /// The name of the account holder; 70 characters.
    pub debtor_name: String,
    /// The account that is debited.
    pub debtor_iban: String,
    /// The bank of that account. Banks derive it from the IBAN if it is absent.
    pub debtor_bic: Option<String>,
    /// The text on the debtor's bank statement; 140 characters. It may be empty.
    pub text: String,
}

/// The position of a debit in the series of its mandate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// The first of several. Since 2016, `Recurring` can be used for it too.
    First,
    /// One of several.
    Recurring,
    /// The only one; the mandate cannot be used again.
    OneOff,
    /// The last of several; the mandate cannot be used again.
    Final,
}

/// The scheme, as agreed in the mandate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// For everyone: the debtor can claim a refund for eight weeks.
    Core,
    /// Between businesses: no refunds, and the debtor's bank must know the mandate.
    B2b,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The unique id of the file; 35 characters. Banks reject an id that they have seen. A number is appended for each
    /// [`Sequence`] in the file, so use at most 33.
    pub message_id: String,
    /// The creation time, by the clock of the creditor.
    pub created: DateTime,
    /// The date on which the accounts are debited.
    pub collection_date: Date,
    /// The scheme of all debits.
    pub scheme: Scheme,
    /// The creditor.
    pub creditor: Creditor,
    /// The collections.
    pub debits: Vec<Debit>,
}

/// Why a [`Batch`] cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The index in [`Batch::debits`] of the invalid debit; `None` if the batch itself is invalid.
    pub debit: Option<usize>,
    /// The invalid field: `debtor_iban`, `creditor.iban`.
    pub field: &'static str,
    /// Why it is invalid, for people.
    pub reason: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.debit {
            // Counts from one, for people.
            Some(index) => write!(f, "Debit {}: {}", index + 1, self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for Invalid {}

/// Whether a text is a SEPA creditor identifier: a country, two check digits, a business code of three characters,
/// which the check digits do not cover, and a national number.
pub fn creditor_id_is_valid(text: &str) -> bool {
    sepa::validate_creditor_id(text).is_ok()
}

/// Returns the file for the bank, or the first error.
///
/// The debits of one [`Sequence`] are grouped, in their original order.
pub fn write(batch: &Batch) -> Result<String, Invalid> {
    let creditor = checked_creditor(&batch.creditor)?;
    let collection_date = date(batch.collection_date).ok_or_else(|| years("collection_date", "The collection date"))?;
    let created = date(batch.created.date()).and_then(|date| time(date, batch.created));
    let created = created.ok_or_else(|| years("created", "The time of creation"))?;
    let message_id = text::id(&batch.message_id).ok_or_else(|| empty("message_id", "The message id"))?;
    let entries = batch.debits.iter().enumerate().map(|(index, debit)| {
        let entry = checked_debit(debit, batch.collection_date);
        Ok((index, debit.sequence, entry.map_err(|invalid| Invalid { debit: Some(index), ..invalid })?))
    });
    let entries: Vec<(usize, Sequence, DirectDebitEntry)> = entries.collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err(invalid("debits", "There is nothing to collect: the batch is empty."));
    }

    let mut file = Pain008Builder::new(&creditor.name, message_id).created_at(created);
    // The index of the debit of each transaction in each group.
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (sequence, code) in SEQUENCES {
        let of_sequence = || entries.iter().filter(|(_, of, _)| *of == sequence);
        if of_sequence().next().is_none() {
            continue;
        }
        let mut group = DirectDebitGroup::new(&creditor.name, &creditor.iban, &creditor.id, collection_date)
            .sequence_type(code)
            .scheme(match batch.scheme {
                Scheme::Core => DirectDebitScheme::Core,
                Scheme::B2b => DirectDebitScheme::B2b,
            })
            .add_entries(of_sequence().map(|(_, _, entry)| entry.clone()));
        if let Some(bic) = &creditor.bic {
            group = group.creditor_bic(bic.clone());
        }
        file = file.add_group(group);
        places.push(of_sequence().map(|(index, ..)| *index).collect());
    }
    // The only error left for the builder is a sum of more than eighteen digits.
    file.build().map_err(|error| {
        let place = error.location.group.zip(error.location.transaction);
        let debit = place.and_then(|(group, place)| places.get(group)?.get(place).copied());
        Invalid { debit, ..invalid("debits", format!("The file cannot be written: {}.", error.kind)) }
    })
}

/// The order of the groups in a file.
const SEQUENCES: [(Sequence, SequenceType); 4] = [
    (Sequence::First, SequenceType::Frst),
    (Sequence::Recurring, SequenceType::Rcur),
    (Sequence::Final, SequenceType::Fnal),
    (Sequence::OneOff, SequenceType::Ooff),
];

/// A [`Creditor`] with validated fields.
struct Checked {
    name: String,
    iban: Iban,
    bic: Option<Bic>,
    id: CreditorId,
}

fn checked_creditor(creditor: &Creditor) -> Result<Checked, Invalid> {
    Ok(Checked {
        name: text::name(&creditor.name).ok_or_else(|| empty("creditor.name", "The name of the creditor"))?,
        iban: iban("creditor.iban", "The IBAN of the creditor", &creditor.iban)?,
        bic: bic("creditor.bic", "The BIC of the creditor", creditor.bic.as_deref())?,
        id: sepa::validate_creditor_id(&creditor.creditor_id).map_err(|_| {
            let given = &creditor.creditor_id;
            invalid(
                "creditor.creditor_id",
                format!("The creditor identifier is not valid: {given:?}. Look it up at your bank."),
            )
        })?,
    })
}

fn checked_debit(debit: &Debit, collection_date: Date) -> Result<DirectDebitEntry, Invalid> {
    let end_to_end_id = text::id(&debit.end_to_end_id).ok_or_else(|| empty("end_to_end_id", "The reference"))?;
    let cents = debit.amount.scaled();
    if cents < sepa::validate::MIN_AMOUNT_CT {
        return Err(invalid("amount", format!("The amount must be greater than zero; it is {}.", debit.amount)));
    }
    if cents > sepa::validate::MAX_AMOUNT_CT {
        let reason = format!("The amount must be less than one billion euros; it is {}.", debit.amount);
        return Err(invalid("amount", reason));
    }
    let mandate_id = text::id(&debit.mandate_id).ok_or_else(|| empty("mandate_id", "The mandate id"))?;
    let signed = date(debit.mandate_date).ok_or_else(|| years("mandate_date", "The date of the mandate"))?;
    if debit.mandate_date > collection_date {
        let reason =
            format!("The mandate was signed on {}, after the collection on {collection_date}.", debit.mandate_date);
        return Err(invalid("mandate_date", reason));
    }
    let name = text::name(&debit.debtor_name).ok_or_else(|| empty("debtor_name", "The name of the debtor"))?;
    let account = iban("debtor_iban", "The IBAN of the debtor", &debit.debtor_iban)?;
    let mut entry = DirectDebitEntry::new(mandate_id, signed, name, account, cents, end_to_end_id);
    if let Some(bic) = bic("debtor_bic", "The BIC of the debtor", debit.debtor_bic.as_deref())? {
        entry = entry.with_bic(bic);
    }
    Ok(match text::remittance(&debit.text) {
        Some(text) => entry.with_description(text),
        None => entry,
    })
}

fn iban(field: &'static str, what: &str, given: &str) -> Result<Iban, Invalid> {
    let iban = sepa::validate_iban(given).map_err(|_| invalid(field, format!("{what} is not valid: {given:?}.")))?;
    match iban.is_sepa() {
        true => Ok(iban),
        false => Err(invalid(field, format!("{what} belongs to a country outside SEPA: {given:?}."))),
    }
}

fn bic(field: &'static str, what: &str, given: Option<&str>) -> Result<Option<Bic>, Invalid> {
    let Some(given) = given else { return Ok(None) };
    let bic = sepa::validate_bic(given).map_err(|_| invalid(field, format!("{what} is not valid: {given:?}.")))?;
    Ok(Some(bic))
}

/// Returns `None` before the year 1, which the file format does not support.
fn date(date: Date) -> Option<IsoDate> {
    let (year, month, day) = (date.year().try_into().ok()?, date.month().try_into().ok()?, date.day().try_into().ok()?);
    IsoDate::new(year, month, day).ok()
}

fn time(date: IsoDate, at: DateTime) -> Option<IsoDateTime> {
    let (hour, minute, second) =
        (at.hour().try_into().ok()?, at.minute().try_into().ok()?, at.second().try_into().ok()?);
    IsoDateTime::new(date, hour, minute, second).ok()
}

fn invalid(field: &'static str, reason: impl Into<String>) -> Invalid {
    Invalid { debit: None, field, reason: reason.into() }
}

fn empty(field: &'static str, what: &str) -> Invalid {
    invalid(field, format!("{what} is missing."))
}

fn years(field: &'static str, what: &str) -> Invalid {
    invalid(field, format!("{what} is before the year 1."))
}
