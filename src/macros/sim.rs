//! `#[paceline::sim]`: a function with a simulation as its argument becomes a test under many seeds.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use super::{MacroError, attribute, read_value};

/// The number of seeds if no option says it.
const SEEDS: &str = "100";

/// Rewrites the function. If there is an error, returns it as a `compile_error!`, and the function beside it.
pub(super) fn expand(options: TokenStream, function: TokenStream) -> TokenStream {
    match Options::parse(options).and_then(|options| rewrite(&options, function.clone())) {
        Ok(tokens) => tokens,
        Err(error) => error.into_tokens().into_iter().chain(function).collect(),
    }
}

/// `seeds = EXPRESSION, crate = PATH`.
#[derive(Default)]
struct Options {
    seeds: TokenStream,
    path: TokenStream,
}

impl Options {
    fn parse(tokens: TokenStream) -> Result<Self, MacroError> {
        let mut options = Self::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(name) = tokens.next() {
            let value = match name.to_string().as_str() {
                "seeds" => &mut options.seeds,
                "crate" => &mut options.path,
                other => {
                    let message = format!(
                        "`#[paceline::sim]` has no option `{other}`: there are `seeds = N` and `crate = path`"
                    );
                    return Err(MacroError(name.span(), message));
                }
            };
            read_value(&name, value, &mut tokens)?;
            tokens.next();
        }
        for (option, default) in [(&mut options.seeds, SEEDS), (&mut options.path, "::paceline")] {
            if option.is_empty() {
                *option = default.parse().expect("they are tokens");
            }
        }
        Ok(options)
    }
}

/// `fn NAME(ARGUMENT) { BODY }` becomes `fn NAME() { fn NAME(ARGUMENT) { BODY }
/// PATH::sim::run_seeds(SEEDS, PACKAGE, NAME, NAME) }`. Returns an error for anything but a function with one
/// argument, without a result, and with a body.
fn rewrite(options: &Options, function: TokenStream) -> Result<TokenStream, MacroError> {
    let error = |span: Span, what: &str| {
        let message =
            format!("`#[paceline::sim]` is for a `fn name(sim: &mut Sim)` without a result: this {what}");
        Err(MacroError(span, message))
    };
    let tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_word =
        |token: &TokenTree, word| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let Some(at) = tokens.iter().position(|token| is_word(token, "fn")) else {
        return error(Span::call_site(), "is no function");
    };
    if let Some(word) = tokens[..at].iter().find(|token| is_word(token, "async")) {
        return error(word.span(), "one is `async`; `sim.block_on` runs a future");
    }
    let [TokenTree::Ident(name), TokenTree::Group(arguments), TokenTree::Group(body)] = &tokens[at + 1..]
    else {
        return error(tokens[at].span(), "one has another form");
    };
    if arguments.delimiter() != Delimiter::Parenthesis || arguments.stream().is_empty() {
        return error(arguments.span(), "one has no argument");
    }
    let Options { seeds, path } = options;
    let call = format!(
        "::sim::run_seeds({seeds}, ::core::env!(\"CARGO_PKG_NAME\"), \
         ::core::concat!(::core::module_path!(), \"::{name}\"), {name});"
    );
    let mut inside: TokenStream = tokens[at..].iter().cloned().collect();
    inside.extend(path.clone());
    inside.extend(call.parse::<TokenStream>().expect("it is a call"));
    let no_arguments = Group::new(Delimiter::Parenthesis, TokenStream::new());
    let mut outer = Group::new(Delimiter::Brace, inside);
    outer.set_span(body.span());
    let outer = [no_arguments, outer].map(TokenTree::Group);
    Ok(attribute("test").into_iter().chain(tokens[..at + 2].iter().cloned()).chain(outer).collect())
}
