import unittest

import tags


class Commas(unittest.TestCase):
    def test_second(self):
        self.assertIn("b", tags.tags("a,b"))
