import unittest

import money


class Money(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(money.parse("12"), 1200)

    def test_show(self):
        self.assertEqual(money.show(1205), "12.05")
