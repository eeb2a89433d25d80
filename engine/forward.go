package engine

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
	forwardedHeader   = "Tributary-Forwarded"
	applicationHeader = "Tributary-Application"
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
func (e *Engine) forward(ctx context.Context, p placement, a *ask, part int32, limit int) (*rowsJSON, error) {
	id := assignID(p.task(part))
	absent := &NotHereError{Store: a.store, Partition: part, Reason: Opening}
	var asked string
	var last error = absent
	for _, age := range []time.Duration{holders.Lives, 0} {
		seen, err := e.queries.holders.Look(ctx, age)
		if err != nil {
			return nil, err
		}
		h, ok := seen.Of(id)
		switch {
		case !ok || h.Endpoint == e.advertised():
			continue // not known yet, or it is just coming here
		case h.Endpoint == "":
			return nil, &forwardError{h.ID, errors.New("it serves no HTTP, or not where others can reach it: options HTTP and Advertise")}
		case h.Endpoint == asked && !errors.Is(last, errMoved):
			return nil, last
		}
		asked = h.Endpoint
		got, err := e.askInstance(ctx, h.Endpoint, a, part, limit)
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

// baseURL is the URL of an instance's server, without a slash at its end.
func baseURL(endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	return strings.TrimSuffix(endpoint, "/")
}

func (e *Engine) askInstance(ctx context.Context, endpoint string, a *ask, part int32, limit int) (*rowsJSON, error) {
	query := url.Values{}
	maps.Copy(query, a.query)
	query.Set("partition", strconv.Itoa(int(part)))
	query.Set("limit", strconv.Itoa(limit))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL(endpoint)+"/stores/"+url.PathEscape(a.store)+"/"+a.route+"?"+query.Encode(), nil)
	if err != nil {
		return nil, &forwardError{endpoint, err}
	}
	req.Header.Set(forwardedHeader, "1")
	req.Header.Set(applicationHeader, e.plan.ApplicationID)
	resp, err := e.queries.client.Do(req)
	if err != nil {
		return nil, &forwardError{endpoint, err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxForwarded))
	if err != nil {
		return nil, &forwardError{endpoint, err}
	}
	switch resp.StatusCode {
	case http.StatusOK:
		var got rowsJSON
		if err := json.Unmarshal(body, &got); err != nil {
			return nil, &forwardError{endpoint, fmt.Errorf("read its answer: %w", err)}
		}
		return &got, nil
	case http.StatusMisdirectedRequest, http.StatusServiceUnavailable:
		return nil, fmt.Errorf("the instance at %s: %w", endpoint, errMoved)
	}
	return nil, &forwardError{endpoint, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body[:min(len(body), 500)])))}
}
