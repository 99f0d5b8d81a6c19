# Takes simple markup off a line.
s/<[^>]*br[^>]*>/ /g
s/<[^>]*>//g
s/&lt;/</g
s/&gt;/>/g
s/&amp;/\&/g
