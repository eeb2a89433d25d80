package storehttp

import (
	"context"
	"net/http"

	"github.com/tributary-io/tributary/engine/internal/scan"
	"github.com/tributary-io/tributary/state"
)

func (s *server) answerQuery(w http.ResponseWriter, r *http.Request, route string) {
	of, err := s.Store(r.PathValue("store"))
	if err != nil {
		s.writeError(w, err)
		return
	}
	if app := r.Header.Get(ApplicationHeader); app != "" && app != s.Application {
		writeJSON(w, http.StatusMisdirectedRequest, map[string]string{"error": "this is an instance of " + s.Application + ", not of " + app})
		return
	}
	a, err := s.parseAsk(r, route, of.Info())
	if err != nil {
		s.writeError(w, err)
		return
	}
	answer, err := s.collect(r.Context(), of, a)
	switch {
	case err != nil:
		s.writeError(w, err)
	case route == "get" && len(answer.Rows) == 0 && !a.forwarded:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such key"})
	case route == "get" && !a.forwarded:
		writeJSON(w, http.StatusOK, answer.Rows[0])
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// collect gathers rows from the partitions that may have them, wherever they are, up to the limit.
func (s *server) collect(ctx context.Context, of Store, a *ask) (*rowsJSON, error) {
	parts, err := partitionsOf(of, a)
	if err != nil {
		return nil, err
	}
	out := &rowsJSON{Store: a.store, Rows: []rowJSON{}}
	for _, part := range parts {
		left := a.limit - len(out.Rows)
		if left == 0 {
			out.Truncated = true
			break
		}
		got, err := s.collectPartition(ctx, of, a, part, left)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, got.Rows...)
		out.Truncated = out.Truncated || got.Truncated
	}
	return out, nil
}

// partitionsOf are the partitions that may have what is asked for.
func partitionsOf(of Store, a *ask) ([]int32, error) {
	all := of.Info().Partitions
	switch {
	case a.partition >= all:
		return nil, bad("store %s has %d partitions", a.store, all)
	case a.partition >= 0:
		return []int32{a.partition}, nil
	case a.key != nil:
		at, err := of.PartitionOf(a.key)
		return []int32{at}, err
	}
	parts := make([]int32, all)
	for i := range parts {
		parts[i] = int32(i)
	}
	return parts, nil
}

// collectPartition reads a partition here, or has it read where it is.
func (s *server) collectPartition(ctx context.Context, of Store, a *ask, part int32, limit int) (*rowsJSON, error) {
	var got scan.Portion
	take := func(stores state.Stores) error {
		got = storeRoutes[a.route].scan(stores, a, limit)
		return got.Err
	}
	behind, err := of.Read(part, a.standby, take)
	if err != nil && s.Absence(err) == Elsewhere && !a.forwarded {
		answer, err := s.forward(ctx, of, a, part, limit)
		if err != nil && a.standby {
			return s.forwardToStandby(ctx, of, a, part, limit, err)
		}
		return answer, err
	}
	if err != nil {
		return nil, err
	}
	out := &rowsJSON{Store: a.store, Truncated: got.More}
	for i := range got.Rows {
		row := s.render(a, part, &got.Rows[i])
		if behind != NotCopy {
			row.Behind = &behind
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}
