//! A vector as bytes, for the store: each number in four bytes, the lowest first.

pub fn encode(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// `None` when the bytes are not a whole number of numbers: the store is damaged.
pub fn decode(bytes: &[u8]) -> Option<Vec<f32>> {
    let mut vector = Vec::new();
    decode_into(bytes, &mut vector).then_some(vector)
}

/// Like [`decode`], into memory that serves for many vectors; `false` leaves it empty.
pub fn decode_into(bytes: &[u8], vector: &mut Vec<f32>) -> bool {
    vector.clear();
    let (numbers, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return false;
    }
    vector.extend(numbers.iter().map(|&number| f32::from_le_bytes(number)));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_survives_the_store() {
        let vector = [0.0, -1.5, f32::MIN_POSITIVE, 3.25e20];
        assert_eq!(decode(&encode(&vector)).unwrap(), vector);
        assert_eq!(encode(&[1.0]), [0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn damaged_bytes_are_noticed() {
        let mut vector = vec![1.0];
        assert!(!decode_into(&[1, 2, 3, 4, 5], &mut vector) && vector.is_empty());
    }
}
