package first

func First(v []int) int { return v[0] }
