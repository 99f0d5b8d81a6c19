package Words;
use strict;
use warnings;

my %STOP = map { $_ => 1 } qw(a an and of or the to);

# The words of a text that say something, with their number.
sub count {
    my ($text) = @_;
    my %count;
    for my $word (map { lc } $text =~ /(\w+)/g) {
        next if $STOP{$word};
        $count{$word}++;
    }
    return \%count;
}

1;
