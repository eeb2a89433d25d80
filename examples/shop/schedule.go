package shop

import "slices"

// A slot is one arrival of a day, packed so that slots sort by time and need eight bytes: milliseconds of the day, how many days
// ago the order was placed, its index, the step, and whether it is the repetition.
type slot uint64

const (
	orderBits  = 29
	stepBits   = 2
	repeatBits = 1
	agoBits    = 4

	orderShift = repeatBits + stepBits
	agoShift   = orderShift + orderBits
	timeShift  = agoShift + agoBits // 36: a day's milliseconds take 27 bits more

	// flawed in place of the days ago marks a record that can't be decoded; the index is its number.
	flawed = 1<<agoBits - 1
)

func makeSlot(ms int64, ago, index int, step Step, repeat int) slot {
	return slot(ms)<<timeShift | slot(ago)<<agoShift | slot(index)<<orderShift | slot(step)<<repeatBits | slot(repeat)
}

func (s slot) ms() int64    { return int64(s >> timeShift) }
func (s slot) ago() int     { return int(s >> agoShift & (1<<agoBits - 1)) }
func (s slot) index() int   { return int(s >> orderShift & (1<<orderBits - 1)) }
func (s slot) step() Step   { return Step(s >> repeatBits & (1<<stepBits - 1)) }
func (s slot) repeat() bool { return s&1 != 0 }

// schedule lists all arrivals of the day in their order.
func (s Spec) schedule() []slot {
	slots := make([]slot, 0, 3*s.Orders+s.Orders/10+16)
	today := s.dayNumber()
	for ago := range lookBack + 1 {
		for index := range s.Orders {
			l := s.life(today-int64(ago), index)
			slots = l.arrivals(slots, today, ago)
		}
	}
	for i := range s.flaws() {
		d := s.drawFlaw(i)
		slots = append(slots, makeSlot(d.below(day), flawed, i, 0, 0))
	}
	slices.Sort(slots)
	return slots
}

// Count is the number of the day's records. It costs about as much as emitting them.
func (s Spec) Count() int { return len(s.schedule()) }

// arrivals appends what arrives of an order on a day.
func (l *life) arrivals(slots []slot, today int64, ago int) []slot {
	for step := range steps {
		for repeat, at := range l.arrival[step] {
			if at != 0 && at/day == today {
				slots = append(slots, makeSlot(at%day, ago, l.index, step, repeat))
			}
		}
	}
	return slots
}
