package delta

import (
	"fmt"
	"testing"
)

// TestDomainsStay lands in a table with metadata domains of others: they stay as they are, in commits, checksums and checkpoints of either kind, and one that
// was removed stays removed.
func TestDomainsStay(t *testing.T) {
	for _, policy := range []string{"classic", "v2"} {
		protocol := `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"],"writerFeatures":["domainMetadata","v2Checkpoint"]}`
		store := foreignLog(t, protocol, oneColumn("long", ""), map[string]string{"delta.checkpointPolicy": policy, "delta.checkpointInterval": "3"})
		domains := ""
		for domain, removed := range map[string]bool{"acme.owner": false, "delta.future": false, "acme.gone": true} {
			domains += fmt.Sprintf(`{"domainMetadata":{"domain":%q,"configuration":"{\"of\":%d}","removed":%v}}`+"\n", domain, len(domain), removed)
		}
		if err := store.Put(t.Context(), commitName(1), []byte(domains)); err != nil {
			t.Fatal(err)
		}
		table := mustOpen(t, store, Options{})
		for i := range int64(5) {
			mustCommit(t, table, Commit{Add: []Add{mustFile(t, store, 1)}, Moves: []Move{move("a", i-1, i)}})
			if err := table.Maintain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		check := func(how string, h *Head) {
			t.Helper()
			if len(h.Domains) != 2 || h.Domains["acme.owner"].Configuration != `{"of":10}` || h.Domains["delta.future"].Configuration != `{"of":12}` {
				t.Errorf("%s, %s: %v", policy, how, h.Domains)
			}
		}
		check("the writer", table.Head())
		check("a checksum", mustOpen(t, store, Options{}).Head())
		for v := range int64(5) { // the log begins with the checkpoint
			for _, name := range []string{commitName(v), checksumName(v)} {
				if err := store.Delete(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		for v := int64(5); v < 7; v++ {
			if err := store.Delete(t.Context(), checksumName(v)); err != nil {
				t.Fatal(err)
			}
		}
		check("a checkpoint", mustOpen(t, store, Options{}).Head())
		check("a snapshot", mustSnapshot(t, mustOpen(t, store, Options{})).Head)
	}
}
