//! What is sent to Mollie and what it gives.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// `EUR` and the like.
    pub currency: String,
    /// With as many decimals as the currency has: `10.00`.
    pub value: String,
}

/// A customer to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewCustomer {
    /// As the dashboard shows it.
    pub name: String,
    /// Empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Whatever helps to find our record; about 1 kB.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// A payment to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPayment {
    /// How much.
    pub amount: Amount,
    /// What the customer reads on the statement; cut at 255 characters or fewer.
    pub description: String,
    /// Needs a customer unless it is one-off; [`Sequence::Recurring`] takes the money at once.
    #[serde(rename = "sequenceType")]
    pub sequence: Sequence,
    /// `cst_…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<String>,
    /// `mdt_…`, of a recurring payment; without it Mollie chooses a valid one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mandate_id: Option<String>,
    /// Where the customer goes after paying; recurring payments have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// What Mollie calls when something happened; it must be reachable from the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
    /// `ideal`, `creditcard`, `directdebit` and the like; without it the customer chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Whatever helps to find our record; about 1 kB.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// A word of Mollie's as an enum; one that it does not have stays as it came.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(into = "String")]
        pub enum $name {
            $($(#[$what])* $variant,)*
            /// A word that was not known when this was written.
            Other(String),
        }

        impl $name {
            /// Mollie's word.
            pub fn word(&self) -> &str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)*
                    other => $name::Other(other.into()),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> String {
                word.word().into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// Where a payment is in a row of payments.
    Sequence {
        /// On its own.
        OneOff = "oneoff",
        /// The customer pays, and agrees to the ones that follow: it makes a mandate.
        First = "first",
        /// Taken by a mandate, without the customer.
        Recurring = "recurring",
    }
}

words! {
    /// How far a payment is. Refunds and chargebacks do not change it.
    Status {
        /// Made, not yet paid.
        Open = "open",
        /// Given up by the customer, or by us. It stays so.
        Canceled = "canceled",
        /// On its way: a direct debit takes days.
        Pending = "pending",
        /// Promised, and to be captured.
        Authorized = "authorized",
        /// The customer did not pay in time. It stays so.
        Expired = "expired",
        /// It did not work out. It stays so.
        Failed = "failed",
        /// Paid. It stays so, even if the money is taken back: see [`Payment::amount_charged_back`].
        Paid = "paid",
    }
}

words! {
    /// Whether payments can be taken by a mandate.
    MandateStatus {
        /// They can.
        Valid = "valid",
        /// Not yet: its first payment is not through.
        Pending = "pending",
        /// No more.
        Invalid = "invalid",
    }
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// `cst_…`.
    pub id: String,
}

/// A payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// `tr_…`.
    pub id: String,
    /// How far it is.
    pub status: Status,
    /// How much.
    pub amount: Amount,
    /// Where the customer pays; only while it is open, and not for recurring ones.
    pub checkout_url: Option<String>,
    /// `cst_…`.
    pub customer_id: Option<String>,
    /// `mdt_…`, by which it is taken, or which it made.
    pub mandate_id: Option<String>,
    /// How it was paid; none while the customer has not chosen.
    pub method: Option<String>,
    /// Where it is in a row of payments.
    pub sequence: Sequence,
    /// When it was paid, as Mollie writes it: `2026-03-20T09:13:37+00:00`.
    pub paid_at: Option<String>,
    /// What of it was given back.
    pub amount_refunded: Option<Amount>,
    /// What of it the customer or the bank took back.
    pub amount_charged_back: Option<Amount>,
    /// Why it failed, or why a bank took it back: words and a code, as far as Mollie gives them.
    pub failure_reason: Option<String>,
    /// As it was given.
    pub metadata: Value,
    /// The whole answer.
    pub details: Value,
}

/// A customer's leave to take payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mandate {
    /// `mdt_…`.
    pub id: String,
    /// Whether it can be used.
    pub status: MandateStatus,
    /// `directdebit`, `creditcard` or `paypal`.
    pub method: String,
    /// `2026-03-20`.
    pub signature_date: Option<String>,
    /// What the customer reads on the statement.
    pub reference: Option<String>,
}

/// Money of a payment that the customer or the bank took back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chargeback {
    /// `chb_…`.
    pub id: String,
    /// How much.
    pub amount: Amount,
    /// When, as Mollie writes it.
    pub created_at: Option<String>,
    /// When it was undone, as Mollie writes it: then the money is ours again.
    pub reversed_at: Option<String>,
    /// Words and a code, as far as Mollie gives them.
    pub reason: Option<String>,
}

