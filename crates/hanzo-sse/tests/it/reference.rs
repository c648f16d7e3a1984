//! The HTML standard's parser written down step by step, for a stream that has already arrived. It is slow and
//! knows nothing of chunks, which is what makes it easy to compare with the text of the standard.

use hanzo_sse::SseFrame;

/// What a whole stream amounts to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub frames: Vec<SseFrame>,
    pub last_event_id: String,
    pub reconnection_time: Option<u64>,
}

pub fn parse(bytes: &[u8]) -> Outcome {
    let decoded = String::from_utf8_lossy(bytes);
    let text = decoded.strip_prefix('\u{FEFF}').unwrap_or(&decoded);
    // A CRLF pair, a lone LF and a lone CR each end a line. What follows the last of them is no line.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let Some((complete, _pending)) = text.rsplit_once('\n') else { return Outcome::default() };

    let mut outcome = Outcome::default();
    let mut data = String::new();
    let mut event_type = String::new();
    let mut id_of_event: Option<String> = None;
    let mut retry_of_event: Option<u64> = None;
    for line in complete.split('\n') {
        if line.is_empty() {
            if let Some(id) = &id_of_event {
                outcome.last_event_id.clone_from(id);
            }
            // "If the data buffer is an empty string, set the data buffer and the event type buffer to the empty
            // string and return." Each data line ends with an LF in the buffer, so no line and an empty line differ.
            if let Some(data) = data.strip_suffix('\n') {
                outcome.frames.push(SseFrame {
                    event: (!event_type.is_empty()).then(|| event_type.clone()),
                    data: data.to_owned(),
                    id: id_of_event.clone(),
                    retry: retry_of_event,
                });
            }
            data.clear();
            event_type.clear();
            id_of_event = None;
            retry_of_event = None;
            continue;
        }
        if line.starts_with(':') {
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut event_type),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "id" if !value.contains('\0') => id_of_event = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                if let Ok(milliseconds) = value.parse() {
                    retry_of_event = Some(milliseconds);
                    outcome.reconnection_time = Some(milliseconds);
                }
            }
            _ => {}
        }
    }
    outcome
}
