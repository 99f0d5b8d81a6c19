from inventory import missing, total

wanted = {"bolt": 4, "nut": 6, "hinge": 2}
assert missing(wanted, {"bolt": 4, "nut": 1}) == {"nut": 5, "hinge": 2}
assert missing({}, {}) == {}
assert total(wanted) == 12
