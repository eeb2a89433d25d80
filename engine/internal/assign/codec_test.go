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
		Follows: []TaskID{{0, 5}}, Sizes: map[TaskID]int64{{0, 1}: 70}, Tags: map[string]string{"rack": "r1", "zone": "z"}, Format: 2,
	}
}

// The bytes are a format between versions of an application: these must be readable for ever.
const (
	memberFields1   = "03616263" + "02" + "00" + "0000000000000001" + "ac02" + "8000000000000000" + "02" + "0001" + "ac0202" + "01" + "0005" + "bc05" + "06686f73743a31" + "00000009"
	memberBytes     = "0201" + memberFields1 + "01" + "0005" + "01" + "0001" + "46" + "02" + "047261636b" + "027231" + "047a6f6e65" + "017a"
	assignFields1   = "03616263" + "02" + "0001" + "ac0202"
	assignmentBytes = "0201" + assignFields1 + "01" + "0005" + "01" + "0100"
)

// What the first version wrote is read, and tells that its writer keeps no standbys; what is written now has that at its beginning, so the
// first version's readers read it.
func TestFirstVersion(t *testing.T) {
	data, _ := hex.DecodeString("0101" + memberFields1)
	want := sampleMember()
	want.Follows, want.Sizes, want.Tags, want.Format = nil, nil, nil, 1
	if got, err := DecodeMember("m", data); err != nil || !cmp.Equal(got, want) {
		t.Errorf("member: %v %s", err, cmp.Diff(want, got))
	}
	data, _ = hex.DecodeString("0101" + assignFields1)
	if got, err := DecodeAssignment(data); err != nil || !cmp.Equal(got, Assignment{TopologyHash: "abc", Placement: Placement{Active: []TaskID{{0, 1}, {300, 2}}}}) {
		t.Errorf("assignment: %v %+v", err, got)
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
	a := Assignment{TopologyHash: "abc", Placement: Placement{Active: []TaskID{{0, 1}, {300, 2}}, Standbys: []TaskID{{0, 5}}, Warmups: []TaskID{{1, 0}}}}
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
	data[0], m.Format = 3, 3
	if got, err := DecodeMember("m", append(data, "new field"...)); err != nil || !cmp.Equal(got, m) {
		t.Errorf("a later version that this reader may read: %v %s", err, cmp.Diff(m, got))
	}
	data[1] = 3
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
