package learning

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/tributary-io/tributary/engine"
)

// aclText is the list of rights, one a line: principal, resource, name (a * at its end: names that begin so), operations.
//
//go:embed acls.txt
var aclText string

// Grant is a right of a principal.
type Grant struct {
	Principal string
	engine.ACL
}

// Grants reads the list of rights that the platform's principals have, and no others.
func Grants() ([]Grant, error) {
	var all []Grant
	for n, line := range strings.Split(aclText, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("acls.txt:%d: %d fields, want principal, resource, name and operations", n+1, len(fields))
		}
		name, prefixed := strings.CutSuffix(fields[2], "*")
		all = append(all, Grant{fields[0], engine.ACL{Resource: engine.ACLResource(fields[1]), Name: name, Prefixed: prefixed, Operations: strings.Split(fields[3], ",")}})
	}
	return all, nil
}
