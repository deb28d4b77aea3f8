/// The items of a category.
#[resource("menu://categories/{category_id}", name = "Menu Category")]
async fn category(#[arg(complete = categories)] category_id: String) -> Result<Vec<Item>, ToolError> {
    items(&category_id)
}
