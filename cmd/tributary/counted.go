package main

import "fmt"

// counted is a number of things whose plural ends in s.
func counted[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprint(n, " ", thing, "s")
}
