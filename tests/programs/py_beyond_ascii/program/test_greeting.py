from greeting import greet

assert greet("ja", "\u592a\u90ce") == "\u3053\u3093\u306b\u3061\u306f\u3001\u592a\u90ce"
assert greet("zh", "\u674e") == "\u4f60\u597d\uff0c\u674e"
assert greet("emoji", "x").startswith("\U0001f44b\U0001f3fd")
