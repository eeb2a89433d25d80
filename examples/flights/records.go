package flights

import (
	"compress/gzip"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Departure is one flight that left New York. Event time is Departed.
type Departure struct {
	Origin       string    `json:"origin"`
	Dest         string    `json:"dest"`
	Carrier      string    `json:"carrier"`
	Flight       int32     `json:"flight"`
	TailNum      string    `json:"tailnum"`
	Scheduled    time.Time `json:"scheduled"`
	Departed     time.Time `json:"departed"`
	DelayMinutes int64     `json:"delay_minutes"` // negative: early
	Distance     int32     `json:"distance"`      // miles
}

// Plane is a row of the table of planes, keyed by tail number.
type Plane struct {
	TailNum      string `json:"tailnum"`
	Year         *int32 `json:"year"`
	Manufacturer string `json:"manufacturer"`
	Model        string `json:"model"`
	Seats        int32  `json:"seats"`
}

// Airport is a row of the table of airports, keyed by its FAA code.
type Airport struct {
	FAA  string  `json:"faa"`
	Name string  `json:"name"`
	Lat  float64 `json:"lat"`
	Lon  float64 `json:"lon"`
}

//go:embed testdata/flights-2013-01.csv.gz testdata/planes.csv.gz testdata/airports.csv.gz
var files embed.FS

// Departures returns the month's flights that were not cancelled, in the order of the source file: that of their schedule, so that
// event times are out of order.
func Departures() ([]Departure, error) {
	var all []Departure
	err := eachRow("flights-2013-01.csv.gz", func(r row) error {
		if r.null("dep_time") {
			return nil // cancelled
		}
		scheduled := time.Date(int(r.int("year")), time.Month(r.int("month")), int(r.int("day")), 0, 0, 0, 0, time.UTC)
		hhmm := r.int("sched_dep_time")
		scheduled = scheduled.Add(time.Duration(hhmm/100)*time.Hour + time.Duration(hhmm%100)*time.Minute)
		delay := r.int("dep_delay")
		all = append(all, Departure{
			Origin: r.text("origin"), Dest: r.text("dest"), Carrier: r.text("carrier"), Flight: int32(r.int("flight")),
			TailNum: r.text("tailnum"), Scheduled: scheduled, Departed: scheduled.Add(time.Duration(delay) * time.Minute),
			DelayMinutes: delay, Distance: int32(r.int("distance")),
		})
		return r.err()
	})
	return all, err
}

// Planes returns the table of planes.
func Planes() ([]Plane, error) {
	var all []Plane
	err := eachRow("planes.csv.gz", func(r row) error {
		p := Plane{TailNum: r.text("tailnum"), Manufacturer: r.text("manufacturer"), Model: r.text("model"), Seats: int32(r.int("seats"))}
		if !r.null("year") {
			year := int32(r.int("year"))
			p.Year = &year
		}
		all = append(all, p)
		return r.err()
	})
	return all, err
}

// Airports returns the table of airports.
func Airports() ([]Airport, error) {
	var all []Airport
	err := eachRow("airports.csv.gz", func(r row) error {
		all = append(all, Airport{FAA: r.text("faa"), Name: r.text("name"), Lat: r.float("lat"), Lon: r.float("lon")})
		return r.err()
	})
	return all, err
}

// row is one row of a file. Its accessors collect what is wrong; nulls are written NA.
type row struct {
	file    string
	line    int
	columns map[string]int
	fields  []string
	errs    *[]error
}

func (r row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		*r.errs = append(*r.errs, fmt.Errorf("no column %q", column))
		return ""
	}
	return strings.Clone(r.fields[i])
}

func (r row) null(column string) bool { return r.text(column) == "NA" }

func (r row) int(column string) int64 {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	r.note(column, err)
	return n
}

func (r row) float(column string) float64 {
	f, err := strconv.ParseFloat(r.text(column), 64)
	r.note(column, err)
	return f
}

func (r row) note(column string, err error) {
	if err != nil {
		*r.errs = append(*r.errs, fmt.Errorf("column %s: %w", column, err))
	}
}

func (r row) err() error {
	if len(*r.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s, line %d: %w", r.file, r.line, errors.Join(*r.errs...))
}

// eachRow calls f for each row of a gzipped CSV file with a header.
func eachRow(file string, f func(row) error) error {
	raw, err := files.Open("testdata/" + file)
	if err != nil {
		return err
	}
	defer raw.Close()
	unzipped, err := gzip.NewReader(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	reader := csv.NewReader(unzipped)
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	columns := make(map[string]int, len(header))
	for i, name := range header {
		columns[strings.Clone(name)] = i
	}
	for line := 2; ; line++ {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := f(row{file, line, columns, fields, new([]error)}); err != nil {
			return err
		}
	}
}
