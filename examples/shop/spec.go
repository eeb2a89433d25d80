package shop

import (
	"fmt"
	"time"
)

// Topics of the demonstration, as package schemas declares them.
const (
	OrderTopic    = "ods.demo.order_events"
	CustomerTopic = "ods.demo.customers"
	// Partitions is the number of partitions of both topics.
	Partitions = 3
)

// Spec chooses a stream. Days with the same Orders and Seed fit together: each goes on with the orders of the days before.
type Spec struct {
	Date   time.Time // the day that is emitted, 00:00 UTC
	Orders int       // placed each day
	Seed   uint64
}

// ParseDate reads a day such as 2026-06-01.
func ParseDate(s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("date %q: write it as 2026-06-01", s)
	}
	return t, nil
}

const (
	day     = int64(24 * time.Hour / time.Millisecond)
	hour    = int64(time.Hour / time.Millisecond)
	minute  = int64(time.Minute / time.Millisecond)
	second  = int64(time.Second / time.Millisecond)
	maxDay  = 1 << orderBits // orders that a day's schedule can tell apart
	epochMS = int64(1577836800000)
)

// Check returns what is wrong with the spec.
func (s Spec) Check() error {
	switch {
	case s.Date.UnixMilli()%day != 0:
		return fmt.Errorf("date %v isn't the start of a day in UTC", s.Date)
	case s.Date.UnixMilli() < epochMS+30*day || s.Date.Year() > 9999:
		return fmt.Errorf("date %s is not within 2020-01-31 to 9999-12-31", s.Date.Format(time.DateOnly))
	case s.Orders < 1 || s.Orders >= maxDay:
		return fmt.Errorf("%d orders a day: between 1 and %d are possible", s.Orders, maxDay-1)
	}
	return nil
}

// Next is the day after.
func (s Spec) Next() Spec {
	s.Date = s.Date.AddDate(0, 0, 1)
	return s
}

// dayNumber counts days since 1970.
func (s Spec) dayNumber() int64 { return s.Date.UnixMilli() / day }
