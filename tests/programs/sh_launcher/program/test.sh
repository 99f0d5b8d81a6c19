set -eu
[ "$(GREETING_LANGUAGE=de ./bin/launch Anna)" = "Hallo, Anna" ]
[ "$(GREETING_LANGUAGE= ./bin/launch)" = "Hello, world" ]
