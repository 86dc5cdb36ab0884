//! The attributes `#[paceline::main]`, `#[paceline::test]` and `#[paceline::sim]`.
//!
//! The first two remove `async` from a function and pass its body to paceline; the third puts the function
//! into a test that calls it. To do that they examine about a dozen tokens, so this crate needs no parser and
//! no other dependency.

#[cfg(feature = "sim")]
mod sim;

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Makes an `async fn main` the program's `main`: its body runs in `paceline::block_on`.
///
/// ```
/// #[paceline::main]
/// async fn main() -> std::io::Result<()> {
///     paceline::spawn(async { println!("in a task") }).await;
///     Ok(())
/// }
/// ```
///
/// Without the attribute, write `fn main() -> std::io::Result<()> { paceline::block_on(async { .. }) }`.
///
/// | option | meaning |
/// |---|---|
/// | `threads = N` | the default instance has `N` workers, whatever `PACELINE_THREADS` says |
/// | `current_thread` | the body runs in a runtime without workers: the thread of `main` polls its tasks |
/// | `crate = path` | the path of the crate, if it is renamed or re-exported |
///
/// For example, a crate `web` that re-exports paceline uses `#[web::paceline::main(crate = web::paceline)]`.
///
/// ```
/// #[paceline::main(threads = 2)]
/// async fn main() {
///     let workers = paceline::spawn(async { paceline::metrics().workers }).await;
///     assert_eq!(workers, 2);
/// }
/// ```
///
/// For other settings use `paceline::Builder`; its `install`, before `block_on`, sets them for the default
/// instance.
///
/// # Stopping on Ctrl-C
///
/// `Handle::current().drain(timeout)` accepts no tasks from outside, gives running tasks that long,
/// cancels the rest, and returns a report. Then `main` returns as usual. A second Ctrl-C is ignored unless
/// `main` waits for it during the drain; here it ends the process.
///
/// ```no_run
/// use std::io;
/// use std::time::Duration;
/// use futures_lite::future::or;
/// use paceline::{Handle, net::TcpListener, signal, spawn};
///
/// #[paceline::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:7000").await?;
///     spawn(async move {
///         while let Ok((stream, _peer)) = listener.accept().await {
///             spawn(serve(stream)).detach();
///         }
///     })
///     .detach();
///
///     signal::ctrl_c().await?;
///     let drain = async { io::Result::Ok(Handle::current().drain(Duration::from_secs(5)).await) };
///     let second = async {
///         signal::ctrl_c().await?;
///         std::process::exit(130)
///     };
///     let report = or(drain, second).await?;
///     println!("{report}");    // drained in 1.2s: 17 tasks finished, 2 were cancelled
///     Ok(())
/// }
/// # async fn serve(_: paceline::net::TcpStream) {}
/// ```
///
/// A connection on which no request arrives keeps the drain waiting until the deadline. The section "Shut
/// down gracefully" of `paceline::recipes` shows how a server tells its connections to end.
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    expand("main", options, function)
}

/// Makes an `async fn` a test: its body runs in a runtime of its own, which ends with the test.
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
/// The test's own thread polls tasks as well, and there is one worker unless an option says otherwise. Tasks
/// that are left at the end of the test are cancelled.
///
/// | option | meaning |
/// |---|---|
/// | `threads = N` | `N` workers |
/// | `current_thread` | no workers: the test's thread polls the tasks, in the same order each time |
/// | `start_paused` | the same, with the runtime's clock paused: waiting for a timer takes no time |
/// | `crate = path` | the path of the crate, if it is renamed or re-exported |
///
/// The option `start_paused` needs the feature `test-clock`; see `paceline::clock`.
///
/// `start_paused = true` and `current_thread = true` mean the same as the option without a value; `= false`
/// means the same as leaving it out.
///
/// ```
/// # mod tests {
/// use std::time::Duration;
/// use paceline::{Timer, clock, spawn};
///
/// #[paceline::test(start_paused)]
/// async fn an_hour_is_over_at_once() {
///     let start = clock::now();
///     let half = spawn(async { Timer::after(Duration::from_secs(1800)).await });
///     Timer::after(Duration::from_secs(3600)).await;
///     assert_eq!(clock::now() - start, Duration::from_secs(3600));
///     assert_eq!(half.await - start, Duration::from_secs(1800));
/// }
/// # }
/// ```
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expand("test", options, function)
}

