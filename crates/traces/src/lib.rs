//! Traces in the form of OpenTelemetry: spans with the target [`TARGET`] are sent to a collector with OTLP over HTTP.
//!
//! Without a collector no subscriber wants these spans, and a span costs one atomic load.

mod courier;

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use courier::Courier;

/// The target of the spans that are sent. Other spans and events are not.
pub const TARGET: &str = "kantoor::trace";

/// How long the last spans may take when the program ends.
const GOODBYE: Duration = Duration::from_secs(2);

/// Where traces go, and how many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The collector, such as `http://127.0.0.1:4318`.
    pub collector: String,
    /// One in this many traces is sent, unless the caller's `traceparent` has decided.
    pub one_in: u64,
    /// The version of the program.
    pub version: String,
}

/// The connection to the collector. Dropping it sends what is left.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    /// Why the collector cannot be called, if this machine has no certificates of authorities.
    pub uncertified: Option<String>,
}

impl Traces {
    /// Starts the thread that sends spans in batches. Whether the collector answers is found out later: nothing waits
    /// for it, and spans that it does not take are dropped.
    pub fn start(settings: &Settings) -> Result<Traces, String> {
        let address = format!("{}/v1/traces", settings.collector.trim_end_matches('/'));
        let courier = Courier::new(&address)?;
        let uncertified = courier.uncertified().map(str::to_string);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(courier)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address)
            .build()
            .map_err(|error| error.to_string())?;
        // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME are read first.
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let mut resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", settings.version.clone()));
        if !named {
            resource = resource.with_service_name("kantoor");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(sampler(settings.one_in))))
            .with_resource(resource.build())
            .build();
        Ok(Traces { provider, uncertified })
    }

    /// Returns the layer of the subscriber that collects the spans.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        // What only a developer of this program would read costs an attribute per span.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("kantoor"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(filter_fn(|found| found.is_span() && found.target() == TARGET))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _ = self.provider.shutdown_with_timeout(GOODBYE);
    }
}

#[expect(clippy::float_arithmetic, reason = "a share of traces, no money")]
fn sampler(one_in: u64) -> Sampler {
    match one_in {
        0 => Sampler::AlwaysOff,
        1 => Sampler::AlwaysOn,
        _ => Sampler::TraceIdRatioBased(1.0 / one_in as f64),
    }
}

/// Gives a span another name.
pub fn rename(span: &Span, name: String) {
    span.context().span().update_name(name);
}

/// Makes a span that has not been entered a child of the caller's span, by the headers of W3C Trace Context. Invalid
/// ones are ignored.
pub fn continue_from(span: &Span, traceparent: &str, tracestate: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    let mut sent = HashMap::from([("traceparent".to_string(), traceparent.to_string())]);
    sent.extend(tracestate.map(|state| ("tracestate".to_string(), state.to_string())));
    let context = TraceContextPropagator::new().extract_with_context(&opentelemetry::Context::new(), &sent);
    if context.span().span_context().is_valid() {
        let _ = span.set_parent(context);
    }
}
