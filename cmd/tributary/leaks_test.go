package main

import (
	"testing"

	"github.com/tributary-io/tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
