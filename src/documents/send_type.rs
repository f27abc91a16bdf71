//! The types of mail about documents.

use engine::choice;

use super::Which;

choice! {
    /// The type of a mail.
    pub enum SendType {
        /// The invoice.
        #[default]
        Invoice = "invoice",
        /// The quote.
        Quote = "quote",
        /// A credit.
        Credit = "credit",
        /// The first reminder of an invoice.
        InvoiceRem1 = "invoice_rem1",
        /// The second reminder of an invoice.
        InvoiceRem2 = "invoice_rem2",
        /// The third reminder of an invoice.
        InvoiceRem3 = "invoice_rem3",
        /// The first reminder of a quote.
        QuoteRem1 = "quote_rem1",
        /// The second reminder of a quote.
        QuoteRem2 = "quote_rem2",
        /// The third reminder of a quote.
        QuoteRem3 = "quote_rem3",
        /// The confirmation of an order.
        OrderConfirmation = "order_confirmation",
        /// An invoice of a subscription.
        Subscription = "subscription",
        /// The workorder.
        Workorder = "workorder",
    }
}

impl SendType {
    /// The kind of document that it applies to.
    pub const fn family(self) -> Which {
        use SendType::{
            Credit, Invoice, InvoiceRem1, InvoiceRem2, InvoiceRem3, OrderConfirmation, Quote, QuoteRem1, QuoteRem2,
            QuoteRem3, Subscription, Workorder,
        };
        match self {
            Invoice | Credit | InvoiceRem1 | InvoiceRem2 | InvoiceRem3 | Subscription => Which::Invoice,
            Quote | QuoteRem1 | QuoteRem2 | QuoteRem3 | OrderConfirmation => Which::Quote,
            Workorder => Which::Workorder,
        }
    }

    /// Whether it is a reminder.
    pub fn is_reminder(self) -> bool {
        self.wire().contains("_rem")
    }
}
