package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
)

// choice is what of the tasks and standbys a request wants to see: the parameters of the page and of state.json.
type choice struct {
	Page, StandbyPage int    // from 1
	Per               int    // on a page
	Sort              string // task, lag, rate
	Show              string // all, waiting: those that don't run
	Sub               string // number of a sub-topology; empty: all
}

// pages says which part of a list is shown.
type pages struct {
	Page  int `json:"page"` // from 1
	Pages int `json:"pages"`
	Total int `json:"total"` // of those chosen
}

const (
	usualPer = 100
	mostPer  = 10_000
)

// parseChoice takes what makes sense, and the usual for the rest.
func parseChoice(q url.Values) choice {
	number := func(name string, usual, most int) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil || n < 1 {
			return usual
		}
		return min(n, most)
	}
	oneOf := func(name string, all ...string) string {
		if slices.Contains(all, q.Get(name)) {
			return q.Get(name)
		}
		return all[0]
	}
	c := choice{
		Page: number("page", 1, mostPer), StandbyPage: number("standbys", 1, mostPer), Per: number("per", usualPer, mostPer),
		Sort: oneOf("sort", "task", "lag", "rate"), Show: oneOf("show", "all", "waiting"),
	}
	if n, err := strconv.Atoi(q.Get("sub")); err == nil {
		c.Sub = strconv.Itoa(n)
	}
	return c
}

// With gives the query of the choice with something else in it. A change of what is chosen begins at the first page.
func (c choice) With(name string, value any) string {
	q := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			q.Set(name, value)
		}
	}
	set("page", strconv.Itoa(c.Page), "1")
	set("standbys", strconv.Itoa(c.StandbyPage), "1")
	set("per", strconv.Itoa(c.Per), strconv.Itoa(usualPer))
	set("sort", c.Sort, "task")
	set("show", c.Show, "all")
	set("sub", c.Sub, "")
	text := ""
	switch v := value.(type) {
	case int:
		text = strconv.Itoa(v)
	case string:
		text = v
	}
	if name != "" && name != "page" && name != "standbys" {
		q.Del("page")
	}
	if q.Set(name, text); text == "" || text == "1" && name != "sub" {
		q.Del(name)
	}
	return "?" + q.Encode()
}

// tasks gives the tasks that were chosen, of a page.
func (c choice) tasks(all []task) ([]task, pages) {
	chosen := []task{}
	for i := range all {
		t := &all[i]
		if c.Sub != "" && c.Sub != strconv.Itoa(t.Subtopology) || c.Show == "waiting" && t.State == "running" {
			continue
		}
		chosen = append(chosen, *t)
	}
	switch c.Sort {
	case "lag":
		slices.SortStableFunc(chosen, func(a, b task) int { return cmp.Compare(b.Lag, a.Lag) })
	case "rate":
		rate := func(t *task) float64 {
			if t.Rate == nil {
				return -1
			}
			return *t.Rate
		}
		slices.SortStableFunc(chosen, func(a, b task) int { return cmp.Compare(rate(&b), rate(&a)) })
	}
	return cut(chosen, c.Page, c.Per)
}

// standbys gives those of a page.
func (c choice) standbys(all []standby) ([]standby, pages) { return cut(all, c.StandbyPage, c.Per) }

func cut[T any](all []T, page, per int) ([]T, pages) {
	p := pages{Pages: max(1, (len(all)+per-1)/per), Total: len(all)}
	p.Page = min(page, p.Pages)
	from := (p.Page - 1) * per
	return all[from:min(from+per, len(all))], p
}
