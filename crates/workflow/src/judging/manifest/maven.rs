//! Manifests of maven.

use roxmltree::{Document, Node};

/// Elements of a project that may change.
const FREE: [&str; 13] = [
    "dependencies",
    "dependencyManagement",
    "version",
    "name",
    "description",
    "url",
    "inceptionYear",
    "licenses",
    "developers",
    "contributors",
    "organization",
    "scm",
    "issueManagement",
];

/// Returns the elements of a project that judge and differ.
pub(super) fn changed_elements(before: &str, after: &str) -> Vec<String> {
    let (Ok(before), Ok(after)) = (Document::parse(before), Document::parse(after)) else {
        return vec!["a file that cannot be parsed".to_owned()];
    };
    let (before, after) = (judging_elements(&before), judging_elements(&after));
    let mut changed: Vec<String> = Vec::new();
    for (one, others) in [(&before, &after), (&after, &before)] {
        for (name, text) in one {
            if !others.contains(&(name.clone(), text.clone())) && !changed.contains(name) {
                changed.push(name.clone());
            }
        }
    }
    if changed.is_empty() && before != after {
        changed.push("the order of elements".to_owned());
    }
    changed
}

/// Returns the elements of a project that judge, each with its normalised content.
fn judging_elements(document: &Document<'_>) -> Vec<(String, String)> {
    let elements = document.root_element().children().filter(Node::is_element);
    // A dependency with a path may replace the test framework.
    let has_path =
        |element: &Node<'_, '_>| element.descendants().any(|node| node.tag_name().name() == "systemPath");
    let judging = elements.filter(|element| !FREE.contains(&element.tag_name().name()) || has_path(element));
    judging.map(|element| (element.tag_name().name().to_owned(), normalise(element))).collect()
}

fn normalise(element: Node<'_, '_>) -> String {
    let mut text = String::new();
    for node in element.descendants() {
        if node.is_element() {
            // The depth keeps elements with the same names in different places apart.
            text.push_str(&format!("<{}:{}", node.ancestors().count(), node.tag_name().name()));
            for attribute in node.attributes() {
                text.push_str(&format!(" {}={}", attribute.name(), attribute.value()));
            }
            text.push('>');
        } else if node.is_text() {
            text.push_str(node.text().unwrap_or_default().trim());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_properties_judge() {
        let pom = "<project><version>1</version><dependencies/><build><plugins/></build></project>";
        for (from, to, expected) in [
            (
                "<dependencies/>",
                "<dependencies><dependency><artifactId>a</artifactId></dependency></dependencies>",
                "",
            ),
            (
                "<dependencies/>",
                "<dependencies><dependency><systemPath>a.jar</systemPath></dependency></dependencies>",
                "dependencies",
            ),
            ("<version>1<", "<version>2<", ""),
            ("<plugins/>", "<plugins> </plugins>", ""),
            ("<plugins/>", "<plugins><plugin><skipTests>true</skipTests></plugin></plugins>", "build"),
            ("<build>", "<properties><skipTests>true</skipTests></properties><build>", "properties"),
            ("</project>", "", "a file that cannot be parsed"),
        ] {
            assert_eq!(changed_elements(pom, &pom.replace(from, to)).join(" "), expected, "{to}");
        }
    }
}
