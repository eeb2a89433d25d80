package shop

// draw is a sequence of pseudo-random numbers (SplitMix64: Steele, Lea and Flood, 2014). It is written out here since the numbers
// must never change, whatever becomes of math/rand.
type draw struct{ state uint64 }

// The things that numbers are drawn for.
const (
	forOrder uint64 = iota + 1
	forCustomer
	forFlaw
	forEventID
)

// drawFor starts the sequence of one thing.
func drawFor(seed, what, a, b uint64) draw {
	return draw{mix(mix(mix(seed+what*0x9e3779b97f4a7c15)^a) ^ b)}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *draw) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	return mix(d.state)
}

// below returns a number from 0 to n-1. It favours some by n/2^64, which doesn't matter here.
func (d *draw) below(n int64) int64 { return int64(d.next() % uint64(n)) }

// oneIn is true once in n times.
func (d *draw) oneIn(n int64) bool { return d.below(n) == 0 }

// permille is true n times in a thousand.
func (d *draw) permille(n int64) bool { return d.below(1000) < n }
