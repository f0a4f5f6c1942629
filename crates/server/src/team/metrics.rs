//! Counters of the server in the text format of Prometheus. Labels have few values: templates of routes, not paths.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tanmi_pg::VERSION;

use super::TeamState;

/// The upper bounds of the buckets of durations, in seconds. A reader of the feed waits up to 25.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

#[derive(Default)]
pub struct Metrics(Mutex<Counters>);

#[derive(Default)]
struct Counters {
    /// By route, method and status.
    requests: BTreeMap<(String, String, u16), u64>,
    durations: BTreeMap<String, Histogram>,
    /// By the code of the error.
    errors: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Histogram {
    /// The number of durations in each bucket. Longer ones are only in `count`.
    buckets: [u64; BUCKETS.len()],
    sum: f64,
    count: u64,
}

impl Metrics {
    /// Counts a response.
    pub fn record(&self, route: &str, method: &str, status: u16, took: Duration, error: Option<&str>) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.requests.entry((route.to_owned(), method.to_owned(), status)).or_default() += 1;
        if let Some(code) = error {
            *counters.errors.entry(code.to_owned()).or_default() += 1;
        }
        let histogram = counters.durations.entry(route.to_owned()).or_default();
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            histogram.buckets[bucket] += 1;
        }
        histogram.sum += seconds;
        histogram.count += 1;
    }

    fn render(&self, text: &mut String) -> std::fmt::Result {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        head(text, "tanmi_requests_total", "counter", "Responses by route, method and status.")?;
        for ((route, method, status), count) in &counters.requests {
            writeln!(
                text,
                "tanmi_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} {count}"
            )?;
        }
        let name = "tanmi_request_duration_seconds";
        head(
            text,
            name,
            "histogram",
            "Time until the response began, by route. The feed waits for changes.",
        )?;
        for (route, histogram) in &counters.durations {
            let mut below = 0;
            for (bound, count) in BUCKETS.iter().zip(histogram.buckets) {
                below += count;
                writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"{bound}\"}} {below}")?;
            }
            let Histogram { sum, count, .. } = histogram;
            writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}")?;
            writeln!(text, "{name}_sum{{route=\"{route}\"}} {sum}")?;
            writeln!(text, "{name}_count{{route=\"{route}\"}} {count}")?;
        }
        let about = "Error responses by code. Those that begin with DATABASE are troubles of the database.";
        head(text, "tanmi_errors_total", "counter", about)?;
        for (code, count) in &counters.errors {
            writeln!(text, "tanmi_errors_total{{code=\"{code}\"}} {count}")?;
        }
        Ok(())
    }
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}")
}

/// Answers with the metrics of this server.
pub async fn metrics(State(state): State<Arc<TeamState>>) -> Response {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = render(&state, &mut text);
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn render(state: &TeamState, text: &mut String) -> std::fmt::Result {
    head(text, "tanmi_build_info", "gauge", "The version of the program and of its schema.")?;
    writeln!(text, "tanmi_build_info{{version=\"{}\",schema=\"{VERSION}\"}} 1", env!("CARGO_PKG_VERSION"))?;
    let pool = state.pool.status();
    head(text, "tanmi_pool_connections", "gauge", "Connections to the database.")?;
    for (what, count) in [("in_use", pool.in_use), ("idle", pool.idle), ("max", pool.max)] {
        writeln!(text, "tanmi_pool_connections{{state=\"{what}\"}} {count}")?;
    }
    let gauges = [
        ("tanmi_pool_waiting", "Threads that wait for a connection or behind other writers.", pool.waiting),
        ("tanmi_feed_readers", "Readers that wait for changes.", state.heads.reader_count()),
    ];
    for (name, about, value) in gauges {
        head(text, name, "gauge", about)?;
        writeln!(text, "{name} {value}")?;
    }
    state.metrics.render(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_recorded_responses_are_counted_by_route_and_bucket() {
        let metrics = Metrics::default();
        metrics.record("/a", "GET", 200, Duration::from_millis(7), None);
        metrics.record("/a", "GET", 200, Duration::from_secs(60), None);
        metrics.record("/a", "POST", 503, Duration::from_millis(1), Some("DATABASE_AWAY"));
        let mut text = String::new();
        metrics.render(&mut text).unwrap();
        for line in [
            "tanmi_requests_total{route=\"/a\",method=\"GET\",status=\"200\"} 2",
            "tanmi_request_duration_seconds_bucket{route=\"/a\",le=\"0.005\"} 1",
            "tanmi_request_duration_seconds_bucket{route=\"/a\",le=\"0.01\"} 2",
            "tanmi_request_duration_seconds_bucket{route=\"/a\",le=\"30\"} 2",
            "tanmi_request_duration_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3",
            "tanmi_request_duration_seconds_count{route=\"/a\"} 3",
            "tanmi_errors_total{code=\"DATABASE_AWAY\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
