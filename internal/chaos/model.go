package chaos

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// model is what the application means, done by one goroutine over whole topics. Customers are added first, then orders and payments, each
// partition in its order.
type model struct {
	customers map[string]customer
	seen      map[string]bool       // ids of events
	orders    map[string]enriched   // by the event's id
	byOrder   map[string][]enriched // events of an order
	paid      map[string]paid       // by event and payment
	totals    map[string]totals     // by region
	windows   map[string]closedWindow

	records, duplicates, payments int64
}

func newModel() *model {
	return &model{
		customers: map[string]customer{}, seen: map[string]bool{}, orders: map[string]enriched{}, byOrder: map[string][]enriched{},
		paid: map[string]paid{}, totals: map[string]totals{}, windows: map[string]closedWindow{},
	}
}

func decode[T any](r *kgo.Record) (v T, err error) {
	if err = json.Unmarshal(r.Value, &v); err != nil {
		err = fmt.Errorf("%s-%d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	return v, err
}

func (m *model) addCustomer(r *kgo.Record) error {
	c, err := decode[customer](r)
	m.customers[string(r.Key)] = c
	return err
}

func (m *model) addOrder(r *kgo.Record) error {
	o, err := decode[order](r)
	if err != nil {
		return err
	}
	m.records++
	if m.seen[o.ID] {
		m.duplicates++
		return nil
	}
	m.seen[o.ID] = true
	e := enriched{o.ID, o.Order, o.Customer, m.customers[o.Customer].Region, o.Cents}
	m.orders[e.ID] = e
	m.byOrder[e.Order] = append(m.byOrder[e.Order], e)
	m.totals[e.Region] = m.totals[e.Region].add(e)
	start := r.Timestamp.UnixMilli()
	start -= start % windowSize.Milliseconds()
	key := windowKey(e.Region, start)
	w := m.windows[key]
	m.windows[key] = closedWindow{e.Region, start, w.Count + 1, w.Cents + e.Cents}
	return nil
}

func windowKey(region string, start int64) string { return fmt.Sprintf("%s@%d", region, start) }

// addPayment joins a payment with all events of its order, which must have been added.
func (m *model) addPayment(r *kgo.Record) error {
	p, err := decode[payment](r)
	if err != nil {
		return err
	}
	m.records++
	m.payments++
	for _, e := range m.byOrder[p.Order] {
		m.paid[e.ID+"/"+p.ID] = paid{e.ID, p.ID, e.Cents + p.Cents}
	}
	return nil
}

// closeWindows leaves only the windows that end at that time or before.
func (m *model) closeWindows(at int64) {
	for key, w := range m.windows {
		if w.Start+windowSize.Milliseconds() > at {
			delete(m.windows, key)
		}
	}
}
