package q

import "testing"

func TestPair(t *testing.T) {
	if Last([]int{7, 7}) != 7 {
		t.Fatal("not the last")
	}
}
