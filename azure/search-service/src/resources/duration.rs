//! Durations as ISO 8601 writes them: `PT5M`, `P1D`, `PT1H30M`.

use std::time::Duration;

/// Days and smaller units, whole numbers except for the seconds. Months and years have no fixed length.
pub fn parse(text: &str) -> Option<Duration> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = units(date, &[('D', 86_400)])?;
    let seconds = units(time, &[('H', 3_600), ('M', 60), ('S', 1)])?;
    days.checked_add(seconds)
}

/// Numbers with their units, in this order, each at most once.
fn units(mut text: &str, units: &[(char, u64)]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for (unit, seconds) in units {
        let Some((number, rest)) = text.split_once(*unit) else { continue };
        let (whole, fraction) = match number.split_once(['.', ',']) {
            Some((whole, fraction)) if *seconds == 1 => (whole, Some(fraction)),
            Some(_) => return None,
            None => (number, None),
        };
        let whole = digits(whole)?.checked_mul(*seconds)?;
        sum = sum.checked_add(Duration::from_secs(whole))?;
        if let Some(fraction) = fraction {
            digits(fraction).filter(|_| fraction.len() <= 9)?;
            let nanos = format!("{fraction:0<9}").parse().ok()?;
            sum = sum.checked_add(Duration::from_nanos(nanos))?;
        }
        text = rest;
    }
    text.is_empty().then_some(sum)
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_days_hours_minutes_and_seconds() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("PT5M"), Some(300.0));
        assert_eq!(seconds("P1D"), Some(86_400.0));
        assert_eq!(seconds("P1DT2H3M4.5S"), Some(93_784.5));
        assert_eq!(seconds("PT0S"), Some(0.0));
    }

    #[test]
    fn refuses_everything_else() {
        for text in
            ["", "P", "PT", "5M", "PT5", "PTM", "P1Y", "P1M", "PT1M1H", "PT-5M", "PT1.5H", "P1DT", "pt5m"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("P99999999999999999999D"), None);
        assert_eq!(parse("P18446744073709551615D"), None);
    }
}
