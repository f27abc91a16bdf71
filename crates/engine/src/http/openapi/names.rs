//! The names of operations and schemas. Generated clients name their functions and types after them, so each follows from the
//! route by one rule: a verb, the record, and what the path adds to it.

use crate::resource::{Method, RequestBody, Resource, Returns, Route};

/// `listTicketStatuses`, `getInvoicePdf`, `rotateWebhookEndpointSecret`
pub fn operation_id(resource: &Resource, route: &Route) -> String {
    let (one, many) = (schema_name(resource), plural(resource));
    // A path may only add the name of the record, after one that several resources share.
    let added = Some(added_words(resource, route)).filter(|words| pascal(words.iter().copied()) != many);
    let added = added.unwrap_or_default();
    let rest = pascal(added.iter().copied());
    match (route.returns, route.method) {
        (Returns::Stream(_), _) => format!("stream{many}"),
        (Returns::Content, _) => {
            format!("download{one}{}", pascal(added.iter().copied().filter(|word| *word != "content")))
        }
        (_, Method::Get) if returns_many(route) && rest.is_empty() => format!("list{many}"),
        (_, Method::Get) if returns_many(route) => format!("list{one}{rest}"),
        (_, Method::Get) => format!("get{one}{rest}"),
        (_, Method::Patch) => format!("update{one}{rest}"),
        (_, Method::Put) => format!("replace{one}{rest}"),
        (_, Method::Delete) => format!("delete{one}{rest}"),
        (Returns::CreatedOf(_), Method::Post) => format!("create{one}{rest}"),
        (_, Method::Post) if rest.is_empty() || route.body == RequestBody::Create => format!("create{rest}{one}"),
        (_, Method::Post) => {
            let several = route.fields.iter().any(|field| field.name == "ids");
            let object = if several { many } else { one };
            format!("{}{object}{}", added[0], pascal(added[1..].iter().copied()))
        }
    }
}

/// `Product`, `TicketMessage`: the name of the record, after the words that its table has in front of it.
pub fn schema_name(resource: &Resource) -> String {
    let shape = resource.shape;
    let before = match shape.table.rsplit_once('_') {
        Some((before, last)) if resource.is_kept() && last != shape.name && is_plural_of(last, shape.name) => before,
        _ => "",
    };
    pascal(before.split('_').chain(shape.name.split('_')))
}

/// `Products`, `TicketStatuses`
fn plural(resource: &Resource) -> String {
    let one = schema_name(resource);
    let last = |words: &'static str| words.rsplit('_').next().unwrap_or(words);
    let (name, table) = (last(resource.shape.name), last(resource.shape.table));
    if is_plural_of(table, name) {
        format!("{}{}", &one[..one.len() - name.len()], pascal([table].into_iter()))
    } else {
        format!("{one}s")
    }
}

/// Whether a word may be the plural of a name: `identities`, of `identity`.
fn is_plural_of(word: &str, name: &str) -> bool {
    word.starts_with(&name[..name.len() - 1])
}

/// Returns the singular of the last word of a name: `InvoiceRow` for `InvoiceRows`.
pub fn singular(name: &str) -> String {
    match name.strip_suffix("ies") {
        Some(start) => format!("{start}y"),
        None => name.strip_suffix('s').filter(|start| !start.ends_with('s')).unwrap_or(name).to_string(),
    }
}

/// Joins words as `InOneName`; they may contain hyphens and underscores.
pub fn pascal<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words = words.flat_map(|word| word.split(['-', '_', '/', '.', ' ']));
    words
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
        })
        .collect()
}

/// Returns the words that the path of a route has after that of its resource, without placeholders.
fn added_words<'r>(resource: &Resource, route: &'r Route) -> Vec<&'r str> {
    let rest = route.path.strip_prefix(&resource.path).unwrap_or_default();
    let segments = rest.split('/').filter(|segment| !segment.is_empty() && !segment.starts_with('{'));
    segments.flat_map(|segment| segment.split('-')).collect()
}

fn returns_many(route: &Route) -> bool {
    route.lists() || matches!(route.returns, Returns::ListOfParts(_) | Returns::Found(..))
}
