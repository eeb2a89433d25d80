package golden

import "errors"

// Judge runs a scenario and judges it.
func Judge(s *Scenario, known []KnownDifference) Verdict {
	v := Verdict{Name: s.Name, Path: s.Path, Outcome: Passed, Groups: map[Group]Outcome{}}
	for _, g := range Groups {
		v.Groups[g] = Passed
	}
	got, err := Run(s)
	switch {
	case errors.Is(err, ErrUnsupported):
		return v.all(Unsupported, err)
	case err != nil:
		return v.all(Failed, err)
	}
	v.Differences = Compare(s, got)
	for _, d := range v.Differences {
		outcome := Failed
		if k := excuse(known, s, got, d.Section); k != nil {
			outcome, v.Reason, v.Doc = Quirk, k.Reason, k.Doc
		}
		if v.Groups[d.Group] != Failed {
			v.Groups[d.Group] = outcome
		}
	}
	v.Outcome = v.Groups[Semantics]
	return v
}
