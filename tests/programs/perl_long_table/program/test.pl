use strict;
use warnings;
use lib '.';
use Opcodes;

Opcodes::known() > 400 or die "entries are missing\n";
# A multiplication takes four cycles more than anything else of its length.
for my $number (map { 10 * $_ + 4 } 0 .. 40) {
    my ($name, $other) = (sprintf('mul_%04d', $number), sprintf('load_%04d', $number + 6));
    my $base = Opcodes::bytes($name);
    Opcodes::cycles($name) == $base + 4 or die Opcodes::describe($name) . "\n";
    Opcodes::cycles($other) == Opcodes::bytes($other) or die Opcodes::describe($other) . "\n";
}
