package first

import "testing"

func TestFirst(t *testing.T) {
	if First([]int{1, 2}) != 1 {
		t.Fatal("not the first")
	}
}
