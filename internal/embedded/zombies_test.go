package embedded

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTransactionalIDThatIsForgottenStartsAnew has kfake forget a transactional id, for which it then gives the same producer id out, at epoch 0 again.
func TestTransactionalIDThatIsForgottenStartsAnew(t *testing.T) {
	b := startBroker(t, BrokerConfig{Configs: map[string]string{"transactional.id.expiration.ms": "200"}})
	defer b.Close()
	admin := client(t, b)
	defer admin.Close()
	createTopic(t, admin, "orders", nil)
	taken := client(t, b, kgo.TransactionalID("writer"))
	defer taken.Close()
	if _, _, err := taken.ProducerID(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, b, "writer", "orders", "before")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		all, err := kadm.NewClient(admin).ListTransactions(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the transactional id is not forgotten within a minute")
		}
	}
	commit(t, b, "writer", "orders", "after")
}
