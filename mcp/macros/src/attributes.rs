//! Parses the options of attributes into plain values. Every mistake is reported at its location.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, ExprArray, Ident, Lit, LitBool, LitStr, Meta, Token, parenthesized, parse_quote};

use crate::mistakes::CompileErrors;

/// The kind of entry that an attribute creates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Tool,
    Resource,
    ResourceList,
    Prompt,
}

impl EntryKind {
    pub(crate) const ALL: [EntryKind; 4] =
        [EntryKind::Tool, EntryKind::Resource, EntryKind::ResourceList, EntryKind::Prompt];

    /// Returns the name of the attribute.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            EntryKind::Tool => "tool",
            EntryKind::Resource => "resource",
            EntryKind::ResourceList => "resource_list",
            EntryKind::Prompt => "prompt",
        }
    }

    /// Returns the options in the order in which errors list them: those of named entries, those of all
    /// entries, those of this kind.
    fn options(self) -> Vec<&'static str> {
        const ACCESS: [&str; 4] = ["anonymous", "scopes", "user_roles", "roles"];
        const NAMED: [&str; 8] =
            ["name", "description", "title", "timeout", "blocking", "icons", "meta", "rename_all"];
        let own: &[&str] = match self {
            EntryKind::Tool => &[
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "task",
                "allow_unknown_arguments",
                "ui",
                "for_pages_only",
            ],
            EntryKind::Resource => &["mime_type", "size"],
            EntryKind::ResourceList => return ACCESS.to_vec(),
            EntryKind::Prompt => &[],
        };
        [&NAMED[..], &ACCESS[..], own].concat()
    }
}

/// The options of an entry.
#[derive(Default)]
pub(crate) struct EntryOptions {
    /// The URI of a resource, or the scheme of a resource list.
    pub(crate) uri: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) title: Option<Expr>,
    pub(crate) mime_type: Option<Expr>,
    pub(crate) size: Option<Expr>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) anonymous: bool,
    pub(crate) scopes: Option<ExprArray>,
    pub(crate) user_roles: Option<ExprArray>,
    pub(crate) roles: Option<ExprArray>,
    pub(crate) timeout: Option<Expr>,
    pub(crate) icons: Option<Expr>,
    pub(crate) meta: Vec<(LitStr, Expr)>,
    pub(crate) task: Option<TaskMode>,
    pub(crate) rename_all: Option<ArgumentCase>,
    pub(crate) blocking: bool,
    pub(crate) allow_unknown_arguments: bool,
    /// The file of a page, or an expression that returns one.
    pub(crate) ui: Option<Expr>,
    pub(crate) for_pages_only: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum TaskMode {
    WhenPossible,
    Required,
}

/// The case of argument names.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentCase {
    Snake,
    Camel,
    Pascal,
    Kebab,
}

impl ArgumentCase {
    const KNOWN: &'static str = "snake_case, camelCase, PascalCase or kebab-case";

    fn parse(text: &str) -> Option<ArgumentCase> {
        match text {
            "snake_case" => Some(ArgumentCase::Snake),
            "camelCase" => Some(ArgumentCase::Camel),
            "PascalCase" => Some(ArgumentCase::Pascal),
            "kebab-case" => Some(ArgumentCase::Kebab),
            _ => None,
        }
    }

    /// Converts a Rust name to this case.
    pub(crate) fn apply(self, name: &str) -> String {
        let capital = |word: &str| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        };
        let words = name.split('_').filter(|word| !word.is_empty());
        match self {
            ArgumentCase::Snake => name.to_owned(),
            ArgumentCase::Kebab => words.collect::<Vec<_>>().join("-"),
            ArgumentCase::Pascal => words.map(capital).collect::<Vec<String>>().concat(),
            ArgumentCase::Camel => {
                let words = words.enumerate();
                words.map(|(at, word)| if at == 0 { word.to_owned() } else { capital(word) }).collect()
            }
        }
    }
}

