// Package flights is a small application on real public records: a month of departures from New York's airports, with planes as a
// table, airports as a global table, and hourly windows of departures and delay per airport, landed in Delta tables.
//
// It shows what real event times look like: in the order of the schedule two departures of three are out of order, the latest by a
// whole day, so a short grace loses some and a grace of two days loses none. Topology declares it; Run runs it on a broker.
package flights
