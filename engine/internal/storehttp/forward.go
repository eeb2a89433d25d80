package storehttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-io/tributary/engine/internal/holders"
)

// A query for what another instance has is forwarded to it once: it carries a header that keeps the other from forwarding it again, and
// the application's name, since an address may have come to belong to somebody else.
const (
	forwardedHeader = "Tributary-Forwarded"
	// ApplicationHeader is in all that instances ask one another.
	ApplicationHeader = "Tributary-Application"
	maxForwarded      = 64 << 20 // bytes of an answer
)

// forwardError says why another instance didn't answer.
type forwardError struct {
	endpoint string
	err      error
}

func (e *forwardError) Error() string {
	return fmt.Sprintf("the instance at %s, which has it, doesn't answer: %v", e.endpoint, e.err)
}

func (e *forwardError) Unwrap() error { return e.err }

// errMoved says that the other instance doesn't have it any more.
var errMoved = errors.New("it has moved on")

// forward asks the instance that has a partition. If that one fails, or has given the partition up, the coordinator is asked anew, once.
func (s *server) forward(ctx context.Context, of Store, a *ask, part int32, limit int) (*rowsJSON, error) {
	id := of.Task(part)
	absent := of.Opening(part)
	var asked string
	last := absent
	for _, age := range []time.Duration{holders.Lives, 0} {
		seen, err := s.Holders.Look(ctx, age)
		if err != nil {
			return nil, err
		}
		h, ok := seen.Of(id)
		switch {
		case !ok || h.Endpoint == s.Advertised():
			continue // not known yet, or it is just coming here
		case h.Endpoint == "":
			return nil, &forwardError{h.ID, errors.New("it serves no HTTP, or not where others can reach it: options HTTP and Advertise")}
		case h.Endpoint == asked && !errors.Is(last, errMoved):
			return nil, last
		}
		asked = h.Endpoint
		got, err := s.ask(ctx, h, a, part, limit)
		if err == nil {
			return got, nil
		}
		last = err
	}
	if errors.Is(last, errMoved) {
		return nil, absent
	}
	return nil, last
}

func (s *server) ask(ctx context.Context, m holders.Member, a *ask, part int32, limit int) (*rowsJSON, error) {
	query := url.Values{}
	maps.Copy(query, a.query)
	query.Set("partition", strconv.Itoa(int(part)))
	query.Set("limit", strconv.Itoa(limit))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL()+"/stores/"+url.PathEscape(a.store)+"/"+a.route+"?"+query.Encode(), nil)
	if err != nil {
		return nil, &forwardError{m.Endpoint, err}
	}
	req.Header.Set(forwardedHeader, "1")
	req.Header.Set(ApplicationHeader, s.Application)
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, &forwardError{m.Endpoint, err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxForwarded))
	if err != nil {
		return nil, &forwardError{m.Endpoint, err}
	}
	switch resp.StatusCode {
	case http.StatusOK:
		var got rowsJSON
		if err := json.Unmarshal(body, &got); err != nil {
			return nil, &forwardError{m.Endpoint, fmt.Errorf("read its answer: %w", err)}
		}
		return &got, nil
	case http.StatusMisdirectedRequest, http.StatusServiceUnavailable:
		return nil, fmt.Errorf("the instance at %s: %w", m.Endpoint, errMoved)
	}
	return nil, &forwardError{m.Endpoint, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body[:min(len(body), 500)])))}
}

// forwardToStandby asks the instances that keep a copy of a partition, after the one that has its task didn't answer.
func (s *server) forwardToStandby(ctx context.Context, of Store, a *ask, part int32, limit int, cause error) (*rowsJSON, error) {
	seen, err := s.Holders.Look(ctx, holders.Lives)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	for _, h := range seen.Copies(of.Task(part)) {
		if h.Endpoint == "" || h.Endpoint == s.Advertised() {
			continue
		}
		if got, err := s.ask(ctx, h, a, part, limit); err == nil {
			return got, nil
		}
	}
	return nil, cause
}
