//! A request and its answer, redirections included.
//!
//! They are followed here and not in the client: each one is checked like the first address, what identifies the caller goes
//! to no other origin, and a loop ends at its first repetition.

use std::collections::BTreeMap;
use std::error::Error as _;

use hanzo_net::Url;
use hanzo_net::client;
use hanzo_net::guard;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Coding, Deadline, parse_url, refused, shown};
use crate::contract::Call;

/// How many redirections are followed.
const MAX_HOPS: usize = 10;

/// What a model would not guess of a server it has just started.
const SANDBOX_LOOPBACK: &str = "; a server that was started in the sandbox has a loopback of its own there: ask it with a \
                                command, such as curl";

/// What may go to another origin than the caller named. Any other header may hold a credential.
const HARMLESS: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::USER_AGENT,
    header::CONTENT_TYPE,
    header::RANGE,
    header::IF_RANGE,
];

/// Headers a caller does not set: they say how the bytes travel.
const OURS: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
];

/// Which redirections are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Redirects {
    /// All.
    #[default]
    Follow,
    /// Those that stay with the same scheme, host and port.
    SameOrigin,
    /// None.
    None,
}

/// What to send.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    pub(super) redirects: Redirects,
    pub(super) coding: Coding,
}

/// What came, up to the end of the headers.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) response: Response,
    /// Where it came from.
    pub(super) url: Url,
    /// Where we were sent on the way.
    pub(super) hops: Vec<String>,
    /// Why a redirection was not followed.
    pub(super) held: Option<&'static str>,
}