/// Makes a function a test that runs in a simulation, under many seeds: see `paceline::sim`. Requires the
/// features `macros` and `sim` of paceline.
///
/// ```
/// # mod tests {
/// use std::time::Duration;
/// use paceline::sim::Sim;
/// use paceline::{Timer, timeout};
///
/// #[paceline::sim(seeds = 1000)]
/// fn nothing_is_late(sim: &mut Sim) {
///     let mut rng = sim.rng();
///     let work = async move { Timer::after(Duration::from_millis(rng.below(10))).await };
///     assert!(sim.block_on(timeout(Duration::from_millis(10), work)).is_ok());
/// }
/// # }
/// ```
///
/// The seeds count from zero. The first one runs twice, and the test fails if the two runs differ, as
/// `paceline::sim::check` does. A seed that fails is run again with fewer faults, and explained on standard
/// error, with the command that runs it again; see the chapter on simulations in the guide. That command sets
/// `PACELINE_SEED`: with this variable, the test runs under that seed only. `PACELINE_SEEDS` is another
/// number of seeds, or a range of them. If the test needs features of its package, add them to the command.
///
/// | option | meaning |
/// |---|---|
/// | `seeds = N` | the number of seeds; 100 without it |
/// | `crate = path` | the path of the crate, if it is renamed or re-exported |
///
/// None of these is compiled:
///
/// ```compile_fail
/// #[paceline::sim]
/// async fn test(sim: &mut paceline::sim::Sim) {}
/// ```
///
/// ```compile_fail
/// #[paceline::sim]
/// fn test() {}
/// ```
///
/// ```compile_fail
/// #[paceline::sim]
/// fn test(sim: &mut paceline::sim::Sim) -> u8 { 1 }
/// ```
///
/// ```compile_fail
/// #[paceline::sim(threads = 1)]
/// fn test(sim: &mut paceline::sim::Sim) {}
/// ```
#[cfg(feature = "sim")]
#[proc_macro_attribute]
pub fn sim(options: TokenStream, function: TokenStream) -> TokenStream {
    sim::expand(options, function)
}

/// An error: its place and its message. None of these is compiled:
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
///
/// ```compile_fail
/// #[paceline::main(threads = 2, current_thread)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(current_thread = 1)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(current_thread, current_thread)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(start_paused)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[paceline::main(flavor = "current_thread")]
/// async fn main() {}
/// ```
struct MacroError(Span, String);

/// Rewrites the function. If there is an error, returns it as a `compile_error!`, and the function beside it.
fn expand(kind: &'static str, options: TokenStream, function: TokenStream) -> TokenStream {
    let options = Options::parse(kind, options);
    match options.and_then(|options| rewrite(kind, &options, function.clone())) {
        Ok(tokens) => tokens,
        // The function is kept, so that the compiler and the editor report its other errors.
        Err(error) => error.into_tokens().into_iter().chain(without_async(kind, function)).collect(),
    }
}

/// `threads = EXPRESSION, current_thread, start_paused, crate = PATH`.
#[derive(Default)]
struct Options {
    threads: TokenStream,
    path: TokenStream,
    current_thread: Option<bool>,
    start_paused: Option<bool>,
}

type Tokens = std::iter::Peekable<proc_macro::token_stream::IntoIter>;

impl Options {
    /// Parses the options. The path of the crate is `::paceline` unless an option says otherwise.
    fn parse(kind: &str, tokens: TokenStream) -> Result<Self, MacroError> {
        let mut options = Self::default();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(name) = tokens.next() {
            match name.to_string().as_str() {
                "threads" => read_value(&name, &mut options.threads, &mut tokens)?,
                "crate" => read_value(&name, &mut options.path, &mut tokens)?,
                "current_thread" => read_flag(&name, &mut options.current_thread, &mut tokens)?,
                "start_paused" if kind == "test" => {
                    read_flag(&name, &mut options.start_paused, &mut tokens)?;
                }
                other => return Err(MacroError(name.span(), no_such_option(kind, other))),
            }
            options.check(&name)?;
            tokens.next();
        }
        if options.path.is_empty() {
            options.path = "::paceline".parse().expect("it is a path");
        }
        Ok(options)
    }

