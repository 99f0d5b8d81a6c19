from units import to_metres


class Rectangle:
    def __init__(self, width, height, unit="m"):
        self.width = to_metres(width, unit)
        self.height = to_metres(height, unit)

    def area(self):
        return self.width * self.height
