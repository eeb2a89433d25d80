package measure

import (
	"fmt"
	"slices"
)

// Ratios compares round by round, so that what disturbed both doesn't count. Rounds in which the other has no figure are left out.
func Ratios(own, other []float64) (all []float64) {
	for i := range min(len(own), len(other)) {
		if other[i] > 0 {
			all = append(all, own[i]/other[i])
		}
	}
	return all
}

// Spread is the median in a form of package fmt, with the least and the greatest where there are several values.
func Spread(values []float64, form string) string {
	if len(values) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	text := fmt.Sprintf(form, Median(sorted))
	if n > 1 {
		text += fmt.Sprintf(" ("+form+"–"+form+")", sorted[0], sorted[n-1])
	}
	return text
}

// Median is the middle value, or the mean of the two in the middle; 0 of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
