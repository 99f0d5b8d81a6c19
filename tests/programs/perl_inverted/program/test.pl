use strict;
use warnings;
use lib '.';
use Words;

my $count = Words::count('The end of the road, and the end of time');
my $found = join ' ', map { "$_=$count->{$_}" } sort keys %$count;
$found eq 'end=2 road=1 time=1' or die "found: $found\n";
