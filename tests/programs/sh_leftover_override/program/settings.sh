# Reads every file of conf.d, the later with more precedence.
for part in conf.d/*.conf; do
    . "./$part"
done
echo "level=$level colour=$colour"
