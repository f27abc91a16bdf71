//! The objects of the API.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// The currency, such as `EUR`.
    pub currency: String,
    /// The value, with the decimals of the currency: `10.00`.
    pub value: String,
}

/// A customer to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewCustomer {
    /// The name, for the dashboard.
    pub name: String,
    /// The e-mail address; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Metadata to find our record; about 1 kB.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// A payment to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPayment {
    /// The amount.
    pub amount: Amount,
    /// The description on the customer's statement; truncated at 255 characters or fewer.
    pub description: String,
    /// Requires a customer unless it is one-off; [`Sequence::Recurring`] collects the money immediately.
    #[serde(rename = "sequenceType")]
    pub sequence: Sequence,
    /// `cst_…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<String>,
    /// `mdt_…`, of a recurring payment; if absent, Mollie chooses a valid one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mandate_id: Option<String>,
    /// The URL that the customer returns to after paying; recurring payments have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// The webhook URL, which must be reachable from the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
    /// `ideal`, `creditcard`, `directdebit` and the like; if absent, the customer chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Metadata to find our record; about 1 kB.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// Declares an enum of Mollie's values; an unknown value is kept as it is.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(into = "String")]
        pub enum $name {
            $($(#[$what])* $variant,)*
            /// An unknown value.
            Other(String),
        }

        impl $name {
            /// Returns Mollie's name of the value.
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
    /// The position of a payment in a series.
    Sequence {
        /// A single payment.
        OneOff = "oneoff",
        /// The customer pays and authorizes later payments: this creates a mandate.
        First = "first",
        /// Collected with a mandate, without the customer.
        Recurring = "recurring",
    }
}

words! {
    /// The status of a payment. Refunds and chargebacks do not change it.
    Status {
        /// Created, not yet paid.
        Open = "open",
        /// Canceled by the customer or by us; final.
        Canceled = "canceled",
        /// In progress: a direct debit takes days.
        Pending = "pending",
        /// Authorized, to be captured.
        Authorized = "authorized",
        /// Not paid in time; final.
        Expired = "expired",
        /// Failed; final.
        Failed = "failed",
        /// Paid; final, even after a chargeback: see [`Payment::amount_charged_back`].
        Paid = "paid",
    }
}

words! {
    /// The status of a mandate.
    MandateStatus {
        /// Can be used.
        Valid = "valid",
        /// Its first payment is not completed yet.
        Pending = "pending",
        /// Can no longer be used.
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
    /// The status.
    pub status: Status,
    /// The amount.
    pub amount: Amount,
    /// The URL where the customer pays; only while it is open, and not for recurring payments.
    pub checkout_url: Option<String>,
    /// `cst_…`.
    pub customer_id: Option<String>,
    /// `mdt_…`, with which it is collected, or which it created.
    pub mandate_id: Option<String>,
    /// The payment method; none until the customer chooses.
    pub method: Option<String>,
    /// The position in a series.
    pub sequence: Sequence,
    /// When it was paid, in Mollie's format: `2026-03-20T09:13:37+00:00`.
    pub paid_at: Option<String>,
    /// The refunded amount.
    pub amount_refunded: Option<Amount>,
    /// The amount charged back.
    pub amount_charged_back: Option<Amount>,
    /// Why it failed or was charged back: text and code, as far as Mollie gives them.
    pub failure_reason: Option<String>,
    /// The metadata, as sent.
    pub metadata: Value,
    /// The whole response.
    pub details: Value,
}

/// A customer's authorization to collect payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mandate {
    /// `mdt_…`.
    pub id: String,
    /// The status.
    pub status: MandateStatus,
    /// `directdebit`, `creditcard` or `paypal`.
    pub method: String,
    /// `2026-03-20`.
    pub signature_date: Option<String>,
    /// The reference on the customer's statement.
    pub reference: Option<String>,
}

/// A chargeback of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chargeback {
    /// `chb_…`.
    pub id: String,
    /// The amount.
    pub amount: Amount,
    /// When it was created, in Mollie's format.
    pub created_at: Option<String>,
    /// When it was reversed, in Mollie's format.
    pub reversed_at: Option<String>,
    /// Text and code, as far as Mollie gives them.
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
    fn keeps_unknown_values() {
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
