//! Points and polygons: constants in filters, distances, and the point-in-polygon test.

use super::ast::GeoPoint;

/// The mean radius of the earth in kilometres.
const RADIUS: f64 = 6_371.008_771_4;

/// Returns the distance on a sphere (haversine).
pub fn kilometres(from: GeoPoint, to: GeoPoint) -> f64 {
    let (start, end) = (from.latitude.to_radians(), to.latitude.to_radians());
    let north = ((end - start) / 2.0).sin().powi(2);
    let east = ((to.longitude - from.longitude).to_radians() / 2.0).sin().powi(2);
    let part = (north + start.cos() * end.cos() * east).clamp(0.0, 1.0);
    2.0 * RADIUS * part.sqrt().asin()
}

/// Whether a point lies inside a closed ring or on its edge. Longitude and latitude are used
/// as plane coordinates.
pub fn ring_contains(ring: &[GeoPoint], point: GeoPoint) -> bool {
    // The longitudes of rings across the 180th meridian exceed 180 degrees, so the point is also tested
    // one turn away.
    [0.0, 360.0, -360.0].iter().any(|turn| {
        let longitude = point.longitude + turn;
        ring_contains_plain(ring, GeoPoint { longitude, ..point })
    })
}

fn ring_contains_plain(ring: &[GeoPoint], point: GeoPoint) -> bool {
    // A point on the edge belongs to the polygon, even if it is slightly off by rounding.
    const HAIR: f64 = 1e-12;
    let mut inside = false;
    for (from, to) in ring.iter().zip(ring.iter().skip(1)) {
        let side = (to.longitude - from.longitude) * (point.latitude - from.latitude)
            - (to.latitude - from.latitude) * (point.longitude - from.longitude);
        let between = |a: f64, value: f64, b: f64| a.min(b) <= value && value <= a.max(b);
        if side.abs() <= HAIR
            && between(from.longitude, point.longitude, to.longitude)
            && between(from.latitude, point.latitude, to.latitude)
        {
            return true;
        }
        // Only the lower end of each edge counts, so that a corner is not crossed twice.
        if (from.latitude > point.latitude) != (to.latitude > point.latitude)
            && (side > 0.0) == (to.latitude > from.latitude)
        {
            inside = !inside;
        }
    }
    inside
}

/// Parses `POINT(longitude latitude)`.
pub(super) fn parse_point(text: &str) -> Result<GeoPoint, String> {
    let body = shape(text, "POINT").ok_or("Expected geography'POINT(longitude latitude)'.")?;
    point(body)
}

/// Parses `POLYGON((longitude latitude, …))`. The result is counterclockwise.
pub(super) fn parse_polygon(text: &str) -> Result<Vec<GeoPoint>, String> {
    let body = shape(text, "POLYGON")
        .and_then(parenthesised)
        .ok_or("Expected geography'POLYGON((longitude latitude, longitude latitude, …))'.")?;
    if body.contains(['(', ')']) {
        return Err("A polygon has one ring. Holes are not supported.".to_owned());
    }
    let ring = body.split(',').map(point).collect::<Result<Vec<_>, _>>()?;
    if ring.len() < 4 || ring.first() != ring.last() {
        return Err(
            "A polygon must have at least four points, and the last one must equal the first.".to_owned()
        );
    }
    let mut ring = across_the_meridian(ring);
    if area(&ring) < 0.0 {
        ring.reverse();
    }
    Ok(ring)
}

/// Unrolls a ring that crosses the 180th meridian. A step of more than 180 degrees means the shorter
/// way round the earth, and longitudes then exceed 180 degrees. A step of a full turn stays as it is.
fn across_the_meridian(ring: Vec<GeoPoint>) -> Vec<GeoPoint> {
    let steps = || ring.iter().zip(ring.iter().skip(1)).map(|(from, to)| to.longitude - from.longitude);
    if !steps().any(|step| step.abs() > 180.0) || steps().any(|step| step.abs() >= 360.0) {
        return ring;
    }
    let mut turn = 0.0;
    let mut unrolled: Vec<GeoPoint> = ring.first().copied().into_iter().collect();
    for (step, &to) in steps().zip(ring.iter().skip(1)) {
        if step.abs() > 180.0 {
            turn -= 360.0 * step.signum();
        }
        unrolled.push(GeoPoint { longitude: to.longitude + turn, ..to });
    }
    // A ring that does not close encloses a pole. It is used as written, in plane coordinates.
    if turn == 0.0 { unrolled } else { ring }
}

/// Returns twice the area. It is positive if the ring is counterclockwise.
fn area(ring: &[GeoPoint]) -> f64 {
    ring.iter()
        .zip(ring.iter().skip(1))
        .map(|(from, to)| from.longitude * to.latitude - to.longitude * from.latitude)
        .sum()
}

