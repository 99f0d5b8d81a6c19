package Median;
use strict;
use warnings;

sub median {
    my @sorted = sort { $a <=> $b } @_;
    my ($count) = @sorted;
    die "median of nothing\n" unless @sorted;
    my $middle = int($count / 2);
    return $sorted[$middle] if $count % 2;
    return ($sorted[$middle - 1] + $sorted[$middle]) / 2;
}

1;
