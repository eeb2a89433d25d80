package shop

// Step is a step in an order's life. The numbers are those of the schema's enum.
type Step uint8

// The steps.
const (
	Placed Step = iota
	Shipped
	Delivered
	Returned
	steps
)

var stepNames = [steps]string{"placed", "shipped", "delivered", "returned"}

func (s Step) String() string { return stepNames[s] }

// life is all that happens to one order.
type life struct {
	placedOn int64 // day number
	index    int   // among the orders of that day
	customer int
	cents    int64
	coupon   int // index into coupons; 0 is none
	// at is when each step happened, 0 if it never does; arrival is when each record of it arrives, the second one being a
	// repetition. All in milliseconds since 1970.
	at      [steps]int64
	arrival [steps][2]int64
}

// coupons has a word that isn't ASCII on purpose.
var coupons = [...]string{"", "WELCOME10", "FRÜHLING", "FREESHIP"}

// How long steps take and records travel. lookBack follows from them.
const (
	maxToShip    = 48 * hour
	maxToDeliver = 96 * hour
	maxToReturn  = 120 * hour
	maxTravel    = 120 * minute
	maxRepeat    = 10 * minute
	// lookBack is how many days after its own an order can still be heard of.
	lookBack = int((day + maxToShip + maxToDeliver + maxToReturn + maxTravel + maxRepeat) / day)
)

func (s Spec) life(placedOn int64, index int) life {
	d := drawFor(s.Seed, forOrder, uint64(placedOn), uint64(index))
	l := life{placedOn: placedOn, index: index}
	l.customer = int(d.below(int64(s.Customers())))
	l.cents = drawCents(&d)
	if d.permille(300) {
		l.coupon = 1 + int(d.below(int64(len(coupons)-1)))
	}
	l.at[Placed] = placedOn*day + (d.below(day)+d.below(day))/2 // most at noon
	if d.permille(960) {
		l.at[Shipped] = l.at[Placed] + hour + d.below(maxToShip-hour)
	}
	if l.at[Shipped] != 0 && d.permille(970) {
		l.at[Delivered] = l.at[Shipped] + 12*hour + d.below(maxToDeliver-12*hour)
	}
	if l.at[Delivered] != 0 && d.permille(80) {
		l.at[Returned] = l.at[Delivered] + 24*hour + d.below(maxToReturn-24*hour)
	}
	for step, at := range l.at {
		if at == 0 {
			continue
		}
		l.arrival[step][0] = at + drawTravel(&d)
		if d.permille(30) {
			l.arrival[step][1] = l.arrival[step][0] + drawRetry(&d)
		}
	}
	return l
}

// drawCents gives mostly small amounts, and now and then one that needs all the digits of decimal(12,2) but one.
func drawCents(d *draw) int64 {
	switch {
	case d.oneIn(5000):
		return 100_000_000 + d.below(99_900_000_000)
	case d.permille(100):
		return 10_000 + d.below(190_000)
	}
	return 99 + d.below(10_000)
}

// drawTravel gives the time from an event to its record. Of a thousand, 900 arrive within seconds, 85 out of order but in time for
// a window with ten minutes of grace, and 15 so late that five-minute windows have closed where the traffic is dense.
func drawTravel(d *draw) int64 {
	switch u := d.below(1000); {
	case u < 900:
		return d.below(3 * second)
	case u < 985:
		return 3*second + d.below(8*minute-3*second)
	}
	return 16*minute + d.below(maxTravel-16*minute)
}

// drawRetry gives the time from a record to its repetition: soon, or when the producer has come back.
func drawRetry(d *draw) int64 {
	if d.permille(800) {
		return 200 + d.below(2*second)
	}
	return 2*second + d.below(maxRepeat-2*second)
}
