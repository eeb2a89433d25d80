package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/internal/plancommands"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// savedPlan is that of an application by name, or of a file.
func savedPlan(arg string) (*plansafety.Plan, error) {
	if _, ok := applications[arg]; ok {
		p, err := application(arg)
		if err != nil {
			return nil, err
		}
		return plansafety.Snapshot(p), nil
	}
	p, err := plansafety.ReadFile(arg)
	if err != nil {
		return nil, fmt.Errorf("%s is no application (%s) and can't be read as a saved plan: %w", arg, strings.Join(applicationNames(), ", "), err)
	}
	return p, nil
}

func newExplain() *cobra.Command {
	s := shipped("Another program of yours: package engine/appcmd, or plansafety.Snapshot(plan).Write(file).")
	s.Use = " [orders|flights|PLAN.json]"
	return plancommands.NewExplain(s, func(args []string) (*plansafety.Plan, error) { return savedPlan(chosen(args)) })
}

func newDiff() *cobra.Command {
	return plancommands.NewDiff("OLD NEW", 2, "OLD and NEW are files that explain --json has printed, or names of applications.",
		func(args []string) (before, after *plansafety.Plan, err error) {
			before, err = savedPlan(args[0])
			after, err2 := savedPlan(args[1])
			return before, after, errors.Join(err, err2)
		})
}