impl EntryOptions {
    /// Parses the options of an attribute.
    pub(crate) fn parse(kind: EntryKind, tokens: TokenStream, mistakes: &mut CompileErrors) -> EntryOptions {
        let mut options = EntryOptions::default();
        let mut seen = Vec::new();
        let known = kind.options();
        let parser = |input: ParseStream<'_>| -> syn::Result<()> {
            if matches!(kind, EntryKind::Resource | EntryKind::ResourceList) && input.peek(LitStr) {
                options.uri = Some(input.parse()?);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            each_option(input, |option, input| {
                let name = option.to_string();
                if !known.contains(&name.as_str()) {
                    mistakes.add_at(option.span(), unknown_option_message(&name, &known, kind.attribute()));
                    return skip(input);
                }
                if seen.contains(&name) {
                    mistakes.add_at(option.span(), format!("`{name}` is given twice"));
                }
                seen.push(name);
                options.parse_option(option, input, mistakes)
            })
        };
        if let Err(mistake) = parser.parse2(tokens) {
            mistakes.add(mistake);
        }
        options
    }

    fn parse_option(
        &mut self,
        option: &Ident,
        input: ParseStream<'_>,
        mistakes: &mut CompileErrors,
    ) -> syn::Result<()> {
        match option.to_string().as_str() {
            "name" => self.name = text(option, input)?,
            "description" => self.description = value(input)?,
            "title" => self.title = value(input)?,
            "mime_type" => self.mime_type = value(input)?,
            "size" => self.size = value(input)?,
            "read_only" => self.read_only = Some(flag(option, input)?),
            "destructive" => self.destructive = Some(flag(option, input)?),
            "idempotent" => self.idempotent = Some(flag(option, input)?),
            "open_world" => self.open_world = Some(flag(option, input)?),
            "anonymous" => self.anonymous = flag(option, input)?,
            "scopes" => self.scopes = list(option, input)?,
            "user_roles" => self.user_roles = list(option, input)?,
            "roles" => self.roles = list(option, input)?,
            "blocking" => self.blocking = flag(option, input)?,
            "allow_unknown_arguments" => self.allow_unknown_arguments = flag(option, input)?,
            "ui" => self.ui = value(input)?,
            "for_pages_only" => self.for_pages_only = flag(option, input)?,
            "timeout" => self.timeout = value(input)?.map(|value| duration(value, mistakes)),
            "icons" => self.icons = value(input)?,
            "meta" => {
                let members;
                parenthesized!(members in input);
                let members = members.parse_terminated(
                    |input: ParseStream<'_>| {
                        let name: LitStr = input.parse()?;
                        input.parse::<Token![=]>()?;
                        Ok((name, input.parse::<Expr>()?))
                    },
                    Token![,],
                )?;
                self.meta.extend(members);
            }
            "task" => {
                self.task = Some(if input.peek(Token![=]) {
                    let text = text(option, input)?;
                    match text {
                        Some(text) if text.value() == "required" => TaskMode::Required,
                        other => {
                            let span = other.map_or(option.span(), |text| text.span());
                            mistakes.add_at(span, "write `task`, or `task = \"required\"`");
                            TaskMode::WhenPossible
                        }
                    }
                } else {
                    TaskMode::WhenPossible
                });
            }
            "rename_all" => {
                let text = text(option, input)?;
                if let Some(text) = text {
                    self.rename_all = ArgumentCase::parse(&text.value());
                    if self.rename_all.is_none() {
                        mistakes.add_at(text.span(), format!("`rename_all` must be {}", ArgumentCase::KNOWN));
                    }
                }
            }
            _ => skip(input)?,
        }
        Ok(())
    }
}

/// The options of a parameter, from `#[arg(…)]` and the doc comment.
#[derive(Default)]
pub(crate) struct ArgOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) default: Option<Expr>,
    pub(crate) complete: Option<Expr>,
    pub(crate) required: Option<bool>,
    /// The other options, as methods of `Argument`.
    pub(crate) keywords: Vec<(Ident, Expr)>,
}

impl ArgOptions {
    const KNOWN: [&'static str; 14] = [
        "name",
        "description",
        "default",
        "one_of",
        "format",
        "minimum",
        "maximum",
        "min_length",
        "max_length",
        "min_items",
        "max_items",
        "pattern",
        "required",
        "complete",
    ];

