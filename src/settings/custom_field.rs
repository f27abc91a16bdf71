//! Custom fields of clients, suppliers and documents.

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, Violation, violation};
use engine::record::{Custom, CustomValue, INPUT, Model, NOWHERE, REQUIRED, Record, Slug, Texts};
use engine::resource::Resource;
use engine::text::not_allowed;
use engine::{choice, record};
use store::{Migration, Tx};

choice! {
    /// The type of record that a custom field belongs to.
    pub enum Entity {
        /// Invoices.
        Invoice = "invoice",
        /// Quotes.
        Quote = "quote",
        /// Workorders.
        Workorder = "workorder",
        /// Clients.
        #[default]
        Client = "client",
        /// Suppliers.
        Supplier = "supplier",
    }
}

choice! {
    /// The type of a custom field.
    pub enum FieldType {
        /// A text.
        #[default]
        Text = "text",
        /// True or false.
        Checkbox = "checkbox",
        /// One of the options.
        Select = "select",
    }
}

record! {
    /// A custom field. Its values are in `custom_fields` of the record, by key.
    pub struct CustomField = "custom_field" in "custom_fields", meta: NOWHERE;

    /// The type of record that the field belongs to.
    entity: Entity = REQUIRED.create_only().filter().example("\"client\"");
    /// The key of the field in the API; unique per entity.
    key: Slug = REQUIRED.create_only().at_most(64).unique(&["entity"]).example("\"member_number\"");
    /// Description.
    label: String = INPUT.names().example("\"Member number\"");
    /// `text`, `checkbox` or `select`.
    r#type: FieldType = INPUT.create_only().example("\"select\"");
    /// The options of a `select`.
    options: Texts = INPUT.example("[\"gold\", \"silver\"]");
}

impl Model for CustomField {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        let selects = self.r#type == FieldType::Select;
        if selects && self.options.0.is_empty() {
            faults.add("options", violation(FieldCode::Required, "is required for a select"));
        }
        if !selects && !self.options.0.is_empty() {
            faults.add("type", violation(FieldCode::InvalidChoice, "must be select if there are options"));
        }
    }
}

/// The resource of custom fields; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<CustomField>("Custom fields", "settings", MIGRATIONS)
        .all::<CustomField>()
        .managed::<CustomField>()
        .delete::<CustomField>()
        .extension()
}

/// Merges new values into the existing ones and validates them. A value whose field was deleted is removed with the
/// next change of the record.
pub fn resolve(tx: &mut Tx, ctx: &Ctx, entity: Entity, values: &mut Custom, before: Option<&Custom>) -> Result<()> {
    if values.0.is_empty() && before.is_none_or(|before| before.0.is_empty()) {
        return Ok(());
    }
    let sql = format!("{} WHERE account_id = $1 AND entity = $2 ORDER BY created_at, id", CustomField::sql().select);
    let fields = tx.all(&sql, &[ctx.account.into(), entity.wire().into()], CustomField::from_row)?;
    let mut faults = FieldErrors::default();
    let mut resolved: Vec<(String, CustomValue)> = Vec::new();
    for field in &fields {
        let find = |values: &Custom| values.0.iter().find(|(key, _)| *key == field.key.0).cloned();
        resolved.extend(find(values).or_else(|| before.and_then(find)));
    }
    for (key, value) in &values.0 {
        let Some(field) = fields.iter().find(|field| field.key.0 == *key) else {
            // Existing values are not an error of the caller.
            if before.is_none_or(|before| !before.0.contains(&(key.clone(), value.clone()))) {
                let what = format!("is not a custom field of a {}", entity.wire());
                faults.add(format!("custom_fields.{key}"), violation(FieldCode::UnknownField, what));
            }
            continue;
        };
        if let Some(wrong) = field.refuses(value) {
            faults.add(format!("custom_fields.{key}"), wrong);
        }
    }
    faults.into_result()?;
    resolved.retain(|(_, value)| *value != CustomValue::Nothing);
    *values = Custom(resolved);
    Ok(())
}

impl CustomField {
    fn refuses(&self, value: &CustomValue) -> Option<Violation> {
        match (self.r#type, value) {
            (_, CustomValue::Nothing)
            | (FieldType::Text, CustomValue::Text(_))
            | (FieldType::Checkbox, CustomValue::Checked(_)) => None,
            (FieldType::Select, CustomValue::Text(text)) if self.options.0.contains(text) => None,
            (FieldType::Select, value) => {
                let text = if let CustomValue::Text(text) = value { text } else { "" };
                Some(not_allowed(text, &self.options.0.iter().map(String::as_str).collect::<Vec<_>>()))
            }
            (FieldType::Text, _) => Some(violation(FieldCode::WrongType, "must be a string")),
            (FieldType::Checkbox, _) => Some(violation(FieldCode::WrongType, "must be true or false")),
        }
    }
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 19,
    name: "custom fields",
    sql: "
CREATE TABLE custom_fields (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    entity TEXT NOT NULL,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL,
    options TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX custom_fields_created ON custom_fields (account_id, created_at, id);
CREATE INDEX custom_fields_entity ON custom_fields (account_id, entity, created_at, id);
CREATE UNIQUE INDEX custom_fields_key ON custom_fields (account_id, entity, key);
",
}];
