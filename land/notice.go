package land

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// NoticeTable is where notices are kept, below the lake: a row for each table that had something new.
const NoticeTable = "_ods/notices"

// Notice tells those who build on the tables that there is something new in some of them.
type Notice struct {
	NoticedAt time.Time      `json:"noticed_at"`
	Group     string         `json:"group"`
	Tables    []TableChanged `json:"tables"`
}

// TableChanged is a table with new rows.
type TableChanged struct {
	Topic   string `json:"topic"`
	Table   string `json:"table"` // place
	Version int64  `json:"table_version"`
	From    int64  `json:"from"` // offsets landed by the notice before, over all partitions; 0 by none
	To      int64  `json:"to"`   // offsets landed now; less than From if the table was emptied, to land anew
}

// notice is a row of the table of notices.
type notice struct {
	NoticedAt time.Time `lake:"noticed_at,notnull,comment=when downstream was told"`
	Group     string    `lake:"group,comment=the sink's group"`
	Topic     string    `lake:"topic,notnull"`
	Table     string    `lake:"table,comment=the table with new rows"`
	Version   int64     `lake:"table_version,comment=its version then"`
	From      int64     `lake:"landed_before,comment=offsets landed by the notice before"`
	To        int64     `lake:"landed,comment=offsets landed by this one"`
}

// notifier gives notices at a pace. The table of notices is its memory: how far each stream had come at the last one, and when that was. So a
// restart gives none twice, and of several instances one gives it. Where a URL is told, it is told before the table is written: at least once.
type notifier struct {
	cfg    *Config
	client *http.Client
	table  sink.Writer // nil until the first notice
	last   time.Time
	before map[string]int64 // by topic
}

// noticeLimit bounds the telling of one notice.
const noticeLimit = 30 * time.Second

func newNotifier(cfg *Config) *notifier {
	return &notifier{cfg: cfg, client: &http.Client{Timeout: noticeLimit}}
}

func (n *notifier) close() error {
	n.client.CloseIdleConnections()
	if n.table == nil {
		return nil
	}
	return n.table.Close()
}

// tell gives a notice of what is new in a picture, if one is due.
func (n *notifier) tell(ctx context.Context, all []StreamStatus) error {
	if n.before == nil {
		if err := n.remember(ctx); err != nil {
			return err
		}
	}
	now := n.cfg.now().UTC()
	if ago := now.Sub(n.last); ago >= 0 && ago < n.cfg.Notice { // below 0 the clock was wrong then, or is now
		return nil
	}
	out := Notice{NoticedAt: now, Group: n.cfg.Group}
	for _, st := range all {
		landed := int64(0)
		for _, p := range st.Partitions {
			landed += p.Landed
		}
		// A stream that wasn't seen whole may seem to have gone back; one that was seen whole and has gone back was emptied, and lands anew.
		if st.Error == "" && st.TableVersion >= 0 && landed != n.before[st.Topic] {
			out.Tables = append(out.Tables, TableChanged{st.Topic, st.Table, st.TableVersion, n.before[st.Topic], landed})
		}
	}
	if len(out.Tables) == 0 {
		return nil
	}
	if err := n.post(ctx, &out); err != nil {
		return err
	}
	if err := n.write(ctx, &out); err != nil {
		if sink.IsFenced(err) { // another instance was faster: its notices count
			n.before = nil
			return nil
		}
		return fmt.Errorf("table of notices: %w", err)
	}
	n.last = now
	for _, t := range out.Tables {
		n.before[t.Topic] = t.To
	}
	n.cfg.Log.Info("told downstream of new rows", "tables", len(out.Tables), "url", n.cfg.NoticeURL)
	return nil
}

// remember reads the last notices.
func (n *notifier) remember(ctx context.Context) error {
	_, progress, err := lake.ReadProgress(ctx, n.cfg.place(NoticeTable))
	if err != nil && !errors.Is(err, lake.ErrNoTable) {
		return fmt.Errorf("table of notices: %w", err)
	}
	before := map[string]int64{}
	for _, p := range progress {
		if p.Application == n.cfg.Group {
			before[p.Topic] = p.Next
			if at := time.UnixMilli(p.Updated); at.After(n.last) {
				n.last = at
			}
		}
	}
	n.before = before
	return nil
}

func (n *notifier) post(ctx context.Context, out *Notice) error {
	if n.cfg.NoticeURL == "" {
		return nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.cfg.NoticeURL, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := n.client.Do(req)
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 500))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("notice: %s answers %s: %s", n.cfg.NoticeURL, res.Status, strings.TrimSpace(string(said)))
	}
	return nil
}

func (n *notifier) write(ctx context.Context, out *Notice) error {
	if n.table == nil {
		table := lake.Delta(n.cfg.place(NoticeTable), lake.Comment("when those who build on the tables were told of new rows"), lake.RunColumns(n.cfg.RunID()))
		if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[notice]()); err != nil {
			return err
		}
		w, err := table.Open(ctx, sink.Env{ApplicationID: n.cfg.Group, Name: "notices", Logger: n.cfg.Log, Now: n.cfg.now})
		if err != nil {
			return err
		}
		n.table = w
	}
	b := n.table.NewBatch()
	defer b.Release()
	var moves []sink.Move
	for _, t := range out.Tables {
		row := notice{out.NoticedAt, out.Group, t.Topic, t.Table, t.Version, t.From, t.To}
		at := out.NoticedAt.UnixMilli()
		if err := b.Append(nil, &row, &sink.Meta{Topic: t.Topic, Offset: t.To, Timestamp: at, BrokerTimestamp: at}); err != nil {
			return err
		}
		from, known := n.before[t.Topic]
		if !known {
			from = sink.NoOffset
		}
		moves = append(moves, sink.Move{Partition: sink.Partition{Topic: t.Topic}, From: from, To: t.To})
	}
	_, err := n.table.Commit(ctx, b, moves)
	return err
}
