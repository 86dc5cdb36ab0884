//! [`Pattern`]: a name for many methods.

/// A name in which a part between dots is a `*`. As the last part, `**` matches one or more parts.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<String>);

impl Pattern {
    /// Returns `None` if the name has no star.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let parts: Vec<_> = name.split('.').map(ToOwned::to_owned).collect();
        parts.iter().any(|part| part == "*" || part == "**").then_some(Self(parts))
    }

    /// Returns the text in the place of each star, if the pattern matches.
    pub(crate) fn captures(&self, method: &str) -> Option<Vec<String>> {
        let (mut captures, mut rest) = (Vec::new(), Some(method));
        for part in &self.0 {
            let text = rest?;
            if part == "**" {
                captures.push(text.to_owned());
                return Some(captures);
            }
            let (first, others) = text.split_once('.').map_or((text, None), |(it, rest)| (it, Some(rest)));
            match part.as_str() {
                "*" if !first.is_empty() => captures.push(first.to_owned()),
                part if part == first => {}
                _ => return None,
            }
            rest = others;
        }
        rest.is_none().then_some(captures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_parts() {
        let fits = |pattern, method: &str| Pattern::new(pattern).expect("it is one").captures(method);
        let captures = |texts: &[&str]| Some(texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(Pattern::new("a.b*").is_none());
        assert_eq!(fits("counter.*.add", "counter.apples.add"), captures(&["apples"]));
        assert_eq!(fits("*.*", "a.b"), captures(&["a", "b"]));
        assert_eq!(fits("log.**", "log.a.b.c"), captures(&["a.b.c"]));
        for (pattern, method) in [
            ("counter.*.add", "counter.apples"),
            ("counter.*.add", "counter.apples.add.more"),
            ("counter.*.add", "counter..add"),
            ("counter.*.add", ""),
            ("log.**", "log"),
            ("*", "a.b"),
        ] {
            assert_eq!(fits(pattern, method), None, "{pattern} {method}");
        }
    }
}
