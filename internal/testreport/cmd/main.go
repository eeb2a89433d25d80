package main

import (
	"fmt"
	"os"

	"github.com/tributary-io/tributary/internal/testreport"
)

func main() {
	r := testreport.New(os.Stdout)
	if err := r.Read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r.Summary()
	if r.Failed > 0 || r.Passed == 0 {
		os.Exit(1)
	}
}
