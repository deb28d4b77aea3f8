#[resource_list("menu", scopes = ["menu.read"])]
async fn menu(State(menu): State<Menu>) -> Vec<Resource> {
    menu.resources()
}
