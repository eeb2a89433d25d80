package assign

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleMember() Member {
	return Member{
		ID: "m", TopologyHash: "abc", Signatures: map[int32]uint64{0: 1, 300: 1 << 63},
		Owned: []TaskID{{0, 1}, {300, 2}}, Lags: map[TaskID]int64{{0, 5}: 700},
		Endpoint: "host:1", Nonce: 9,
		Follows: []TaskID{{0, 5}}, Sizes: map[TaskID]int64{{0, 1}: 70}, Tags: map[string]string{"rack": "r1", "zone": "z"},
		Shapes: map[int32]uint64{0: 5}, Plan: []byte("plan"), Format: 3,
	}
}

// The bytes are a format between versions of an application: these must be readable for ever.
const (
	memberFields1   = "03616263" + "02" + "00" + "0000000000000001" + "ac02" + "8000000000000000" + "02" + "0001" + "ac0202" + "01" + "0005" + "bc05" + "06686f73743a31" + "00000009"
	memberFields2   = memberFields1 + "01" + "0005" + "01" + "0001" + "46" + "02" + "047261636b" + "027231" + "047a6f6e65" + "017a"
	shapes          = "01" + "00" + "0000000000000005"
	memberBytes     = "0301" + memberFields2 + shapes + "04" + "706c616e"
	assignFields1   = "03616263" + "02" + "0001" + "ac0202"
	assignFields2   = assignFields1 + "01" + "0005" + "01" + "0100"
	assignmentBytes = "0301" + assignFields2 + shapes + "03616264" + "04" + "706c616e"
)

// What former versions wrote is read, and tells what its writers don't know of (standbys, shapes); what is written now has that at its
// beginning, so their readers read it.
func TestFormerVersions(t *testing.T) {
	first, second := sampleMember(), sampleMember()
	first.Follows, first.Sizes, first.Tags, first.Shapes, first.Plan, first.Format = nil, nil, nil, nil, nil, 1
	second.Shapes, second.Plan, second.Format = nil, nil, 2
	for text, want := range map[string]Member{"0101" + memberFields1: first, "0201" + memberFields2: second} {
		data, _ := hex.DecodeString(text)
		if got, err := DecodeMember("m", data); err != nil || !cmp.Equal(got, want) {
			t.Errorf("member: %v %s", err, cmp.Diff(want, got))
		}
	}
	active := []TaskID{{0, 1}, {300, 2}}
	for text, want := range map[string]Assignment{
		"0101" + assignFields1: {TopologyHash: "abc", Placement: Placement{Active: active}},
		"0201" + assignFields2: {TopologyHash: "abc", Placement: Placement{Active: active, Standbys: []TaskID{{0, 5}}, Warmups: []TaskID{{1, 0}}}},
	} {
		data, _ := hex.DecodeString(text)
		if got, err := DecodeAssignment(data); err != nil || !cmp.Equal(got, want) {
			t.Errorf("assignment: %v %s", err, cmp.Diff(want, got))
		}
	}
}

func TestFormatIsStable(t *testing.T) {
	m := sampleMember()
	if got := hex.EncodeToString(AppendMember(nil, &m)); got != memberBytes {
		t.Errorf("member: got %s, want %s", got, memberBytes)
	}
	data, _ := hex.DecodeString(memberBytes)
	if got, err := DecodeMember("m", data); err != nil || !cmp.Equal(got, m) {
		t.Errorf("member: %v %s", err, cmp.Diff(m, got))
	}
	a := Assignment{TopologyHash: "abc", Placement: Placement{Active: []TaskID{{0, 1}, {300, 2}}, Standbys: []TaskID{{0, 5}}, Warmups: []TaskID{{1, 0}}},
		Shapes: map[int32]uint64{0: 5}, Leader: "abd", Plan: []byte("plan")}
	if got := hex.EncodeToString(AppendAssignment(nil, &a)); got != assignmentBytes {
		t.Errorf("assignment: got %s, want %s", got, assignmentBytes)
	}
	data, _ = hex.DecodeString(assignmentBytes)
	if got, err := DecodeAssignment(data); err != nil || !cmp.Equal(got, a) {
		t.Errorf("assignment: %v %s", err, cmp.Diff(a, got))
	}
}

func TestLaterVersions(t *testing.T) {
	m := sampleMember()
	data := AppendMember(nil, &m)
	data[0], m.Format = 4, 4
	if got, err := DecodeMember("m", append(data, "new field"...)); err != nil || !cmp.Equal(got, m) {
		t.Errorf("a later version that this reader may read: %v %s", err, cmp.Diff(m, got))
	}
	data[1] = 4
	if _, err := DecodeMember("m", data); !errors.Is(err, ErrFormat) {
		t.Errorf("a later version that this reader may not read: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	m := sampleMember()
	f.Add(AppendMember(nil, &m))
	f.Add(AppendAssignment(nil, &Assignment{Placement: Placement{Active: []TaskID{{1, 2}}, Standbys: []TaskID{{1, 3}}}}))
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := DecodeMember("", data); err == nil {
			again, err := DecodeMember("", AppendMember(nil, &m))
			Sort(m.Owned)
			Sort(m.Follows)
			m.Format = again.Format
			if m.Sizes == nil { // of a first version
				m.Follows, m.Sizes, m.Tags = again.Follows, again.Sizes, again.Tags
			}
			if m.Shapes == nil { // of the second
				m.Shapes, m.Plan = again.Shapes, again.Plan
			}
			if err != nil || !cmp.Equal(m, again) {
				t.Fatalf("%v %s", err, cmp.Diff(m, again))
			}
		}
		if a, err := DecodeAssignment(data); err == nil {
			again, err := DecodeAssignment(AppendAssignment(nil, &a))
			Sort(a.Active)
			Sort(a.Standbys)
			Sort(a.Warmups)
			if a.Standbys == nil { // of a first version
				a.Standbys, a.Warmups = again.Standbys, again.Warmups
			}
			if a.Shapes == nil { // of the second
				a.Shapes, a.Plan = again.Shapes, again.Plan
			}
			if err != nil || !cmp.Equal(a, again) {
				t.Fatalf("%v %s", err, cmp.Diff(a, again))
			}
		}
	})
}

func TestParseTaskID(t *testing.T) {
	if id, err := ParseTaskID("3_14"); err != nil || id != (TaskID{3, 14}) {
		t.Errorf("got %v, %v", id, err)
	}
	for _, bad := range []string{"", "3", "3_", "_1", "3_-1", "03_1", "3_1_2", "a_b", "3_99999999999"} {
		if id, err := ParseTaskID(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, id)
		}
	}
}
