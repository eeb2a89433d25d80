package group

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The statuses of a heartbeat's answer (KIP-1071): what keeps the group from working, or soon will.
const (
	staleTopology         = 0
	missingSourceTopics   = 1
	wronglyPartitioned    = 2
	missingInternalTopics = 3
	shutdownRequested     = 4
	assignmentDelayed     = 5
)

// patience is how long topics may be missing or wrong before the membership ends.
const patience = 30 * time.Second

// StatusError is something that the coordinator says is wrong with the group.
type StatusError struct {
	Code   int8
	Detail string // the coordinator's own words
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s: %s", statusName(e.Code), e.Detail) }

func statusName(code int8) string {
	switch code {
	case staleTopology:
		return "this instance's topology is older than the group's"
	case missingSourceTopics:
		return "source topics are missing"
	case wronglyPartitioned:
		return "topics have the wrong number of partitions"
	case missingInternalTopics:
		return "internal topics are missing"
	case shutdownRequested:
		return "a member asked the whole application to stop"
	case assignmentDelayed:
		return "the assignment is delayed"
	}
	return fmt.Sprintf("status %d", code)
}

// statuses logs each status once, and ends the membership for those that only a person can mend. Topics that are missing or wrong may be on
// their way: they are given some time.
func (s *Streams) statuses(all []kmsg.StreamsGroupHeartbeatResponseStatus) error {
	now := time.Now()
	seen := map[int8]bool{}
	for _, st := range all {
		seen[st.StatusCode] = true
		said := s.spoken[st.StatusCode]
		if said.detail != st.StatusDetail {
			if said.since.IsZero() {
				said.since = now
			}
			said.detail = st.StatusDetail
			s.spoken[st.StatusCode] = said
			s.cfg.Logger.Warn("the streams group isn't as it should be", "group", s.cfg.Group, "status", statusName(st.StatusCode), "detail", st.StatusDetail)
		}
		if advice := statusAdvice(st.StatusCode, now.Sub(said.since)); advice != "" {
			return &FatalError{Group: s.cfg.Group, Err: &StatusError{st.StatusCode, st.StatusDetail}, Advice: advice}
		}
	}
	for code := range s.spoken {
		if !seen[code] {
			delete(s.spoken, code)
			s.cfg.Logger.Info("the streams group's status has passed", "group", s.cfg.Group, "status", statusName(code))
		}
	}
	return nil
}

// statusAdvice is empty while there is nothing that a person has to do.
func statusAdvice(code int8, lasts time.Duration) string {
	switch code {
	case staleTopology:
		return "start this instance with the version of the application that the others run"
	case shutdownRequested:
		return "see the log of the member that it names, and start all instances again"
	}
	if lasts < patience {
		return ""
	}
	switch code {
	case missingSourceTopics:
		return "create the topics that it names"
	case wronglyPartitioned:
		return "give the topics that are joined the same number of partitions; internal topics with a wrong number are of a former run: reset the application"
	case missingInternalTopics:
		return "give this user the right to create topics, or create those that it names"
	}
	return ""
}

// said is a status that was logged.
type said struct {
	since  time.Time
	detail string
}
