//! Floods of equal rejections.

use super::*;

fn of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["event"] == event)
        .collect()
}

/// J4: of a flood of equal rejections, the first ones have records, and the others one record a
/// second with their number, byte for byte. Usage counts them all.
#[test]
fn a_flood_has_one_record_a_second() {
    let mut fixture = Fixture::new(1 << 20);
    // The second begins.
    fixture.writer.write_queued();
    for number in 0..2 {
        (0..100).for_each(|_| fixture.record("/mcp", Some("token.malformed")));
        fixture.record("/mcp", None);
        fixture.writer.write_queued();
        fixture.clock.advance(Duration::from_secs(1));
        fixture.writer.write_queued();
        let records = fixture.sink.records(0);
        let decisions = of_event(&records, "decision").len();
        assert_eq!(decisions, 10 + number + 1);
        assert_eq!(of_event(&records, "rejections").len(), number + 1);
    }
    fixture.record("/mcp", Some("token.malformed"));
    assert_eq!(fixture.finish(), Progress::End);
    let text = fixture.sink.text(0);
    let summed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("\"rejections\""))
        .collect();
    let expected = |second: u8, from: u8, count: u8| {
        format!(
            r#"{{"timestamp":"2026-01-01T00:00:0{second}.000Z","event":"rejections","count":{count},"count.from":"2026-01-01T00:00:0{from}.000Z","count.to":"2026-01-01T00:00:0{from}.000Z","deny.code":"token.malformed","client.address":"192.0.2.7"}}"#
        )
    };
    let expected = [expected(1, 0, 90), expected(2, 1, 100), expected(2, 2, 1)];
    assert_eq!(summed, expected);
    let records = fixture.sink.records(0);
    assert_eq!(of_event(&records, "usage")[0]["usage.denied"], 201);
}

/// J4: failures and admitted requests are never summed.
#[test]
fn only_rejections_are_summed() {
    let mut fixture = Fixture::new(1 << 20);
    for code in [None, Some("upstream.unreachable")] {
        (0..50).for_each(|_| fixture.record("/mcp", code));
    }
    assert_eq!(fixture.finish(), Progress::End);
    let records = fixture.sink.records(0);
    assert_eq!(of_event(&records, "decision").len(), 100);
    assert_eq!(of_event(&records, "rejections").len(), 0);
}
