from price import gross, net

assert gross(100) == 125
assert net(125) == 100
assert net(gross(80)) == 80