    /// Checks that the options so far fit together. `name` is the last of them.
    fn check(&self, name: &TokenTree) -> Result<(), MacroError> {
        let is_paused = self.start_paused == Some(true);
        if is_paused && !cfg!(feature = "test-clock") {
            let message =
                "`start_paused` needs paceline's feature `test-clock`: add it beside `macros` in Cargo.toml";
            return Err(MacroError(name.span(), message.into()));
        }
        if is_paused && self.current_thread == Some(false) {
            let message = "`start_paused` is for a runtime of the current thread: `current_thread = false` rules that out";
            return Err(MacroError(name.span(), message.into()));
        }
        if (is_paused || self.current_thread == Some(true)) && !self.threads.is_empty() {
            let option = if is_paused { "start_paused" } else { "current_thread" };
            let message = format!(
                "`{option}` is a runtime of the current thread, which has no workers: leave out `threads`"
            );
            return Err(MacroError(name.span(), message));
        }
        Ok(())
    }

    /// Returns the name of the function in `paceline::__macros` that runs the body, and whether it takes the
    /// number of threads.
    fn runner(&self, kind: &str) -> (String, bool) {
        if self.start_paused == Some(true) {
            (format!("{kind}_with_paused_clock"), false)
        } else if self.current_thread == Some(true) {
            (format!("{kind}_on_current_thread"), false)
        } else {
            (kind.into(), true)
        }
    }
}

/// Returns the message about an option that does not exist. For options of other runtimes the message names
/// the equivalent one.
fn no_such_option(kind: &str, option: &str) -> String {
    match option {
        "worker_threads" => return "`worker_threads` is called `threads` here: `threads = N`".into(),
        "flavor" => {
            return "there is no `flavor`: write `current_thread` for a runtime without workers, and nothing for one with them".into();
        }
        "start_paused" => {
            return "`start_paused` is for `#[paceline::test]`: see also `paceline::clock`".into();
        }
        _ => {}
    }
    let also = if kind == "test" { "`start_paused`, " } else { "" };
    format!(
        "`#[paceline::{kind}]` has no option `{option}`: there are `threads = N`, `current_thread`, {also}and `crate = path`"
    )
}

/// Reads the rest of `NAME = VALUE`, up to the next comma. Returns an error if there is no value, or if
/// `value` has one already.
fn read_value(name: &TokenTree, value: &mut TokenStream, tokens: &mut Tokens) -> Result<(), MacroError> {
    if tokens.next_if(|token| is_punct(token, '=')).is_none() || !value.is_empty() {
        return Err(MacroError(name.span(), format!("write `{name} = ..`, once")));
    }
    value.extend(std::iter::from_fn(|| tokens.next_if(|token| !is_punct(token, ','))));
    if value.is_empty() {
        return Err(MacroError(name.span(), format!("`{name} =` needs a value")));
    }
    Ok(())
}

/// Reads the rest of `NAME`, `NAME = true` or `NAME = false`. Returns an error for anything else, or if
/// `flag` is set already.
fn read_flag(name: &TokenTree, flag: &mut Option<bool>, tokens: &mut Tokens) -> Result<(), MacroError> {
    let value = match tokens.next_if(|token| is_punct(token, '=')) {
        None => Some(true),
        Some(_) => tokens.next().and_then(|token| token.to_string().parse().ok()),
    };
    let ends = tokens.peek().is_none_or(|token| is_punct(token, ','));
    if value.is_none() || !ends || flag.is_some() {
        return Err(MacroError(
            name.span(),
            format!("write `{name}`, `{name} = true` or `{name} = false`, once"),
        ));
    }
    *flag = value;
    Ok(())
}

