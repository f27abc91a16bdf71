//! The two text formats of metrics: OpenMetrics 1.0, and the format 0.0.4 of Prometheus, which every other program reads.

use std::collections::HashMap;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics.
    OpenMetrics,
    /// Prometheus.
    Prometheus,
}

impl Format {
    /// Chooses the format that an `Accept` header prefers: OpenMetrics only if the header names it.
    pub fn accepted(accept: &str) -> Format {
        let (mut open, mut plain) = (0, 0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| thousandths(part.strip_prefix("q=")?)).unwrap_or(1000);
            match name.as_str() {
                "application/openmetrics-text" => open = quality.max(open),
                "text/plain" | "text/*" | "*/*" => plain = quality.max(plain),
                _ => {}
            }
        }
        if open > 0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Returns the content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts metrics from OpenMetrics to this format.
    pub fn of(self, open: String) -> String {
        match self {
            Format::OpenMetrics => open,
            Format::Prometheus => plain(&open),
        }
    }
}

/// Parses a quality such as `0.75`.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let rest = format!("{rest:0<3}");
    Some(whole.parse::<u32>().ok()?.min(1) * 1000 + rest.get(..3)?.parse::<u32>().ok()?).map(|all| all.min(1000))
}

/// Converts OpenMetrics: there, the name of a family lacks the ending of its samples, which here is part of it.
fn plain(open: &str) -> String {
    let types: HashMap<&str, &str> =
        open.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let name = |family: &str| match types.get(family) {
        Some(&"counter") => format!("{family}_total"),
        Some(&"info") => format!("{family}_info"),
        _ => family.to_string(),
    };
    let mut text = String::with_capacity(open.len());
    for line in open.lines() {
        let comment = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        match comment.and_then(|(word, rest)| Some((word, rest.split_once(' ')?))) {
            Some(("HELP", (family, help))) => {
                text.push_str(&format!("# HELP {} {}\n", name(family), help.replace("\\\"", "\"")));
            }
            Some(("TYPE", (family, kind))) => {
                let kind = match kind {
                    "info" => "gauge",
                    "unknown" => "untyped",
                    kind => kind,
                };
                text.push_str(&format!("# TYPE {} {kind}\n", name(family)));
            }
            _ if line.starts_with('#') => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_chooses_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [prometheus, "application/openmetrics-text", "Application/OpenMetrics-Text; version=1.0.0, */*"] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        let preferred = "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5";
        for accept in ["", "*/*", "text/html,*/*;q=0.8", "application/openmetrics-text;q=0, */*", preferred] {
            assert_eq!(Format::accepted(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn families_are_named_as_their_samples() {
        let open = "# HELP a_b Things \\\"x\\\".\n# TYPE a_b counter\n# UNIT a_b b\na_b_total{c=\"d\"} 1\n\
                    # TYPE build info\nbuild_info{v=\"1\"} 1\n# TYPE g gauge\ng 2\n# TYPE u unknown\nu 1\n# EOF\n";
        let expected = "# HELP a_b_total Things \"x\".\n# TYPE a_b_total counter\na_b_total{c=\"d\"} 1\n\
                        # TYPE build_info gauge\nbuild_info{v=\"1\"} 1\n# TYPE g gauge\ng 2\n# TYPE u untyped\nu 1\n";
        assert_eq!(Format::Prometheus.of(open.to_string()), expected);
        assert_eq!(Format::OpenMetrics.of(open.to_string()), open);
    }
}