impl Customer {
    pub(crate) fn read(value: &Value) -> Option<Customer> {
        Some(Customer { id: text(value, "/id")? })
    }
}

impl Payment {
    pub(crate) fn read(value: &Value) -> Option<Payment> {
        Some(Payment {
            id: text(value, "/id")?,
            status: text(value, "/status")?.as_str().into(),
            amount: amount(value, "/amount")?,
            checkout_url: text(value, "/_links/checkout/href"),
            customer_id: text(value, "/customerId"),
            mandate_id: text(value, "/mandateId"),
            method: text(value, "/method"),
            sequence: text(value, "/sequenceType").map_or(Sequence::OneOff, |word| word.as_str().into()),
            paid_at: text(value, "/paidAt"),
            amount_refunded: amount(value, "/amountRefunded"),
            amount_charged_back: amount(value, "/amountChargedBack"),
            failure_reason: reason(value, "/details/bankReason", "/details/bankReasonCode")
                .or_else(|| reason(value, "/details/failureMessage", "/details/failureReason"))
                .or_else(|| reason(value, "/statusReason/message", "/statusReason/code")),
            metadata: value.get("metadata").cloned().unwrap_or_default(),
            details: value.clone(),
        })
    }
}

impl Mandate {
    pub(crate) fn read(value: &Value) -> Option<Mandate> {
        Some(Mandate {
            id: text(value, "/id")?,
            status: text(value, "/status")?.as_str().into(),
            method: text(value, "/method")?,
            signature_date: text(value, "/signatureDate"),
            reference: text(value, "/mandateReference"),
        })
    }
}

impl Chargeback {
    pub(crate) fn read(value: &Value) -> Option<Chargeback> {
        Some(Chargeback {
            id: text(value, "/id")?,
            amount: amount(value, "/amount")?,
            created_at: text(value, "/createdAt"),
            reversed_at: text(value, "/reversedAt"),
            reason: reason(value, "/reason/description", "/reason/code"),
        })
    }
}

fn text(value: &Value, at: &str) -> Option<String> {
    value.pointer(at).and_then(Value::as_str).map(str::to_owned)
}

/// `null` and absent are the same to Mollie. An amount without a value is none.
fn amount(value: &Value, at: &str) -> Option<Amount> {
    Amount::deserialize(value.pointer(at)?).ok()
}

fn reason(value: &Value, words: &str, code: &str) -> Option<String> {
    match (text(value, words), text(value, code)) {
        (Some(words), Some(code)) => Some(format!("{words} ({code})")),
        (words, code) => words.or(code),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_are_not_known_stay_as_they_came() {
        assert_eq!(Status::from("paid"), Status::Paid);
        assert_eq!(Status::from("teleported"), Status::Other("teleported".into()));
        assert_eq!(Status::from("teleported").to_string(), "teleported");
        let mandate = json!({"id": "mdt_1", "status": "odd", "method": "pigeon", "mandateReference": null});
        assert_eq!(Mandate::read(&mandate).unwrap().status, MandateStatus::Other("odd".into()));
    }

    #[test]
    fn a_payment_is_read_as_far_as_it_goes() {
        let least = json!({"id": "tr_1", "status": "open", "amount": {"currency": "JPY", "value": "10"}});
        let payment = Payment::read(&least).unwrap();
        assert_eq!((payment.sequence, payment.checkout_url, payment.metadata), (Sequence::OneOff, None, Value::Null));
        assert_eq!(Payment::read(&json!({"id": "tr_1", "status": "open", "amount": null})), None);
        let failed = json!({
            "id": "tr_1", "status": "failed", "amount": {"currency": "EUR", "value": "1.00"},
            "details": {"bankReason": "Insufficient funds", "bankReasonCode": "AM04"},
        });
        assert_eq!(Payment::read(&failed).unwrap().failure_reason.unwrap(), "Insufficient funds (AM04)");
        let failed = json!({
            "id": "tr_1", "status": "failed", "amount": {"currency": "EUR", "value": "1.00"},
            "details": {"failureReason": "card_expired"},
        });
        assert_eq!(Payment::read(&failed).unwrap().failure_reason.unwrap(), "card_expired");
    }
}
