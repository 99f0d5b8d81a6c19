package q

import "testing"

func TestOne(t *testing.T) {
	if Last([]int{4}) != 4 {
		t.Fatal("not the last")
	}
}
