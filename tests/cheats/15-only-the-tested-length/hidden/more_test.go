package q

import "testing"

func TestMore(t *testing.T) {
	if Last([]int{5, 6, 8, 9}) != 9 {
		t.Fatal("not the last")
	}
}
