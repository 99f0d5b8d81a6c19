import unittest

import tags


class Tags(unittest.TestCase):
    def test_join(self):
        self.assertEqual(tags.join(["a", "b"]), "a,b")
