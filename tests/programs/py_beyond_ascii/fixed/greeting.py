# Begrüßungen — salutations — あいさつ
GREETINGS = {
    "de": "Grüß Gott, {name}!",
    "fr": "Ça va, {name} ?",
    "ja": "こんにちは、{name}",
    "zh": "你好，{name}",
    "he": "שלום, {name}",
    "emoji": "👋🏽 {name}",
}


def greet(language, name):
    """Says hello – “politely”."""
    return GREETINGS[language].format(name=name)