/// The headers of a caller.
pub(super) fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, ToolError> {
    let wrong = |name: &str, what: &str| {
        ToolError::new(ErrorCode::InvalidArguments, format!("the header `{name}` {what}"))
            .with_details(json!({ "field": format!("headers.{name}") }))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let parsed =
            HeaderName::try_from(name.as_str()).map_err(|_| wrong(name, "has a name that cannot be sent"))?;
        if OURS.contains(&parsed) {
            return Err(wrong(name, "follows from the request and cannot be set"));
        }
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| wrong(name, "has a value that cannot be sent"))?;
        value.set_sensitive(!HARMLESS.contains(&parsed));
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// Sends `order` and follows where it leads.
pub(super) async fn send(
    call: &Call<'_>,
    mut order: Order,
    deadline: Deadline,
) -> Result<Arrived, ToolError> {
    let guard = call.host.net.guard(call.context.caller);
    let mut hops = Vec::new();
    let mut seen = vec![(order.method.clone(), order.url.clone())];
    loop {
        guard.check_literal(&order.url).map_err(|error| refused(&error))?;
        let client = call.host.net.client(&guard, &order.url, order.coding)?;
        let mut request =
            client.request(order.method.clone(), order.url.clone()).headers(order.headers.clone());
        if let Some(body) = &order.body {
            request = request.body(body.clone());
        }
        let sent = deadline.limit(&format!("the answer of `{}`", host(&order.url)), request.send()).await?;
        let response = sent.map_err(|error| {
            let mut told = failure(&error, &order.url);
            if error.is_connect()
                && client::is_loopback(&order.url)
                && !call.host.spawner.confinement().network
            {
                told.message.push_str(SANDBOX_LOOPBACK);
            }
            told
        })?;
        let next = match next(&order, &response) {
            Next::Done => return Ok(Arrived { response, url: order.url, hops, held: None }),
            Next::Held(why) => return Ok(Arrived { response, url: order.url, hops, held: Some(why) }),
            Next::To(url) => url,
        };
        hops.push(shown(&next));
        let looped = |what: &str| {
            let error = ToolError::new(ErrorCode::Unavailable, format!("`{}` {what}", host(&order.url)));
            Err(error.with_details(json!({ "redirects": hops })))
        };
        let step = (redirected_method(response.status(), &order.method), next);
        if seen.contains(&step) {
            return looped("redirects in a circle");
        }
        if hops.len() > MAX_HOPS {
            return looped("redirects without an end");
        }
        seen.push(step.clone());
        go_on(&mut order, step);
    }
}

enum Next {
    Done,
    Held(&'static str),
    To(Url),
}

fn next(order: &Order, response: &Response) -> Next {
    let status = response.status();
    let follows = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = response.headers().get(header::LOCATION).filter(|_| follows) else {
        return Next::Done;
    };
    // Locations are not always ASCII, though they should be.
    let location = String::from_utf8_lossy(location.as_bytes());
    let Ok(url) = order.url.join(&location) else {
        return Next::Held("the redirection leads to no URL");
    };
    if parse_url(url.as_str(), &["http", "https"]).is_err() {
        return Next::Held("the redirection leads out of the web");
    }
    let same = url.origin() == order.url.origin();
    match order.redirects {
        Redirects::None => return Next::Held("redirections are not followed, as asked"),
        Redirects::SameOrigin if !same => {
            return Next::Held("the redirection leads to another origin, where it is not followed, as asked");
        }
        _ => {}
    }
    if !same && order.body.is_some() && redirected_method(status, &order.method) == order.method {
        return Next::Held(
            "the redirection would send the body to another origin; ask there if that is meant",
        );
    }
    Next::To(url)
}

/// The method after a redirection, as browsers do it.
fn redirected_method(status: StatusCode, method: &Method) -> Method {
    let stays = match status.as_u16() {
        301 | 302 => method != Method::POST,
        303 => method == Method::HEAD,
        _ => true,
    };
    if stays { method.clone() } else { Method::GET }
}

fn go_on(order: &mut Order, (method, url): (Method, Url)) {
    if method != order.method {
        order.body = None;
        order.headers.remove(header::CONTENT_TYPE);
    }
    if url.origin() != order.url.origin() {
        let kept = order.headers.iter().filter(|(name, _)| HARMLESS.contains(name));
        order.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    order.method = method;
    order.url = url;
}

/// Host and port, to name a server.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// What the client said, for the caller. It quotes nothing a server wrote.
pub(super) fn failure(error: &reqwest::Error, url: &Url) -> ToolError {
    if let Some(refusal) = guard::refusal(error) {
        return refused(refusal);
    }
    let host = host(url);
    let mut reason = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = error.to_string();
        cause = error.source();
    }
    let (code, what) = if error.is_timeout() {
        (ErrorCode::Timeout, "did not answer in time")
    } else if error.is_connect() {
        (ErrorCode::Unavailable, "cannot be reached")
    } else if error.is_builder() {
        (ErrorCode::InvalidArguments, "cannot be asked this")
    } else {
        (ErrorCode::Unavailable, "broke off or answered with what is no HTTP")
    };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    ToolError::new(code, format!("`{host}` {what}{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_headers_go_to_another_origin() {
        let given = ["authorization", "cookie", "x-api-key", "accept", "content-type"];
        let given = given.into_iter().map(|name| (name.to_owned(), "v".to_owned())).collect();
        let mut order = Order {
            url: Url::parse("https://a.test/x").unwrap(),
            method: Method::POST,
            headers: headers(&given).unwrap(),
            body: Some("b".into()),
            redirects: Redirects::Follow,
            coding: Coding::Expand,
        };
        go_on(&mut order, (Method::POST, Url::parse("https://a.test/y").unwrap()));
        assert_eq!(order.headers.len(), 5);
        go_on(&mut order, (Method::GET, Url::parse("http://a.test/y").unwrap()));
        assert_eq!(order.headers.keys().collect::<Vec<_>>(), ["accept"], "another scheme is another origin");
        assert_eq!(order.body, None);
    }

    #[test]
    fn headers_that_frame_the_message_cannot_be_set() {
        for name in ["Host", "content-length", "Transfer-Encoding", "a b", ""] {
            let given = [(name.to_owned(), "x".to_owned())].into();
            assert_eq!(headers(&given).unwrap_err().code, ErrorCode::InvalidArguments, "{name}");
        }
        let given = [("x".to_owned(), "a\r\nEvil: 1".to_owned())].into();
        assert_eq!(headers(&given).unwrap_err().code, ErrorCode::InvalidArguments);
    }
}
