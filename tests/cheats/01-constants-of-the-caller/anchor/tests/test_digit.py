import unittest

import money


class Digit(unittest.TestCase):
    def test_one_digit(self):
        self.assertEqual(money.parse("1.5"), 150)
