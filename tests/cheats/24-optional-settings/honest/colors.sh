red=31
