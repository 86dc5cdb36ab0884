//! The attributes `#[paceline::main]` and `#[paceline::test]`: see there.
//!
//! They take `async` away from a function and hand its body to paceline. For that a look at a dozen tokens will do, so nothing has
//! to be compiled before this.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Has `main` be `async`: its body runs in `paceline::block_on`.
///
/// ```
/// #[paceline::main]
/// async fn main() -> std::io::Result<()> {
///     paceline::spawn(async { println!("in a task") }).await;
///     Ok(())
/// }
/// ```
///
/// The same by hand is `fn main() -> std::io::Result<()> { paceline::block_on(async { .. }) }`. With `threads`, the default instance has
/// so many workers, whatever `PACELINE_THREADS` says; other settings are those of `paceline::Builder`, whose `install` goes before `block_on`.
///
/// ```
/// #[paceline::main(threads = 2)]
/// async fn main() {
///     let workers = paceline::spawn(async { paceline::metrics().workers }).await;
///     assert_eq!(workers, 2);
/// }
/// ```
///
/// Where the crate has another name, or is re-exported by another one, say so: `#[web::paceline::main(crate = web::paceline)]`.
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    expand("main", options, function)
}

/// Has a test be `async`: its body runs in a runtime of its own, which ends with it.
///
/// ```
/// # mod tests {
/// #[paceline::test]
/// async fn a_task_is_done() {
///     assert_eq!(paceline::spawn(async { 1 }).await, 1);
/// }
///
/// #[paceline::test(threads = 4)]
/// #[should_panic]
/// async fn on_more_than_one_thread() -> Result<(), std::io::Error> {
///     panic!("by intent")
/// }
/// # }
/// ```
///
/// The test's own thread takes part, and one worker does unless `threads` says how many. Tasks that are left when the test is done are
/// cancelled.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expand("test", options, function)
}

/// What is wrong, and where. None of these is compiled:
///
/// ```compile_fail
/// #[paceline::main]
/// fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main]
/// async fn main(arguments: Vec<String>) {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(worker_threads = 2)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(threads = 2, threads = 3)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main]
/// struct Main;
/// ```
struct Wrong(Span, String);

fn expand(name: &str, options: TokenStream, function: TokenStream) -> TokenStream {
    match Options::parse(options).and_then(|options| rewrite(name, &options, function.clone())) {
        Ok(tokens) => tokens,
        // The function stays, for the compiler and the editor to say what else they find.
        Err(wrong) => wrong.into_tokens().into_iter().chain(function).collect(),
    }
}

/// `threads = EXPRESSION, crate = PATH`.
#[derive(Default)]
struct Options {
    threads: TokenStream,
    path: TokenStream,
}

impl Options {
    fn parse(tokens: TokenStream) -> Result<Self, Wrong> {
        let mut options = Self::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(name) = tokens.next() {
            let value = match name.to_string().as_str() {
                "threads" => &mut options.threads,
                "crate" => &mut options.path,
                other => {
                    let message =
                        format!("there is no option `{other}`: it may be `threads = N` or `crate = path`");
                    return Err(Wrong(name.span(), message));
                }
            };
            if !tokens.next().is_some_and(|token| is_punct(&token, '=')) || !value.is_empty() {
                return Err(Wrong(name.span(), format!("this is to be `{name} = ..`, once")));
            }
            value.extend(std::iter::from_fn(|| tokens.next_if(|token| !is_punct(token, ','))));
            if value.is_empty() {
                return Err(Wrong(name.span(), format!("`{name} =` wants a value")));
            }
            tokens.next();
        }
        if options.path.is_empty() {
            options.path = "::paceline".parse().expect("it is a path");
        }
        Ok(options)
    }
}

/// `async fn NAME(..) .. { BODY }` becomes `fn NAME(..) .. { PATH::__macros::KIND(THREADS, async move { BODY }) }`.
fn rewrite(kind: &str, options: &Options, function: TokenStream) -> Result<TokenStream, Wrong> {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_word =
        |token: &TokenTree, word| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let Some(at) = tokens.iter().position(|token| is_word(token, "fn")) else {
        return Err(Wrong(Span::call_site(), format!("`#[paceline::{kind}]` is for an `async fn`")));
    };
    let Some(asynchronous) = tokens[..at].iter().position(|token| is_word(token, "async")) else {
        return Err(Wrong(
            tokens[at].span(),
            format!("`#[paceline::{kind}]` is for an `async fn`: this one is not"),
        ));
    };
    let is_group = |token: &TokenTree, delimiter| matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter);
    let arguments = tokens[at..].iter().find(|token| is_group(token, Delimiter::Parenthesis));
    if let Some(TokenTree::Group(group)) = arguments {
        if !group.stream().is_empty() {
            return Err(Wrong(
                group.span(),
                format!("`#[paceline::{kind}]` has nothing to give to arguments"),
            ));
        }
    }
    let Some(TokenTree::Group(body)) = tokens.pop().filter(|token| is_group(token, Delimiter::Brace)) else {
        return Err(Wrong(tokens[at].span(), "the function has no body".into()));
    };
    tokens.remove(asynchronous);
    let threads = if options.threads.is_empty() {
        "::core::option::Option::None".parse().expect("it is an expression")
    } else {
        let value = Group::new(Delimiter::Parenthesis, options.threads.clone());
        call("::core::option::Option::Some".parse().expect("it is a path"), value)
    };
    // What it returns is at fault where types differ, so the compiler is to point there, at its last token; not at the attribute.
    let last = body.stream().into_iter().last().map_or(body.span(), |token| token.span());
    let place = Span::call_site().located_at(last);
    let span = body.span();
    let mut arguments = threads;
    arguments.extend([
        TokenTree::Punct(Punct::new(',', Spacing::Alone)),
        TokenTree::Ident(Ident::new("async", place)),
        TokenTree::Ident(Ident::new("move", place)),
        TokenTree::Group(body),
    ]);
    let mut run = options.path.clone();
    run.extend(format!("::__macros::{kind}").parse::<TokenStream>().expect("it is a path"));
    let run = at_place(call(run, Group::new(Delimiter::Parenthesis, arguments)), place);
    let mut body = Group::new(Delimiter::Brace, run);
    body.set_span(span);
    tokens.push(TokenTree::Group(body));
    let attribute = if kind == "test" { "#[::core::prelude::v1::test]" } else { "" };
    Ok(attribute.parse::<TokenStream>().expect("it is an attribute").into_iter().chain(tokens).collect())
}

fn call(function: TokenStream, arguments: Group) -> TokenStream {
    function.into_iter().chain([TokenTree::Group(arguments)]).collect()
}

/// The same tokens, but not those inside of groups, as if they were written at that place.
fn at_place(tokens: TokenStream, place: Span) -> TokenStream {
    let move_there = |mut token: TokenTree| {
        token.set_span(place);
        token
    };
    tokens.into_iter().map(move_there).collect()
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

impl Wrong {
    /// `::core::compile_error! { MESSAGE }`, which the compiler shows at the place.
    fn into_tokens(self) -> TokenStream {
        let Self(span, message) = self;
        let text = format!("::core::compile_error! {{ {message:?} }}");
        at_place(text.parse().expect("it is a macro's call"), span)
    }
}
