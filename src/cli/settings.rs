//! What is wrong with the settings beyond their names and types, in one list: the server would find each at its own moment.

use std::path::Path;

use dns::Dns;
use engine::config::Config;

use crate::upkeep::scheduled::schedule::Schedule;

/// Adds what is wrong with the settings of the server.
pub fn check(config: &Config, wrong: &mut Vec<String>) {
    let before = wrong.len();
    engine::open::check_settings(config, wrong);
    wrong.extend(Schedule::read(config).1);
    wrong.extend(Dns::new(&config.dns_server).err().map(|why| format!("dns_server: {why}")));
    let (template, certificates) = (config.template.as_str(), config.smtp_ca_file.as_str());
    if !template.is_empty() {
        let read = std::fs::read_to_string(template);
        wrong.extend(read.err().map(|error| format!("template: cannot read {template}: {error}")));
    }
    if !certificates.is_empty() {
        let found = mail::check_certificates(Path::new(certificates));
        wrong.extend(found.err().map(|why| format!("smtp_ca_file: cannot use {certificates}: {why}")));
    }
    wrong.extend(store::check_url(&config.database_url).err().map(|why| format!("database_url: {why}")));
    wrong
        .extend(store::check_standby_url(&config.database_standby).err().map(|why| format!("database_standby: {why}")));
    let urls = [
        ("oidc_issuer", &config.oidc_issuer),
        ("mollie_url", &config.mollie_url),
        ("s3_endpoint", &config.s3_endpoint),
    ];
    for (name, url) in urls {
        let host = ["https://", "http://"].iter().find_map(|start| url.strip_prefix(start));
        if !url.is_empty() && host.is_none_or(|host| host.is_empty() || host.starts_with('/') || host.contains(' ')) {
            wrong.push(format!("{name}: '{url}' must be a URL that starts with https:// or http://"));
        }
    }
    if [&config.files, &config.backup_to].iter().any(|place| place.starts_with("s3://")) {
        wrong.extend(engine::open::missing_keys(config).map(|(setting, why)| format!("{setting}: {why}")));
    }
    let trace_to = config.trace_to.as_str();
    if !trace_to.is_empty() && !["http://", "https://"].iter().any(|start| trace_to.starts_with(start)) {
        wrong.push(format!("trace_to: '{trace_to}' must be a URL such as http://127.0.0.1:4318"));
    }
    // A value of the wrong type has its own error, and its default here.
    let new = wrong.split_off(before);
    let of = |line: &str| line.split(':').next().unwrap_or_default().to_string();
    let known: Vec<String> = wrong.iter().map(|line| of(line)).collect();
    wrong.extend(new.into_iter().filter(|line| !known.contains(&of(line))));
}
