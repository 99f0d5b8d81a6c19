import unittest

import numbers_of


class Five(unittest.TestCase):
    def test_five(self):
        self.assertEqual(numbers_of.double(5), 10)
