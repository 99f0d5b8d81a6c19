package second

func Second(v []int) int { return v[1] }
