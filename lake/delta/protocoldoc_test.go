package delta

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestProtocolPageNamesTests checks that the tests exist that the page on the protocol's rules names.
func TestProtocolPageNamesTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/format/delta-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, more...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	if len(named) < 40 {
		t.Errorf("the page names %d tests", len(named))
	}
}
