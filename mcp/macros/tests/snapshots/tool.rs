/// Adds two numbers.
#[tool]
pub async fn add(
    /// The first one.
    a: f64,
    b: f64,
) -> f64 {
    a + b
}
