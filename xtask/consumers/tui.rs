//! Shows a line with a face on terminals with and without colours.

use pintle_tui::render::{Depth, Face, StyledLine};

fn main() {
    let line = StyledLine::new("error: ", Face::BOLD).and("no such file", Face::PLAIN);
    assert_eq!(line.to_terminal(Depth::Plain), "error: no such file");
    assert_eq!(line.to_terminal(Depth::Sixteen), "\x1b[1merror: \x1b[0mno such file");
}
