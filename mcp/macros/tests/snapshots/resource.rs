/// The settings.
#[resource("config://settings", anonymous)]
fn settings() -> Json<Settings> {
    Json(Settings::default())
}
