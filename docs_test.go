package tributary_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block of code in docs that says which file it is from is a part of that file, which is compiled and tested.
func TestDocsQuoteCodeAsItIs(t *testing.T) {
	quoted := regexp.MustCompile("(?ms)^<!-- from: (\\S+) -->\n```go\n(.*?)^```$")
	found := 0
	err := filepath.WalkDir("docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		blocks := quoted.FindAllStringSubmatch(string(text), -1)
		if n := strings.Count(string(text), "<!-- from: "); n != len(blocks) {
			t.Errorf("%s: %d blocks say where they are from, %d of them are Go", path, n, len(blocks))
		}
		for _, b := range blocks {
			found++
			file, err := os.ReadFile(b[1])
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if !strings.Contains(string(file), b[2]) {
				t.Errorf("%s: this block is not in %s:\n%s", path, b[1], b[2])
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d blocks, %v", found, err)
	}
}
