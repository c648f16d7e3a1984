use hanzo_engine::tokens::{Estimator, INITIAL_BYTES_PER_TOKEN, Size, TOKENS_PER_ATTACHMENT};
use hanzo_protocol::message::{Message, ModelRequest};
use proptest::prelude::*;

fn bytes(bytes: u64) -> Size {
    Size { bytes, attachments: 0 }
}

#[test]
fn the_first_report_is_believed_and_later_ones_correct_it() {
    let mut estimator = Estimator::new();
    assert!((estimator.bytes_per_token() - INITIAL_BYTES_PER_TOKEN).abs() < f64::EPSILON);
    assert_eq!(estimator.tokens(bytes(3_500)), 1_000);
    estimator.observe(bytes(40_000), 10_000);
    assert_eq!(estimator.tokens(bytes(4_000)), 1_000);
    // One odd prompt moves it by less than a third.
    estimator.observe(bytes(10_000), 10_000);
    assert!((3.0..3.2).contains(&estimator.bytes_per_token()), "{}", estimator.bytes_per_token());
    for _ in 0..30 {
        estimator.observe(bytes(30_000), 10_000);
    }
    assert!((estimator.bytes_per_token() - 3.0).abs() < 0.01);
}

#[test]
fn what_was_counted_is_taken_as_counted() {
    let mut estimator = Estimator::new();
    estimator.observe(bytes(40_000), 10_000);
    assert_eq!(estimator.request(bytes(44_000)), 11_000);
    // Smaller than before: something was folded, and all of it is estimated.
    assert_eq!(estimator.request(bytes(20_000)), 5_000);
    estimator.observe(bytes(40_000), 12_000);
    assert_eq!(estimator.request(bytes(40_000)), 12_000);
    estimator.forget_last();
    assert!(estimator.request(bytes(40_000)) < 12_000);
}

#[test]
fn a_vendor_that_does_not_count_and_a_tiny_prompt_teach_nothing() {
    let mut estimator = Estimator::new();
    estimator.observe(bytes(1_000_000), 0);
    estimator.observe(bytes(10), 200);
    assert!((estimator.bytes_per_token() - INITIAL_BYTES_PER_TOKEN).abs() < f64::EPSILON);
}

#[test]
fn an_image_counts_as_an_image_and_not_by_its_bytes() {
    let mut estimator = Estimator::new();
    let with_image = Size { bytes: 35_000, attachments: 2 };
    assert_eq!(estimator.tokens(with_image), 10_000 + 2 * TOKENS_PER_ATTACHMENT);
    estimator.observe(with_image, 10_000 + 2 * TOKENS_PER_ATTACHMENT);
    assert!((estimator.bytes_per_token() - 3.5).abs() < 0.01);
}

#[test]
fn a_request_is_its_messages_and_its_tools() {
    let request =
        ModelRequest { messages: vec![Message::user("x".repeat(1_000))], ..ModelRequest::default() };
    let size = Size::of_request(&request);
    assert!((1_000..1_100).contains(&size.bytes), "{size:?}");
}

proptest! {
    #[test]
    fn whatever_is_reported_the_ratio_stays_within_reason(
        reports in proptest::collection::vec((any::<u64>(), 0u64..50, any::<u64>()), 0..40),
        asked in 0u64..1 << 50,
    ) {
        let mut estimator = Estimator::new();
        for (bytes, attachments, reported) in reports {
            estimator.observe(Size { bytes, attachments }, reported);
            prop_assert!((1.0..=8.0).contains(&estimator.bytes_per_token()));
        }
        let tokens = estimator.tokens(Size { bytes: asked, attachments: 0 });
        prop_assert!(tokens <= asked.saturating_add(1));
        let _ = estimator.request(Size { bytes: asked, attachments: asked });
    }
}
