//! What a screen begins with: the module that draws it and the requests that it makes first. The page names the module and
//! contains the responses, so that the rows are there as soon as the script runs. A screen without a line here works too:
//! its module then loads when it is opened, and asks for itself.

use engine::registry::registry;
use engine::resource::{Method, Resource};

use super::schema::last;

/// A screen with an own line: its address, its module and its first requests. `{id}` is the id in the address, and
/// `{query}` its query.
struct Line(&'static str, &'static str, &'static [&'static str]);

/// The first line that matches counts.
const SCREENS: &[Line] = &[
    Line(
        "/",
        "screens/home.js",
        &["/v1/clients?per_page=1", "/v1/invoices?per_page=6", "/v1/reports/revenue", "/v1/reports/open"],
    ),
    Line("/me", "screens/me.js", &["/v1/me/sessions"]),
    Line("/hours", "screens/hours.js", &["/v1/hours?status=submitted&per_page=1"]),
    Line("/settings", "screens/settings.js", &["/v1/settings", "/v1/settings/usage"]),
    Line("/settings/users", "screens/users.js", &["/v1/users?per_page=100"]),
    Line("/settings/api-keys", "screens/keys.js", &["/v1/api-keys?per_page=100"]),
    Line("/settings/audit", "screens/audit.js", &["/v1/changes?order=desc&limit=50"]),
    Line("/settings/mail", "screens/mails.js", &["/v1/mails?limit=50"]),
    Line(
        "/batches",
        "screens/batches.js",
        &["/v1/direct-debit/batches?per_page=100", "/v1/settings", "/v1/direct-debit/batches/waiting"],
    ),
    Line("/deals", "screens/board.js", &["/v1/pipelines", "/v1/phases"]),
    Line(
        "/tickets",
        "screens/ticket.js",
        &["/v1/ticket-statuses", "/v1/tickets?per_page=50{query}&sort=last_message_at&order=desc"],
    ),
    Line("/tickets/new", "screens/ticket_form.js", &["/v1/ticket-statuses"]),
    Line("/tickets/{id}/edit", "screens/ticket_form.js", &["/v1/ticket-statuses", "/v1/tickets/{id}"]),
    Line(
        "/tickets/{id}",
        "screens/ticket.js",
        &[
            "/v1/ticket-statuses",
            "/v1/tickets?per_page=50{query}&sort=last_message_at&order=desc",
            "/v1/tickets/{id}",
            "/v1/tickets/{id}/messages",
        ],
    ),
    Line("/imports", "screens/imports.js", &["/v1/imports?per_page=50"]),
    Line("/imports/new", "screens/imports.js", &[]),
    Line("/imports/{id}", "screens/imports.js", &["/v1/imports/{id}"]),
    Line("/files", "screens/files.js", &[]),
    Line("/files/{id}", "screens/files.js", &["/v1/files/{id}"]),
    Line("/flows", "screens/flow.js", &["/v1/automation/flows?per_page=100", "/v1/reports/flows"]),
    Line("/flows/new", "screens/flow_editor.js", &[]),
    Line("/flows/{id}/edit", "screens/flow_editor.js", &["/v1/automation/flows/{id}"]),
    Line("/flows/{id}", "screens/flow.js", &["/v1/automation/flows/{id}"]),
    Line("/runs/{id}", "screens/flow.js", &["/v1/automation/runs/{id}"]),
    Line("/clients/{id}/edit", "form.js", &["/v1/clients/{id}"]),
    Line("/clients/{id}", "screens/client.js", &["/v1/clients/{id}"]),
    Line("/projects/{id}", "screens/project.js", &["/v1/projects/{id}"]),
    Line("/subscriptions/new", "screens/subscription_editor.js", &["/v1/tax-rates"]),
    Line("/subscriptions/{id}/edit", "screens/subscription_editor.js", &["/v1/subscriptions/{id}", "/v1/tax-rates"]),
    Line("/subscriptions/{id}", "screens/subscription.js", &["/v1/subscriptions/{id}"]),
    Line("/invoices/new", "screens/editor.js", &["/v1/tax-rates"]),
    Line("/invoices/{id}/edit", "screens/editor.js", &["/v1/invoices/{id}", "/v1/tax-rates"]),
    Line("/invoices/{id}", "screens/document.js", &["/v1/invoices/{id}"]),
    Line("/quotes/new", "screens/editor.js", &["/v1/tax-rates"]),
    Line("/quotes/{id}/edit", "screens/editor.js", &["/v1/quotes/{id}", "/v1/tax-rates"]),
    Line("/quotes/{id}", "screens/document.js", &["/v1/quotes/{id}"]),
    Line("/workorders/new", "screens/editor.js", &["/v1/tax-rates"]),
    Line("/workorders/{id}/edit", "screens/editor.js", &["/v1/workorders/{id}", "/v1/tax-rates"]),
    Line("/workorders/{id}", "screens/document.js", &["/v1/workorders/{id}"]),
];

