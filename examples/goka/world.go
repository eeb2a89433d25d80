package loyalty

import (
	"fmt"
	"math/rand/v2"
)

// World is an input: customers, tiers and purchases, the same for the same seed.
type World struct {
	Customers map[string]Customer
	Tiers     map[string]int64
	Purchases []KeyedPurchase
}

// KeyedPurchase is a purchase with its key.
type KeyedPurchase struct {
	Customer string
	Purchase
}

// NewWorld makes an input of so many customers and purchases.
func NewWorld(seed uint64, customers, purchases int) World {
	random := rand.New(rand.NewPCG(seed, 1))
	w := World{Customers: map[string]Customer{}, Tiers: map[string]int64{"bronze": 1, "silver": 2, "gold": 3}}
	tiers := []string{"bronze", "silver", "gold"}
	name := func(n int) string { return fmt.Sprintf("customer-%04d", n) }
	for n := range customers {
		c := Customer{Tier: tiers[random.IntN(len(tiers))]}
		if n > 0 && random.IntN(2) == 0 {
			c.BroughtBy = name(random.IntN(n))
		}
		w.Customers[name(n)] = c
	}
	for n := range purchases {
		w.Purchases = append(w.Purchases, KeyedPurchase{name(random.IntN(customers)), Purchase{ID: fmt.Sprint("p", n), Cents: random.Int64N(10_000)}})
	}
	return w
}

// Accounts is what the group's table must hold when all purchases were counted once, in whatever order.
func (w World) Accounts() map[string]Account {
	accounts := map[string]Account{}
	credit := func(customer string, points, purchases int64) {
		a := accounts[customer]
		a.Points += points
		a.Purchases += purchases
		accounts[customer] = a
	}
	for _, p := range w.Purchases {
		c := w.Customers[p.Customer]
		points := p.Cents / 100 * w.Tiers[c.Tier]
		credit(p.Customer, points, 1)
		if c.BroughtBy != "" && points >= 10 {
			credit(c.BroughtBy, points/10, 0)
		}
	}
	return accounts
}

// Rewards is how many rewards each customer must have had.
func (w World) Rewards() map[string]int64 {
	rewards := map[string]int64{}
	for customer, a := range w.Accounts() {
		if n := a.Points / 100; n > 0 {
			rewards[customer] = n
		}
	}
	return rewards
}
