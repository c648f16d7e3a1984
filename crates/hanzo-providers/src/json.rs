//! Writing a request body field by field, in an order we choose: what never changes comes first and the messages come
//! last, so that a request begins with the bytes of the one before it and a vendor's prompt cache can tell.

use serde::Serialize;

/// A JSON object being written.
pub(crate) struct ObjectWriter {
    out: Vec<u8>,
}

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self { out: vec![b'{'] }
    }

    pub(crate) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        write(&mut self.out, value);
    }

    /// A field that is an array of values, each already written.
    pub(crate) fn raw_array(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        self.name(name);
        self.out.push(b'[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(value.as_ref());
        }
        self.out.push(b']');
    }

    /// A field that is an array.
    pub(crate) fn array(&mut self, name: &str, values: impl IntoIterator<Item = impl Serialize>) {
        self.name(name);
        self.out.push(b'[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(&mut self.out, &value);
        }
        self.out.push(b']');
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    fn name(&mut self, name: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        write(&mut self.out, name);
        self.out.push(b':');
    }
}

/// Writes `value`, which is one of our own wire types or comes from JSON: writing those to memory cannot fail.
pub(crate) fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value)
        .expect("a value of string keys and finite numbers is written to memory");
}

/// `value` as JSON text.
pub(crate) fn bytes(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, value);
    out
}

/// Arguments of a call in a form every vendor takes back: as the model wrote them when they are a JSON object, otherwise
/// wrapped, because some servers refuse a whole conversation for one malformed call in its past.
pub(crate) fn sendable_arguments(arguments: &str) -> std::borrow::Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(arguments) {
        Ok(raw) if raw.get().starts_with('{') => raw.get().into(),
        _ => serde_json::json!({"malformed_arguments": arguments}).to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_in_the_order_they_were_written() {
        let mut object = ObjectWriter::new();
        object.field("b", "x\"");
        object.array("a", [1, 2]);
        object.raw_array("c", ["{}", "[]"]);
        assert_eq!(String::from_utf8(object.finish()).unwrap(), r#"{"b":"x\"","a":[1,2],"c":[{},[]]}"#);
    }

    #[test]
    fn malformed_arguments_go_back_as_something_valid() {
        assert_eq!(sendable_arguments(r#" {"a": 1} "#), r#"{"a": 1}"#);
        assert_eq!(sendable_arguments(""), "{}");
        for malformed in ["{\"a\":", "[1]", "null", "rm -rf", "{} {}"] {
            let sent: serde_json::Value = serde_json::from_str(&sendable_arguments(malformed)).unwrap();
            assert_eq!(sent["malformed_arguments"], malformed);
        }
    }
}
