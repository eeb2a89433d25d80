package delta

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Flag returns a boolean table property, or def if it is absent or unreadable.
func (m *Metadata) Flag(key string, def bool) bool {
	switch strings.ToLower(m.Configuration[key]) {
	case "true":
		return true
	case "false":
		return false
	}
	return def
}

// Number returns an integer table property, or def if it is absent or unreadable.
func (m *Metadata) Number(key string, def int64) int64 {
	n, err := strconv.ParseInt(m.Configuration[key], 10, 64)
	if err != nil {
		return def
	}
	return n
}

// Interval returns a table property that is a calendar interval, such as "interval 30 days" or "interval 1 week 12 hours",
// or def if it is absent or unreadable. Months and years, which have no fixed length, are unreadable.
func (m *Metadata) Interval(key string, def time.Duration) time.Duration {
	if d, ok := parseInterval(m.Configuration[key]); ok {
		return d
	}
	return def
}

var intervalUnits = map[string]time.Duration{
	"microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute,
	"hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

func parseInterval(text string) (d time.Duration, ok bool) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit := intervalUnits[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || unit == 0 || n < 0 || n > int64(maxInterval/unit) {
			return 0, false
		}
		if d += time.Duration(n) * unit; d > maxInterval {
			return 0, false
		}
	}
	return d, true
}

const maxInterval = 200 * 365 * 24 * time.Hour
