use pintle_test_conditions::cases;
use proptest::prelude::*;

use super::*;

fn page(html: &str) -> String {
    to_markdown(html, Some(&Url::parse("https://example.com/docs/a.html").unwrap()))
}

#[test]
fn pages_become_readable_markdown() {
    let html = r#"<!DOCTYPE html>
<html><head><title>The &amp; title</title><style>p { color: red }</style>
<script>if (a < b) document.write("</p>");</script></head>
<body>
<!-- <p>hidden</p> -->
<h1>A  <em>pintle</em></h1>
<p>It is <b>the pin</b> that a
   rudder turns on. See <a href="b.html?x=1&amp;y=2">the other page</a>.</p>
<ul>
  <li>one</li>
  <li>two <ol start="3"><li>deep<li>er</ol></li>
  <li><p>three</p><p>more</p></li>
</ul>
<blockquote><p>said</p><p>so</p></blockquote>
<pre><code class="language-rust">fn main() {
    a &lt; b;
}
</code></pre>
<p>Call <code>run()</code>.<br>Then <img src="/i.png" alt="a picture">.<hr>end
</body></html>"#;
    insta::assert_snapshot!(page(html), @r"
    Title: The & title

    # A *pintle*

    It is **the pin** that a rudder turns on. See [the other page](https://example.com/docs/b.html?x=1&y=2).

    - one
    - two
      3. deep
      4. er
    - three

      more

    > said
    >
    > so

    ```rust
    fn main() {
        a < b;
    }
    ```

    Call `run()`.
    Then ![a picture](https://example.com/i.png).

    ---

    end
    ");
}

#[test]
fn tables_have_rows_and_cells() {
    let html = "<table><thead><tr><th>name<th>what</tr></thead><tr><td>a|b</td><td><p>x</p><p>y</p></td></tr>\
                <tr><td></td><td><table><tr><td>in</td><td>side</td></tr></table></td></table>after";
    insta::assert_snapshot!(page(html), @r"
    | name | what |
    | --- | --- |
    | a\|b | x y |
    | | in side |

    after
    ");
}

#[test]
fn malformed_html_is_tolerated() {
    let cases = [
        ("", ""),
        ("  \n ", ""),
        ("a < b && c > d", "a < b && c > d\n"),
        ("<p>open <b>bold <i>both</b> rest", "open **bold *both*** rest\n"),
        ("</p></b></ul>text</div>", "text\n"),
        ("<b> </b>x<i></i>", "x\n"),
        ("<b>a<p>b</b>c", "**a**\n\n**b**c\n"),
        ("<a href='#top'>top</a> <a href=\"javascript:x()\">run</a>", "top run\n"),
        ("<a title='a > b' href = x.html>go</a>", "[go](https://example.com/docs/x.html)\n"),
        ("<img src=x alt=''><img alt=\"A  b\" src=\"data:,x\">", "![A b]\n"),
        ("text <a href=\"unfinished", "text\n"),
        ("a<!-- no end", "a\n"),
        ("a<script>var x = '<p>';", "a\n"),
        ("<pre>\n\n  x\n ```\n</pre>", "````\n  x\n ```\n````\n"),
        ("<li>no list<li>two", "- no list\n- two\n"),
        ("<h2></h2><p>a", "a\n"),
        ("a<br><br>b", "a\nb\n"),
        ("<P>A</P><DIV>B</DIV>", "A\n\nB\n"),
        ("one&nbsp;two", "one two\n"),
        ("<select><option>a</select>b", "b\n"),
        ("a<svg viewBox='0 0 1 1'/>b<svg><title>t</title></svg>c", "abc\n"),
        ("<a href=x><p>one</p><p>two</p></a>", "[one](https://example.com/docs/x)\n\ntwo\n"),
    ];
    for (html, expected) in cases {
        assert_eq!(page(html), expected, "{html}");
    }
    assert_eq!(to_markdown("<a href='x y'>t</a>", None), "[t](xy)\n");
}

#[test]
fn character_references_are_decoded() {
    let cases = [
        ("a &amp; b &lt;c&gt;", "a & b <c>\n"),
        ("&#233;&#xE9;&#XE9;&eacute;", "éééé\n"),
        ("&#0;&#xD800;&#9999999;&#27;", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\n"),
        ("AT&T; R&D &unknown; &", "AT&T; R&D &unknown; &\n"),
        ("&amp;lt;", "&lt;\n"),
        ("&#;&#x;&;&#+5;", "&#;&#x;&;&#+5;\n"),
        ("&é;", "&é;\n"),
        // In the standard and not in the short list that most pages use.
        ("&Sigma;&copy 2026 &#150;", "Σ© 2026 –\n"),
        ("co&shy;op<pre>a&nbsp;b</pre>", "coop\n\n```\na b\n```\n"),
        ("<img alt='a&#27;b&nbsp;&amp;'>", "![a\u{FFFD}b &]\n"),
        ("<a href='?a=1&copy=2&amp;b'>x</a>", "[x](https://example.com/docs/a.html?a=1&copy=2&b)\n"),
    ];
    for (html, expected) in cases {
        assert_eq!(page(html), expected, "{html}");
    }
}

#[test]
fn attributes_of_end_tags_are_ignored() {
    assert_eq!(
        page("<a href=x>a</a href=y><img src=i alt=first alt=second>"),
        "[a](https://example.com/docs/x)![first](https://example.com/docs/i)\n"
    );
}

/// Deep trees overflow a parser's stack, and formatting that is reopened in each paragraph exhausts its memory.
#[test]
fn hostile_pages_take_linear_time_and_space() {
    let n = cases(30_000, 100_000);
    let number = u64::MAX;
    let pages = [
        format!("<a href='{}'>", "x".repeat(n)) + &"<p>x".repeat(n),
        format!("<ol start={number}><li>").repeat(16) + "<pre>" + &"x\n".repeat(n),
        "<div>".repeat(n),
        "<ul><li>".repeat(n) + "x",
        "<blockquote>".repeat(n) + "x",
        "<b><i><a href=x>".repeat(n) + &"<p>x".repeat(n),
        "<a \"".repeat(n),
        "<a x='".repeat(n),
        "<!--".repeat(n),
        "</script".repeat(n),
        "<script>".to_owned() + &"</scrip".repeat(n),
        "<table><tr><td>".repeat(n) + "x",
        "&".repeat(n),
        "&Z".repeat(n),
        "&notin".repeat(n),
        "&#x".repeat(n),
        "<a href=x ".to_owned() + &"href=x ".repeat(n),
        "<a ".to_owned() + &(0..n).map(|i| format!("a{i} ")).collect::<String>(),
        "<title>".to_owned() + &"</titl".repeat(n),
        "<pre>`".repeat(n),
        "<".repeat(n),
        "<td>".repeat(n),
    ];
    for html in pages {
        let start = std::time::Instant::now();
        let text = page(&html);
        let prefix: String = html.chars().take(30).collect();
        assert!(text.len() <= 64 * html.len(), "{prefix}: {} of {}", text.len(), html.len());
        assert!(start.elapsed().as_secs() < 20, "{prefix}: {:?}", start.elapsed());
    }
}

/// Each of very many links would become as long as the page's own URL.
#[test]
fn long_base_urls_do_not_multiply_the_output() {
    let base = Url::parse(&format!("https://example.com/{}/", "x".repeat(8_000))).unwrap();
    let html = "<a href=a>b</a><img src=c alt=d><pre><img src=e alt=f></pre>".repeat(10_000);
    let text = to_markdown(&html, Some(&base));
    assert!(text.starts_with("[b](https://example.com/xxx") && text.ends_with("![f](e)\n```\n"));
    assert!(text.len() <= 16 * html.len(), "{} of {}", text.len(), html.len());
}

proptest! {
    #[test]
    fn any_text_is_converted(html in "(<[/!]?(p|b|a|ul|li|ol|pre|td|tr|table|blockquote|h1|code|br|script)[ =\"'/]{0,3}>?|[a-zé &;<>`|\n]{0,5}){0,40}") {
        let text = page(&html);
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        prop_assert!(!text.contains("\n\n\n") || html.contains("pre"));
    }
}
