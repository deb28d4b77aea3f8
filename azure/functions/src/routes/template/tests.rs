use super::*;

/// Returns the values of a route as `a=1 b=2`, or `-` if the path does not match.
fn matched(template: &str, path: &str) -> String {
    let template = RouteTemplate::parse(template).unwrap_or_else(|error| panic!("{template}: {error}"));
    match template.match_path(path) {
        None => "-".to_owned(),
        Some(values) => {
            values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn paths_match_as_in_asp_net() {
    for (template, path, expected) in [
        ("api/orders", "/api/orders", ""),
        ("api/orders", "/API/Orders/", ""),
        ("api/orders", "/api/orders/1", "-"),
        ("api/orders", "/api", "-"),
        ("/api/orders/", "/api/orders", ""),
        ("", "/", ""),
        ("", "/a", "-"),
        ("api/{a}", "/api/x", "a=x"),
        ("api/{a}", "/api/x%20y%C3%A4", "a=x yä"),
        ("api/{a}", "/api/x%2Fy", "a=x%2Fy"),
        ("api/{a}", "/api/100%", "a=100%"),
        ("api/{a}", "/api", "-"),
        ("api/{a}", "/api//", "-"),
        ("api/{a}/{b}", "/api/1/2", "a=1 b=2"),
        ("api/{a}/{b?}", "/api/1", "a=1"),
        ("api/{a}/{b?}", "/api/1/2", "a=1 b=2"),
        ("api/{a}/{b=5}", "/api/1", "a=1 b=5"),
        ("api/{a=3}/{b=5}", "/api", "a=3 b=5"),
        ("api/{*rest}", "/api/a/b/c", "rest=a/b/c"),
        ("api/{**rest}", "/api/a%20b/c", "rest=a b/c"),
        ("api/{*rest}", "/api", ""),
        ("{*rest}", "/", ""),
        ("{*rest}", "/x/", "rest=x"),
        ("api/{*rest=home}", "/api", "rest=home"),
        ("api/{id:int}", "/api/7", "id=7"),
        ("api/{id:int}", "/api/x", "-"),
        ("api/{id:int:min(1)}", "/api/0", "-"),
        ("api/{id:int?}", "/api", ""),
        ("api/{id:int?}", "/api/x", "-"),
        ("api/{id:int=3}", "/api", "id=3"),
        ("api/{code:regex(^\\d{{3}}$)}", "/api/123", "code=123"),
        ("api/{code:regex(^\\d{{3}}$)}", "/api/12", "-"),
        ("api/{t:regex(^(a|b):c$)}", "/api/a:c", "t=a:c"),
        ("api/{file}.{ext}", "/api/a.b.txt", "file=a.b ext=txt"),
        ("api/{file}.{ext}", "/api/txt", "-"),
        ("api/{file}.{ext?}", "/api/txt", "file=txt"),
        ("api/{file}.{ext?}", "/api/a.txt", "file=a ext=txt"),
        ("api/v{version:int}", "/api/V2", "version=2"),
        ("api/v{version:int}", "/api/v", "-"),
        ("api/{a}-{b}-c", "/api/1-2-c", "a=1 b=2"),
        ("api/{{x}}", "/api/{x}", ""),
        ("api/{{x}}", "/api/%7Bx%7D", ""),
        ("products/{category:alpha}/{id:int?}", "/products/shoes/3", "category=shoes id=3"),
    ] {
        assert_eq!(matched(template, path), expected, "{template} {path}");
    }
}

#[test]
fn a_template_that_is_not_valid_is_reported() {
    for (template, reason) in [
        ("a b", "the route contains spaces"),
        ("a//b", "the route has consecutive '/'"),
        ("{}", "the route has an empty parameter '{}'"),
        ("{a", "the route has an unmatched '{'"),
        ("a}", "the route has an unmatched '}'"),
        ("{a}{b}", "the parameters 'a' and 'b' need a text between them"),
        ("{a}/{A}", "the route has the parameter 'A' twice"),
        ("{*a}/b", "the parameter '*a' takes the rest of the path, so it must be the last segment"),
        ("x{*a}", "the parameter '*a' must be a segment of its own"),
        ("{a?}/b", "only the last parameter may be optional, but 'a?' is not"),
        ("{a?}.txt", "the parameter 'a' cannot be optional, because text follows it"),
        ("{a}-{b?}", "before the optional parameter 'b?' a segment may only have '.'"),
        ("{a:number}", "parameter 'a': the constraint 'number' is not known"),
        ("{a=1?}", "the parameter 'a' has a default, so it cannot be optional too"),
        ("{*a?}", "the parameter '*a' may be empty anyway; remove the '?'"),
        ("{***a}", "the parameter '***a' has more than two '*'"),
        ("a?b=c", "the route contains '?', but a query is not part of a route"),
        ("{a{b}}", "the route has a '{' within a parameter"),
    ] {
        let error = RouteTemplate::parse(template).unwrap_err();
        assert!(error.starts_with(reason), "{template}: {error}");
    }
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn neither_a_template_nor_a_path_panics(template in "[a{}:()=?*/.%é-]{0,24}", path in "[a{}:%é0-9/.]{0,24}") {
            if let Ok(template) = RouteTemplate::parse(&template) {
                let _ = template.match_path(&path);
            }
        }
    }
}