    /// Removes `#[arg(…)]` and the doc comments from a parameter and parses them.
    pub(crate) fn take_from(attributes: &mut Vec<Attribute>, mistakes: &mut CompileErrors) -> ArgOptions {
        let mut options = ArgOptions::default();
        let documented = doc_of(attributes);
        attributes.retain(|attribute| {
            if attribute.path().is_ident("doc") {
                return false;
            }
            if !attribute.path().is_ident("arg") {
                return true;
            }
            if let Err(mistake) = options.parse_attribute(attribute, mistakes) {
                mistakes.add(mistake);
            }
            false
        });
        if options.description.is_none() && !documented.is_empty() {
            options.description = Some(text_expr(&documented));
        }
        options
    }

    fn parse_attribute(&mut self, attribute: &Attribute, mistakes: &mut CompileErrors) -> syn::Result<()> {
        let Meta::List(list) = &attribute.meta else {
            let example = "`#[arg]` needs options: `#[arg(minimum = 1, maximum = 100)]`";
            return Err(syn::Error::new_spanned(attribute, example));
        };
        let mut seen = Vec::new();
        let parser = |input: ParseStream<'_>| {
            each_option(input, |option, input| {
                let name = option.to_string();
                if !Self::KNOWN.contains(&name.as_str()) {
                    mistakes.add_at(option.span(), unknown_option_message(&name, &Self::KNOWN, "arg"));
                    return skip(input);
                }
                if seen.contains(&name) {
                    mistakes.add_at(option.span(), format!("`{name}` is given twice"));
                }
                seen.push(name.clone());
                match name.as_str() {
                    "name" => self.name = text(option, input)?,
                    "description" => self.description = value(input)?,
                    "default" => self.default = value(input)?.map(typed_list),
                    "complete" => self.complete = value(input)?,
                    "required" => self.required = Some(flag(option, input)?),
                    _ => {
                        if let Some(value) = value(input)? {
                            self.keywords.push((option.clone(), value));
                        }
                    }
                }
                Ok(())
            })
        };
        parser.parse2(list.tokens.clone())
    }
}

