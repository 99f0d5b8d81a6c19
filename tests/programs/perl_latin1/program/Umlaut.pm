package Umlaut;
# Schlüssel für Wörterbücher, nach DIN 5007: ä wie a, ß wie ss. Diese Datei ist Latin-1.
use strict;
use warnings;

my %PLAIN = ("ä" => 'a', "ö" => 'o', "ü" => 'u', "ß" => 'ss');
my $LETTER = join '|', keys %PLAIN;

sub key {
    my ($word) = @_;
    my $key = lc $word;
    $key =~ s/($LETTER)/$PLAIN{$1}/;
    return $key;
}

# Ende: äöüß
1;
