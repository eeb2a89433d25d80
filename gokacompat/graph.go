package gokacompat

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/lovoo/goka"
)

// This file is the only one that looks behind what goka exports: callbacks are in a group graph, but can't be asked for, and what options of
// a context say can't either. The fields are looked up by name and type, and a goka that has them no more is an error of New.

// callbacks are the functions of a group graph, by topic and by visitor.
type callbacks struct {
	inputs   map[string]goka.ProcessCallback
	visitors map[string]goka.ProcessCallback
}

func callbacksOf(graph *goka.GroupGraph) (c callbacks, err error) {
	if err := knownOptions(); err != nil {
		return c, err
	}
	value := reflect.ValueOf(graph).Elem()
	if c.inputs, err = unexported[map[string]goka.ProcessCallback](value, "callbacks"); err != nil {
		return c, err
	}
	visitors, err := unexported[[]goka.Edge](value, "visitors")
	if err != nil {
		return c, err
	}
	c.visitors = make(map[string]goka.ProcessCallback, len(visitors))
	for _, edge := range visitors {
		cb, err := unexported[goka.ProcessCallback](reflect.ValueOf(edge).Elem(), "cb")
		if err != nil {
			return c, err
		}
		c.visitors[edge.Topic()] = cb
	}
	return c, nil
}

// unexported reads a field of an addressable struct of goka's.
func unexported[T any](s reflect.Value, name string) (v T, err error) {
	field := s.FieldByName(name)
	want := reflect.TypeFor[T]()
	if !field.IsValid() || !field.Type().ConvertibleTo(want) {
		return v, fmt.Errorf("this version of goka isn't known: %s has no field %s of type %s; use v1.1.14", s.Type(), name, want)
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Convert(want).Interface().(T), nil
}

// optionTarget is the struct that a goka.ContextOption sets.
var optionTarget = reflect.TypeFor[goka.ContextOption]().In(0)

func knownOptions() error {
	_, err := headersOf(reflect.New(optionTarget.Elem()))
	return err
}

func headersOf(target reflect.Value) (goka.Headers, error) {
	return unexported[goka.Headers](target.Elem(), "emitHeaders")
}

// headersIn are the headers that options of Emit, Loopback, SetValue and Delete ask for.
func headersIn(options []goka.ContextOption) (goka.Headers, error) {
	if len(options) == 0 {
		return nil, nil
	}
	target := reflect.New(optionTarget.Elem())
	for _, o := range options {
		if o == nil {
			return nil, errors.New("an option is nil")
		}
		reflect.ValueOf(o).Call([]reflect.Value{target})
	}
	return headersOf(target)
}
