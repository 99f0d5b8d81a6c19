use strict;
use warnings;
use lib '.';
use Median;

for my $row ([5, 5], [3, 9, 3, 1], [6, 10, 2, 4, 8], [6, 1, 11, 4, 8]) {
    my ($expected, @numbers) = @$row;
    my $found = Median::median(@numbers);
    $found == $expected or die "median of @numbers: expected $expected, found $found\n";
}
