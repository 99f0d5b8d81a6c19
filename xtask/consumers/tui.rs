//! Shows a line with a face on terminals with and without colours.

use pintle_tui::render::{Depth, Face, Line};

fn main() {
    let line = Line::new("error: ", Face::BOLD).and("no such file", Face::PLAIN);
    assert_eq!(line.to_terminal(Depth::Plain), "error: no such file");
    assert_eq!(line.to_terminal(Depth::Sixteen), "\x1b[1merror: \x1b[0mno such file");
}
