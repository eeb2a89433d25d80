package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security are the client options of a user of a cluster with SASL. The password file is read for each connection.
func (f *flags) security() ([]kgo.Opt, error) {
	if f.user == "" && f.passwordFile == "" {
		return nil, nil
	}
	if f.user == "" || f.passwordFile == "" {
		return nil, errors.New("give --user and --password-file together")
	}
	user, file := f.user, f.passwordFile
	return []kgo.Opt{kgo.SASL(scram.Sha512(func(context.Context) (scram.Auth, error) {
		password, err := os.ReadFile(file)
		if err != nil {
			return scram.Auth{}, fmt.Errorf("password file: %w", err)
		}
		return scram.Auth{User: user, Pass: strings.TrimSpace(string(password))}, nil
	}))}, nil
}
