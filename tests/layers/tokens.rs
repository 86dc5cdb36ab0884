//! Rust source as tokens: words, `::`, other signs one by one, and strings with their quotes. Comments,
//! characters, numbers and lifetimes are left out.

use super::names::ITEMS;

/// Returns the first token after an attribute that begins at `at`.
pub fn end_of_attribute(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (end, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "[" => depth += 1,
            "]" if depth == 1 => return end + 1,
            "]" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Removes each item and each field that only tests have.
pub fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let begin: String = tokens[at..].iter().take(8).flat_map(|token| token.chars()).collect();
        if !["#[cfg(test)", "#[cfg(all(test,", "#[cfg(all(test)"].iter().any(|gate| begin.starts_with(gate)) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        while tokens.get(at).is_some_and(|token| token == "#") {
            at = end_of_attribute(tokens, at);
        }
        at = end_of_item(tokens, at);
    }
    kept
}

fn end_of_item(tokens: &[String], begin: usize) -> usize {
    let words = tokens[begin..].iter().take(8).take_while(|token| *token != ":" && *token != ",");
    let is_item = words
        .clone()
        .any(|word| ITEMS.contains(&word.as_str()) || ["mod", "use", "impl"].contains(&word.as_str()));
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            "," if depth == 0 && !is_item => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the tokens of a file.
pub fn tokens(text: &str) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), text);
    while let Some(first) = left.chars().next() {
        let many = |f: &dyn Fn(char) -> bool| left.find(|c| !f(c)).unwrap_or(left.len());
        let end = if left.starts_with("//") {
            left.find('\n').unwrap_or(left.len())
        } else if left.starts_with("/*") {
            end_of_comment(left)
        } else if let Some(end) = end_of_string(left) {
            found.push(left[..end].into());
            end
        } else if first == '\'' {
            end_of_character(left)
        } else if first.is_alphanumeric() || first == '_' {
            let end = many(&|c| c.is_alphanumeric() || c == '_');
            if !first.is_numeric() {
                found.push(left[..end].into());
            }
            end
        } else if left.starts_with("::") {
            found.push("::".into());
            2
        } else {
            if !first.is_whitespace() {
                found.push(first.into());
            }
            first.len_utf8()
        };
        left = &left[end..];
    }
    found
}

fn end_of_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().unwrap().len_utf8();
        }
    }
    text.len()
}

fn end_of_string(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with('"') || prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"')
        })
    })?;
    let begin = prefix.len() + text[prefix.len()..].find('"').unwrap() + 1;
    if prefix.ends_with('r') {
        let close = format!("\"{}", &text[prefix.len()..begin - 1]);
        return Some(text[begin..].find(&close).map_or(text.len(), |end| begin + end + close.len()));
    }
    let mut is_escaped = false;
    for (at, c) in text[begin..].char_indices() {
        match c {
            '"' if !is_escaped => return Some(begin + at + 1),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    Some(text.len())
}

/// Returns the end of `'a'`, and of `'a`.
fn end_of_character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let begin = at + escaped.len_utf8();
            text[begin..].find('\'').map_or(text.len(), |end| begin + end + 1)
        }
        (_, Some((at, '\''))) => at + 1,
        _ => 1 + text[1..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len() - 1),
    }
}
