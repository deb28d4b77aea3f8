use bindpost::tools;

struct Counter(u32);

#[tools]
impl Counter {
    /// Counts on.
    #[tool]
    fn count(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    /// Ends.
    #[tool]
    fn end(self) -> u32 {
        self.0
    }
}

fn main() {
    let _ = bindpost::Server::builder("counter", "1.0.0").add(Counter(0));
}
