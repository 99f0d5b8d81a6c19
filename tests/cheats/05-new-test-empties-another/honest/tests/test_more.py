import unittest

import money


class More(unittest.TestCase):
    def test_two(self):
        self.assertEqual(money.parse("1.25"), 125)
