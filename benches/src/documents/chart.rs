//! A bar chart as SVG that follows the light or dark theme of the viewer.

use std::fmt::Write;

pub struct Bar {
    pub label: String,
    pub value: f64,
    pub goal: Option<f64>,
}

const STEP: usize = 24;
const LEFT: f64 = 330.0;
const WIDTH: f64 = 420.0;
/// The value at the right edge; longer bars are cut off.
const FULL: f64 = 1.25;

const STYLE: &str = "text { font: 13px system-ui, sans-serif; fill: #1f2328 } .bar { fill: #0969da } \
    .missed { fill: #bc4c00 } .line { stroke: #8c959f } .goal { stroke: #1f2328; stroke-width: 2 } \
    @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #4493f8 } .missed { fill: #f0883e } \
    .line { stroke: #6e7681 } .goal { stroke: #e6edf3 } }";

/// Draws one bar per line, with a mark at its goal. A bar that misses its goal has a different colour.
pub fn svg(title: &str, bars: &[Bar]) -> String {
    let (width, height) = (LEFT + WIDTH + 60.0, 60 + bars.len() * STEP);
    let at = |value: f64| LEFT + value.min(FULL) / FULL * WIDTH;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <text x=\"8\" y=\"18\">{title}; 1 = equally fast; the mark is the goal; longer bars end at {FULL}</text>\n"
    );
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (x, end) = (at(tick), height - 6);
        let _ = writeln!(
            svg,
            "<line class=\"line\" x1=\"{x}\" x2=\"{x}\" y1=\"44\" y2=\"{end}\" stroke-dasharray=\"2 3\"/>\
             <text x=\"{x}\" y=\"38\" text-anchor=\"middle\">{tick}</text>"
        );
    }
    for (place, Bar { label, value, goal }) in bars.iter().enumerate() {
        let (top, end) = (50 + place * STEP, at(*value));
        // The value stands after the mark.
        let after = goal.map_or(end, |goal| end.max(at(goal))) + 6.0;
        let class = if goal.is_some_and(|goal| *value < goal) { "missed" } else { "bar" };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"16\" rx=\"2\"/>\
             <text x=\"{after:.1}\" y=\"{}\">{value:.2}</text>",
            LEFT - 8.0,
            top + 13,
            end - LEFT,
            top + 13
        );
        if let Some(goal) = goal {
            let x = at(*goal);
            let _ = writeln!(
                svg,
                "<line class=\"goal\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
                top - 3,
                top + 19
            );
        }
    }
    svg + "</svg>\n"
}