/// `async fn NAME() .. { BODY }` becomes `fn NAME() .. { PATH::__macros::RUNNER(THREADS, async move { BODY })
/// }`. Returns an error for anything but an `async fn` with a body and without arguments.
fn rewrite(kind: &str, options: &Options, function: TokenStream) -> Result<TokenStream, MacroError> {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_word =
        |token: &TokenTree, word| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let Some(at) = tokens.iter().position(|token| is_word(token, "fn")) else {
        return Err(MacroError(Span::call_site(), format!("`#[paceline::{kind}]` is for an `async fn`")));
    };
    let Some(asynchronous) = tokens[..at].iter().position(|token| is_word(token, "async")) else {
        return Err(MacroError(
            tokens[at].span(),
            format!("`#[paceline::{kind}]` is for an `async fn`: this one is not"),
        ));
    };
    let is_group = |token: &TokenTree, delimiter| matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter);
    let arguments = tokens[at..].iter().find(|token| is_group(token, Delimiter::Parenthesis));
    if let Some(TokenTree::Group(group)) = arguments {
        if !group.stream().is_empty() {
            return Err(MacroError(
                group.span(),
                format!("`#[paceline::{kind}]` has nothing to give to arguments"),
            ));
        }
    }
    let Some(TokenTree::Group(body)) = tokens.pop().filter(|token| is_group(token, Delimiter::Brace)) else {
        return Err(MacroError(tokens[at].span(), "the function has no body".into()));
    };
    tokens.remove(asynchronous);
    let (runner, takes_threads) = options.runner(kind);
    let mut arguments = TokenStream::new();
    if takes_threads {
        arguments = if options.threads.is_empty() {
            "::core::option::Option::None".parse().expect("it is an expression")
        } else {
            let value = Group::new(Delimiter::Parenthesis, options.threads.clone());
            call("::core::option::Option::Some".parse().expect("it is a path"), value)
        };
        arguments.extend([TokenTree::Punct(Punct::new(',', Spacing::Alone))]);
    }
    // If types differ, the error is in the returned value: the compiler should point at its last token, not
    // at the attribute.
    let last = body.stream().into_iter().last().map_or(body.span(), |token| token.span());
    let place = Span::call_site().located_at(last);
    let span = body.span();
    arguments.extend([
        TokenTree::Ident(Ident::new("async", place)),
        TokenTree::Ident(Ident::new("move", place)),
        TokenTree::Group(body),
    ]);
    let mut run = options.path.clone();
    run.extend(format!("::__macros::{runner}").parse::<TokenStream>().expect("it is a path"));
    let run = at_place(call(run, Group::new(Delimiter::Parenthesis, arguments)), place);
    let mut body = Group::new(Delimiter::Brace, run);
    body.set_span(span);
    tokens.push(TokenTree::Group(body));
    Ok(attribute(kind).into_iter().chain(tokens).collect())
}

/// `async fn NAME(..) .. { BODY }` becomes `fn NAME() .. { async fn NAME(..) .. { BODY } loop {} }`; any
/// other item stays as it is.
///
/// An `async fn main`, or an `async` test, would be an error of its own beside the one that is reported. The
/// nested function lets the compiler check the body, so that its errors are shown and the items that it uses
/// do not seem unused.
fn without_async(kind: &str, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.clone().into_iter().collect();
    let position = |tokens: &[TokenTree], word| {
        tokens.iter().position(|token| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word))
    };
    let Some(at) = position(&tokens, "fn") else { return function };
    let Some(asynchronous) = position(&tokens[..at], "async") else { return function };
    let Some(TokenTree::Group(body)) = tokens.last() else { return function };
    if body.delimiter() != Delimiter::Brace {
        return function;
    }
    let mut inner: TokenStream = "#[allow(dead_code)] async".parse().expect("it is the head of a function");
    inner.extend(tokens[at..].iter().cloned());
    inner.extend("loop {}".parse::<TokenStream>().expect("it is an expression"));
    let mut outer = Group::new(Delimiter::Brace, inner);
    outer.set_span(body.span());
    tokens.pop();
    tokens.push(TokenTree::Group(outer));
    if let Some(TokenTree::Group(arguments)) = tokens.get_mut(at + 2) {
        *arguments = Group::new(arguments.delimiter(), TokenStream::new());
    }
    tokens.remove(asynchronous);
    attribute(kind).into_iter().chain(tokens).collect()
}

/// Returns the attribute that makes a function a test, if `kind` is "test"; otherwise no tokens.
fn attribute(kind: &str) -> TokenStream {
    let attribute = if kind == "test" { "#[::core::prelude::v1::test]" } else { "" };
    attribute.parse().expect("it is an attribute")
}

/// Returns `FUNCTION(ARGUMENTS)`; the group brings the parentheses.
fn call(function: TokenStream, arguments: Group) -> TokenStream {
    function.into_iter().chain([TokenTree::Group(arguments)]).collect()
}

/// Returns the same tokens as if they were written at that place, except for tokens inside of groups.
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

impl MacroError {
    /// Returns `::core::compile_error! { MESSAGE }`, which the compiler shows at the place.
    fn into_tokens(self) -> TokenStream {
        let Self(span, message) = self;
        let text = format!("::core::compile_error! {{ {message:?} }}");
        at_place(text.parse().expect("it is a macro's call"), span)
    }
}
