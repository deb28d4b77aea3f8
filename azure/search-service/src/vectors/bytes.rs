//! Encodes vectors for the store: each number has four bytes in little-endian order.

pub(crate) fn encode(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Decodes a vector into a reusable buffer. Returns `false` and leaves the buffer empty if the number of
/// bytes is not a multiple of four, because the store is damaged.
pub(crate) fn decode_into(bytes: &[u8], vector: &mut Vec<f32>) -> bool {
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
        let mut decoded = Vec::new();
        assert!(decode_into(&encode(&vector), &mut decoded) && decoded == vector);
        assert_eq!(encode(&[1.0]), [0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let mut vector = vec![1.0];
        assert!(!decode_into(&[1, 2, 3, 4, 5], &mut vector) && vector.is_empty());
    }
}