/// What every screen begins with.
const EVERYWHERE: [&str; 2] = ["/v1/me", "/v1/overview"];

/// Where the settings are: a list of settings is below it.
const SETTINGS: &str = "settings";

/// How a screen begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The module that draws it.
    pub module: &'static str,
    /// The paths that it asks for, without `/console`.
    pub asks: Vec<String>,
}

/// Returns how the screen at an address begins, and none if there is no screen there.
pub fn beginning(path: &str, query: &str) -> Option<Beginning> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let more = if query.is_empty() { String::new() } else { format!("&{query}") };
    let own = SCREENS.iter().find_map(|Line(address, module, asks)| {
        let id = matches(address, &parts)?;
        let asks = asks.iter().map(|ask| ask.replace("{id}", id).replace("{query}", &more));
        Some(Beginning { module, asks: asks.collect() })
    });
    let Beginning { module, asks } = own.or_else(|| of_table(&parts, &more))?;
    let asks = EVERYWHERE.iter().map(ToString::to_string).chain(asks);
    Some(Beginning { module, asks: asks.collect() })
}

/// Compares an address with its parts; returns the id in it, or an empty one.
fn matches<'p>(address: &str, parts: &[&'p str]) -> Option<&'p str> {
    let wanted: Vec<&str> = address.split('/').filter(|part| !part.is_empty()).collect();
    let mut id = "";
    if wanted.len() != parts.len() {
        return None;
    }
    for (wanted, part) in wanted.iter().zip(parts) {
        match *wanted {
            "{id}" => id = *part,
            own if own == *part => {}
            _ => return None,
        }
    }
    Some(id)
}

/// The list, the form or the page of a table without a line of its own.
fn of_table(parts: &[&str], more: &str) -> Option<Beginning> {
    let in_settings = parts.len() > 1 && parts[0] == SETTINGS;
    let parts = if in_settings { &parts[1..] } else { parts };
    let (first, rest) = parts.split_first()?;
    let is_it = |own: &&Resource| {
        let lists = own.routes.iter().any(|route| route.method == Method::Get && route.path == own.path);
        lists && !own.path.contains('{') && last(&own.path) == *first
    };
    let Some(Resource { path, .. }) = registry().resources.iter().find(is_it) else {
        // A page of settings that is not a list.
        return in_settings.then(|| Beginning { module: "", asks: Vec::new() });
    };
    let (module, asks) = match rest {
        [] => ("list.js", vec![format!("{path}?per_page=50{more}")]),
        ["new"] => ("form.js", vec![]),
        [id, "edit"] => ("form.js", vec![format!("{path}/{id}")]),
        [id, ..] => ("detail.js", vec![format!("{path}/{id}")]),
    };
    Some(Beginning { module, asks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::assets;

    fn begins(path: &str, query: &str) -> (&'static str, Vec<String>) {
        let Beginning { module, asks } = beginning(path, query).unwrap();
        (module, asks[EVERYWHERE.len()..].to_vec())
    }

    #[test]
    fn a_screen_begins_with_what_its_address_names() {
        crate::registry::install();
        assert_eq!(begins("/invoices", ""), ("list.js", vec!["/v1/invoices?per_page=50".to_string()]));
        let filtered = "/v1/invoices?per_page=50&payment_status=paid".to_string();
        assert_eq!(begins("/invoices", "payment_status=paid"), ("list.js", vec![filtered]));
        assert_eq!(begins("/invoices/7", "").0, "screens/document.js");
        assert_eq!(begins("/settings/tax-rates/7", ""), ("detail.js", vec!["/v1/tax-rates/7".to_string()]));
        assert_eq!(begins("/products/new", ""), ("form.js", vec![]));
        assert_eq!(begins("/settings", "").0, "screens/settings.js");
        assert_eq!(begins("/settings/anything", ""), ("", vec![]));
        assert_eq!((beginning("/nowhere", ""), beginning("/v2/invoices", "")), (None, None));
    }

    #[test]
    fn every_module_and_route_of_a_screen_exists() {
        crate::registry::install();
        let assets = assets::current();
        for Line(address, module, asks) in SCREENS {
            assert!(!assets.text(module).is_empty(), "{address}: there is no {module}");
            for ask in asks.iter().chain(&EVERYWHERE) {
                let path = ask.split('?').next().unwrap_or_default().replace("{id}", "7");
                assert!(engine::registry::routes().at(&path).is_ok(), "{address}: there is no route {ask}");
            }
        }
    }

    /// The router of the console knows no address that the server would answer with 404.
    #[test]
    fn every_address_of_the_router_has_a_page() {
        crate::registry::install();
        let assets = assets::current();
        let addresses: Vec<&str> =
            assets.text("app.js").split("case \"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(addresses.len() > 2, "{addresses:?}");
        for address in addresses {
            assert!(beginning(&format!("/{address}"), "").is_some(), "/{address} has no line in src/console/first.rs");
        }
    }
}
