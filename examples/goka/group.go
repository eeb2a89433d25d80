package loyalty

import (
	"errors"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
)

// The topics that the application reads. They belong to others.
const (
	Purchases goka.Stream = "purchases" // keyed by customer
	Customers goka.Table  = "customers" // keyed by customer, in as many partitions as the purchases
	Tiers     goka.Table  = "tiers"     // points per euro, keyed by tier
)

// YearEnd is the name of the visitor that sends statements.
const YearEnd = "year-end"

// Rewards names the topic that a group's rewards and statements go to.
func Rewards(group goka.Group) goka.Stream { return goka.Stream(group) + "-rewards" }

// Group defines the application.
func Group(name goka.Group) *goka.GroupGraph {
	app := application{rewards: Rewards(name)}
	return goka.DefineGroup(name,
		goka.Input(Purchases, JSON[Purchase]{}, app.purchase),
		goka.Loop(JSON[Bonus]{}, app.bonus),
		goka.Join(Customers, JSON[Customer]{}),
		goka.Lookup(Tiers, new(codec.Int64)),
		goka.Output(app.rewards, JSON[Reward]{}),
		goka.Persist(JSON[Account]{}),
		goka.Visitor(YearEnd, app.statement),
	)
}

type application struct{ rewards goka.Stream }

// purchase is called for each purchase, with its customer as the key.
func (a application) purchase(ctx goka.Context, message any) {
	p := message.(Purchase)
	if p.Cents < 0 {
		ctx.Fail(errors.New("a purchase can't cost less than nothing"))
	}
	customer, _ := ctx.Join(Customers).(Customer) // one that isn't known has no tier
	rate, ok := ctx.Lookup(Tiers, customer.Tier).(int64)
	if !ok {
		rate = 1
	}
	points := p.Cents / 100 * rate
	account := accountOf(ctx)
	account.Purchases++
	a.credit(ctx, account, points)
	if customer.BroughtBy != "" && points >= 10 {
		ctx.Loopback(customer.BroughtBy, Bonus{Points: points / 10})
	}
}

// bonus is called for each bonus, with the customer who gets it as the key.
func (a application) bonus(ctx goka.Context, message any) {
	a.credit(ctx, accountOf(ctx), message.(Bonus).Points)
}

// statement is called for each account at the end of the year.
func (a application) statement(ctx goka.Context, year any) {
	account := accountOf(ctx)
	ctx.Emit(a.rewards, ctx.Key(), Reward{Statement: year.(string), Points: account.Points},
		goka.WithCtxEmitHeaders(goka.Headers{"kind": []byte("statement")}))
	account.Statements++
	ctx.SetValue(account)
}

// credit adds points to an account, and sends a reward for each hundred that they fill.
func (a application) credit(ctx goka.Context, account Account, points int64) {
	for n := account.Points/100 + 1; n <= (account.Points+points)/100; n++ {
		ctx.Emit(a.rewards, ctx.Key(), Reward{Number: n})
	}
	account.Points += points
	ctx.SetValue(account)
}

func accountOf(ctx goka.Context) Account {
	account, _ := ctx.Value().(Account)
	return account
}
