package golden

import "errors"

// Judge runs a scenario and judges it.
func Judge(s *Scenario, known map[string]KnownDifference) Verdict {
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
	k, isKnown := known[s.Name]
	for _, d := range v.Differences {
		outcome := Failed
		if isKnown && contains(k.Sections, d.Section) {
			outcome, v.Reason, v.Doc = Quirk, k.Reason, k.Doc
		}
		if v.Groups[d.Group] != Failed {
			v.Groups[d.Group] = outcome
		}
	}
	v.Outcome = v.Groups[Semantics]
	return v
}
