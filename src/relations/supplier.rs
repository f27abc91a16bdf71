//! Suppliers.

use engine::context::Ctx;
use engine::error::{FieldErrors, Result};
use engine::record;
use engine::record::{
    Bic, COMPUTED, Country, Custom, Days, Email, Emails, INPUT, Iban, Model, Rules, VatNumber, Website,
};
use engine::resource::{Method, RequestBody, Resource};
use store::{Migration, Tx};

use super::contact::{ContactType, Examples, check_name, contact_record, create_contacts, resolve_terms};
use super::merging::{self, MergeSupplier, Merged};
use crate::settings::custom_field::{self, Entity};

contact_record! {
    /// A business that you buy from. It has the fields of a client; some of them are set by the server.
    pub struct Supplier = "supplier" in "suppliers";
    examples: EXAMPLES;
    details: computed;
}

const EXAMPLES: Examples = Examples {
    company_name: "\"Molen De Adelaar\"",
    firstname: "\"Jan\"",
    lastname: "\"Smit\"",
    email: "\"jan@molen-de-adelaar.example\"",
    phone: "\"+31 30 123 45 67\"",
    city: "\"Utrecht\"",
};

/// The contract has no input for the details of a supplier.
const fn computed(_: Rules) -> Rules {
    COMPUTED
}

impl Model for Supplier {
    fn check(&self, faults: &mut FieldErrors) {
        check_name(self.r#type, &self.company_name, &self.firstname, &self.lastname, faults);
    }

    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        resolve_terms(tx, ctx, &mut self.payment_term, &mut self.quote_expiration_days)?;
        let before = before.map(|before| &before.custom_fields);
        custom_field::resolve(tx, ctx, Entity::Supplier, &mut self.custom_fields, before)
    }
}

impl Merged for Supplier {
    fn kind(&self) -> ContactType {
        self.r#type
    }

    fn custom_fields(&mut self) -> &mut Custom {
        &mut self.custom_fields
    }
}

/// The resource of suppliers.
pub fn resource() -> Resource {
    Resource::of::<Supplier>("Suppliers", "relations", MIGRATIONS)
        .list::<Supplier>()
        .create::<Supplier>()
        .get::<Supplier>()
        .patch::<Supplier>()
        .delete::<Supplier>()
        .extension()
        .route(
            Method::Post,
            "/{id}/merge",
            "Merge a duplicate into a supplier",
            merging::merge::<Supplier, MergeSupplier>,
        )
        .body::<MergeSupplier>(RequestBody::Body)
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration { number: 23, name: "suppliers", sql: create_contacts!("suppliers") }];
