package q

import "os"

var name string

func init() { name = os.Args[0] }
