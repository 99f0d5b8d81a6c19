use strict;
use warnings;
use lib '.';
use Umlaut;

for my $row (["\xFCbergr\xF6\xDFe", 'ubergrosse'], ['Haus', 'haus'], ["t\xFCr", 'tur']) {
    my ($word, $expected) = @$row;
    my $found = Umlaut::key($word);
    $found eq $expected or die "$expected: found $found\n";
}
open my $file, '<:raw', 'Umlaut.pm' or die;
local $/;
(<$file> =~ /Schl\xFCssel/) or die "the file is Latin-1 no more\n";