/// Returns the text in parentheses after `word`. A coordinate system may precede it.
fn shape<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim();
    let text = text.strip_prefix("SRID=4326;").unwrap_or(text);
    let (start, body) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then(|| parenthesised(body))?
}

fn parenthesised(text: &str) -> Option<&str> {
    text.trim().strip_prefix('(')?.strip_suffix(')')
}

fn point(text: &str) -> Result<GeoPoint, String> {
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().ok());
    let (Some(Some(longitude)), Some(Some(latitude)), None) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        let text = super::problem::quoted(text.trim());
        return Err(format!(
            "A point is a longitude and a latitude with a space between them, not '{text}'."
        ));
    };
    // Written so that NaN is rejected too.
    if !(longitude.abs() <= 180.0 && latitude.abs() <= 90.0) {
        return Err(format!(
            "The point {longitude} {latitude} is out of range. The longitude comes first, from -180 to 180, then the \
             latitude, from -90 to 90."
        ));
    }
    Ok(GeoPoint { longitude, latitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(longitude: f64, latitude: f64) -> GeoPoint {
        GeoPoint { longitude, latitude }
    }

    #[test]
    fn distances_are_in_kilometres() {
        let (seattle, berlin) = (at(-122.33, 47.61), at(13.4, 52.52));
        assert!((kilometres(seattle, berlin) - 8_120.0).abs() < 20.0, "{}", kilometres(seattle, berlin));
        assert_eq!(kilometres(berlin, berlin), 0.0);
        assert!((kilometres(at(179.5, 0.0), at(-179.5, 0.0)) - 111.19).abs() < 0.1);
        assert!((kilometres(at(0.0, 90.0), at(0.0, -90.0)) - 20_015.0).abs() < 1.0);
    }

    #[test]
    fn a_point_is_inside_or_on_the_line() {
        let ring = parse_polygon("POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))").unwrap();
        for point in [at(5.0, 5.0), at(0.0, 0.0), at(10.0, 5.0), at(5.0, 10.0), at(0.0, 3.3)] {
            assert!(ring_contains(&ring, point), "{point:?}");
        }
        for point in [at(-0.1, 0.0), at(11.0, 10.0), at(5.0, 10.1), at(-5.0, 10.0)] {
            assert!(!ring_contains(&ring, point), "{point:?}");
        }
    }

    #[test]
    fn a_concave_part_is_outside() {
        let ring = parse_polygon("POLYGON((0 0, 10 0, 10 10, 5 2, 0 10, 0 0))").unwrap();
        assert!(ring_contains(&ring, at(5.0, 1.0)));
        assert!(!ring_contains(&ring, at(5.0, 5.0)));
        assert!(ring_contains(&ring, at(1.0, 5.0)));
    }

    #[test]
    fn a_clockwise_ring_is_reversed() {
        let ring = parse_polygon("POLYGON((0 0, 0 10, 10 10, 10 0, 0 0))").unwrap();
        assert_eq!(ring, parse_polygon("POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))").unwrap());
    }

    #[test]
    fn a_ring_may_cross_the_180th_meridian() {
        let ring = parse_polygon("POLYGON((179 65, 179 66, -179 66, -179 65, 179 65))").unwrap();
        assert!(ring_contains(&ring, at(179.5, 65.5)));
        assert!(ring_contains(&ring, at(-179.5, 65.5)));
        assert!(ring_contains(&ring, at(180.0, 65.5)));
        assert!(!ring_contains(&ring, at(0.0, 65.5)));
    }

    #[test]
    fn the_whole_world_is_a_polygon() {
        let ring = parse_polygon("POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))").unwrap();
        assert!(ring_contains(&ring, at(0.0, 0.0)));
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        for text in [
            "POINT(1)",
            "POINT(1 2 3)",
            "POINT(a b)",
            "POINT 1 2",
            "POINT(NaN 2)",
            "POINT(2 91)",
            "",
            "POIN€",
        ] {
            assert!(parse_point(text).is_err(), "{text}");
        }
        for text in [
            "POLYGON((0 0, 1 1, 0 0))",
            "POLYGON((0 0, 1 0, 1 1, 0 1))",
            "POLYGON(0 0, 1 0, 1 1, 0 0)",
            "POLYGON((0 0, 9 0, 9 9, 0 0),(1 1, 2 1, 2 2, 1 1))",
            "POLYGON(())",
        ] {
            assert!(parse_polygon(text).is_err(), "{text}");
        }
        assert_eq!(parse_point("SRID=4326;point( 1.5  -2e0 )"), Ok(at(1.5, -2.0)));
    }
}