/// Calls `take` with the name and the input of every option. After an invalid option, parsing continues
/// with the next one.
fn each_option(
    input: ParseStream<'_>,
    mut take: impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let mut mistakes: Option<syn::Error> = None;
    while !input.is_empty() {
        // Keywords like `default` and `type` are valid option names.
        let option = input.call(Ident::parse_any)?;
        if let Err(mistake) = take(&option, input) {
            match &mut mistakes {
                Some(all) => all.combine(mistake),
                none => *none = Some(mistake),
            }
            skip(input)?;
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    mistakes.map_or(Ok(()), Err)
}

/// Skips the value of an option.
fn skip(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

fn value(input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
    input.parse::<Token![=]>()?;
    input.parse().map(Some)
}

/// Returns an expression for a duration such as `"30s"`. Other expressions stay as they are.
fn duration(value: Expr, mistakes: &mut CompileErrors) -> Expr {
    let Expr::Lit(literal) = &value else { return value };
    if let Lit::Str(text) = &literal.lit
        && let Some(milliseconds) = parse_milliseconds(&text.value())
    {
        return parse_quote!(::std::time::Duration::from_millis(#milliseconds));
    }
    let example = "`timeout` is a duration: `timeout = \"30s\"` with the unit ms, s, m or h, or `Duration::from_secs(30)`";
    mistakes.add_at(literal.span(), example);
    parse_quote!(::std::time::Duration::ZERO)
}

fn parse_milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let factor = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Gives `[]` a type. The items make no difference, because there are none.
fn typed_list(value: Expr) -> Expr {
    match &value {
        Expr::Array(list) if list.elems.is_empty() => parse_quote!(([] as [(); 0])),
        _ => value,
    }
}

fn text(option: &Ident, input: ParseStream<'_>) -> syn::Result<Option<LitStr>> {
    let value = value(input)?;
    match value {
        Some(Expr::Lit(literal)) if matches!(literal.lit, Lit::Str(_)) => match literal.lit {
            Lit::Str(text) => Ok(Some(text)),
            _ => Ok(None),
        },
        other => {
            let example = format!("`{option}` must be a string: `{option} = \"…\"`");
            Err(syn::Error::new_spanned(other, example))
        }
    }
}

fn flag(option: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    input.parse::<Token![=]>()?;
    let value: Expr = input.parse()?;
    match &value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Bool(LitBool { value, .. }) => Ok(*value),
            other => Err(syn::Error::new_spanned(other, format!("write `{option}` or `{option} = false`"))),
        },
        other => Err(syn::Error::new_spanned(other, format!("write `{option}` or `{option} = false`"))),
    }
}

fn list(option: &Ident, input: ParseStream<'_>) -> syn::Result<Option<ExprArray>> {
    match value(input)? {
        Some(Expr::Array(list)) => Ok(Some(list)),
        other => {
            let example = format!("`{option}` must be a list: `{option} = [\"…\"]`");
            Err(syn::Error::new_spanned(other, example))
        }
    }
}

/// Returns the doc comments, with their line breaks.
pub(crate) fn doc_of(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(literal) = &pair.value
            && let Lit::Str(text) = &literal.lit
        {
            let text = text.value();
            lines.extend(
                text.split('\n').map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
            );
        }
    }
    lines.join("\n").trim().to_owned()
}

pub(crate) fn text_expr(text: &str) -> Expr {
    let literal = LitStr::new(text, Span::call_site());
    Expr::Lit(syn::ExprLit { attrs: Vec::new(), lit: Lit::Str(literal) })
}

/// Returns the error for an unknown option, with a suggestion or all options.
fn unknown_option_message(name: &str, known: &[&str], attribute: &str) -> String {
    // Names of the same options in other frameworks.
    let meant = match name {
        "readonly" | "readOnly" | "read_only_hint" | "readOnlyHint" => Some("read_only"),
        "destructive_hint" | "destructiveHint" => Some("destructive"),
        "idempotent_hint" | "idempotentHint" => Some("idempotent"),
        "open_world_hint" | "openWorldHint" | "openworld" => Some("open_world"),
        "allow_anonymous" | "public" => Some("anonymous"),
        "desc" | "doc" | "about" => Some("description"),
        "min" | "ge" => Some("minimum"),
        "max" | "le" => Some("maximum"),
        "values" | "enum" | "choices" | "allowed" => Some("one_of"),
        "regex" => Some("pattern"),
        "mime" | "mimeType" | "content_type" => Some("mime_type"),
        "scope" => Some("scopes"),
        "role" => Some("roles"),
        "icon" => Some("icons"),
        "rename" => Some("name"),
        "page" | "app" | "html" | "widget" => Some("ui"),
        _ => known.iter().copied().find(|known| is_near(name, known)),
    };
    let meant = meant.filter(|meant| known.contains(meant));
    match meant {
        Some(meant) => format!("`#[{attribute}]` has no option `{name}`; did you mean `{meant}`?"),
        None => format!("`#[{attribute}]` has no option `{name}`; the options are: {}", known.join(", ")),
    }
}

/// Returns whether two names differ by one added, missing, changed or swapped letter, or by case.
fn is_near(written: &str, known: &str) -> bool {
    let (written, known) = (written.to_lowercase().replace('_', ""), known.replace('_', ""));
    if written == known {
        return true;
    }
    let (a, b): (Vec<char>, Vec<char>) = (written.chars().collect(), known.chars().collect());
    let same_start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - same_start;
    let same_end = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    match (&a[same_start..a.len() - same_end], &b[same_start..b.len() - same_end]) {
        ([one, two], [three, four]) => (one, two) == (four, three),
        (a, b) => a.len() <= 1 && b.len() <= 1,
    }
}

/// Returns the options of an attribute inside an `impl` block with `#[tools]`.
pub(crate) fn tokens_of(attribute: &Attribute) -> TokenStream {
    match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) => TokenStream::new(),
        Meta::NameValue(pair) => pair.value.to_token_stream(),
    }
}
