package serde

import (
	"errors"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

// RegistryError says what was asked of a schema registry, what came of it, and what to do.
type RegistryError struct {
	Registry string // its URL
	Op       string // what was asked, such as "get schema 7"
	Err      error

	retriable bool
	advice    string
}

func (e *RegistryError) Error() string {
	msg := "schema registry " + e.Registry + ": " + e.Op + ": " + e.Err.Error()
	if e.advice != "" {
		msg += ": " + e.advice
	}
	return msg
}

func (e *RegistryError) Unwrap() error { return e.Err }

// Retriable reports whether the answer says nothing about the schema: the registry can't be reached, is in trouble, refuses
// the credentials, or isn't a registry at all. What it definitely answered (no such schema, an invalid or an incompatible one)
// is not retriable.
func (e *RegistryError) Retriable() bool { return e.retriable }

// UnsupportedSchemaError names what a registered schema has that can't be read here.
type UnsupportedSchemaError struct{ What string }

func (e *UnsupportedSchemaError) Error() string { return e.What + " isn't supported" }

// IncompatibleError lists why a schema can't follow those that a subject has.
type IncompatibleError struct{ Reasons []string }

func (e *IncompatibleError) Error() string {
	if len(e.Reasons) == 0 {
		return "the schema isn't compatible with the subject's latest one"
	}
	return "the schema isn't compatible with the subject's latest one: " + strings.Join(e.Reasons, "; ")
}

// wrap makes a *RegistryError of what a store returned.
func (r *Registry) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	e := &RegistryError{Registry: r.where, Op: op, Err: err}
	e.retriable, e.advice = classify(err)
	return e
}

// wrapLookup is wrap for a question after the id of a schema to write with.
func (r *Registry) wrapLookup(op string, err error) error {
	err = r.wrap(op, err)
	var e *RegistryError
	if errors.As(err, &e) && e.advice == adviceUnknown {
		e.advice = adviceUnregistered
	}
	return err
}

func classify(err error) (retriable bool, advice string) {
	var (
		re          *sr.ResponseError
		unsupported *UnsupportedSchemaError
		bad         *IncompatibleError
	)
	switch {
	case errors.As(err, &re):
		return classifyAnswer(re)
	case errors.Is(err, errUnknownSchema):
		return false, adviceUnknown
	case errors.As(err, &unsupported):
		return false, ""
	case errors.As(err, &bad):
		return false, adviceIncompatible
	}
	return true, "is it running, and is the URL right?"
}

const (
	adviceUnknown      = "the record was written with another registry, or its schema was deleted"
	adviceUnregistered = "register it before, by Prepare as the engine's start does, or let the first record do so by the serde's option AvroAutoRegister"
	adviceIncompatible = "make the change compatible (give new fields a default), or lower the subject's compatibility level"
)

// classifyAnswer goes by Confluent's error codes, and by the HTTP status where there is none (proxies, wrong paths).
func classifyAnswer(re *sr.ResponseError) (retriable bool, advice string) {
	switch {
	case sr.IsNotFoundError(re.ErrorCode):
		return false, adviceUnknown
	case re.ErrorCode == http.StatusConflict || re.StatusCode == http.StatusConflict:
		return false, adviceIncompatible
	case sr.IsInvalidRequestError(re.ErrorCode) || re.StatusCode == http.StatusUnprocessableEntity:
		return false, "the registry doesn't take the schema as valid"
	case re.StatusCode == http.StatusUnauthorized || re.StatusCode == http.StatusForbidden:
		return true, "check the credentials and what they may do"
	case re.StatusCode == http.StatusNotFound:
		return true, "nothing answers there as a schema registry: check the path of the URL"
	}
	return true, ""
}
