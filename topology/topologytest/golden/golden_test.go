package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var (
	goldenDir  = flag.String("golden", os.Getenv("TRIBUTARY_GOLDEN_DIR"), "folder of scenarios; default: the copy in testdata")
	goldenJSON = flag.String("golden-json", "", "file to write the report to, as JSON")
)

const testdata = "../testdata"

// report is what TestGolden found. It is printed last, behind what the tests themselves print.
var report *Report

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if report != nil {
		report.Print(os.Stdout)
	}
	os.Exit(code)
}

// TestGolden runs every scenario. Go shows the report of a run that passes with -v only. It fails unless every section of every scenario is as Kafka Streams has it,
// or listed as a difference on purpose.
func TestGolden(t *testing.T) {
	dir := *goldenDir
	if dir == "" {
		dir = filepath.Join(testdata, "golden")
	}
	scenarios, err := LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	known, err := LoadKnown(filepath.Join(testdata, "differences.json"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts := make([]Verdict, len(scenarios))
	for i, s := range scenarios {
		verdicts[i] = Judge(s, known)
	}
	report = NewReport(verdicts)
	if *goldenJSON != "" {
		if err := report.WriteJSON(*goldenJSON); err != nil {
			t.Errorf("writing the report: %v", err)
		}
	}
	if !report.AllPassed() {
		t.Errorf("%d of %d scenarios failed, %d are unsupported; see above", report.Failed, len(scenarios), report.Unsupported)
	}
}
