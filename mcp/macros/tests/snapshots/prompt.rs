/// Asks for a summary.
#[prompt]
fn summary(
    /// Of what.
    subject: String,
    #[arg(complete = tones)] tone: Option<String>,
) -> String {
    format!("Summarise {subject}, {tone:?}")
}
