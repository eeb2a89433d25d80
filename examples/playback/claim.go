package playback

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// takenFor is how long an unsharded lander waits for the place of another one: one that was killed keeps it until its session ends.
const takenFor = 15 * time.Second

// OccupiedError says that another lander has a topic or table.
type OccupiedError struct{ By, Advice string }

func (e *OccupiedError) Error() string { return e.By + "; " + e.Advice }

// claim makes sure that a lander may start: that the table isn't landed by another application, which would land every event a second
// time, and, unless landers are sharded, that no other one of its group runs.
func claim(ctx context.Context, s Settings, application, table string, log *slog.Logger) error {
	landings, err := Landings(ctx, s, table)
	if err != nil {
		log.Debug("the table can't be looked at; it is made if it isn't there", "error", err)
	}
	for _, l := range landings {
		if l.Application != application {
			return &OccupiedError{fmt.Sprintf("table %s is landed by application %s (partition %d up to offset %d)", table, l.Application, l.Partition, l.Next),
				"stop, or land into another table (STREAMING_TABLE)"}
		}
	}
	if s.Sharded {
		return nil
	}
	return alone(ctx, s, application)
}

// alone waits until nobody is in the group, or the group can be asked at all: a new cluster has no coordinator for the first moments.
func alone(ctx context.Context, s Settings, group string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for deadline := time.Now().Add(takenFor); ; {
		groups, err := admin.DescribeGroups(ctx, group)
		members := groups[group].Members
		if err == nil && len(members) == 0 {
			return nil
		}
		if late := time.Now().After(deadline); late && err != nil {
			return fmt.Errorf("look who is in group %s: %w", group, err)
		} else if late {
			return &OccupiedError{fmt.Sprintf("%d other landers of group %s run, such as %s on %s", len(members), group, members[0].MemberID, members[0].ClientHost),
				"stop them, or start all with STREAMING_SHARDED=true"}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Landers says how many landers run.
func Landers(ctx context.Context, s Settings) (int, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	groups, err := kadm.NewClient(client).DescribeGroups(ctx, LanderID)
	if err != nil {
		return 0, fmt.Errorf("look who is in group %s: %w", LanderID, err)
	}
	return len(groups[LanderID].Members), nil
}

// ForgetOffsets deletes the committed offsets of groups, none of which may be running. Landers that keep their progress in the table
// go on as before; those that keep it in Kafka begin again.
func ForgetOffsets(ctx context.Context, s Settings, groups ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, g := range groups {
		if _, err := kadm.NewClient(client).DeleteGroup(ctx, g); err != nil {
			return fmt.Errorf("delete group %s: %w", g, err)
		}
	}
	return nil
}
