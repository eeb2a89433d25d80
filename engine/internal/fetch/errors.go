package fetch

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// IsOutOfRange tells that a log no longer has, or doesn't have yet, an offset that was to be read.
func IsOutOfRange(err error) bool { return errors.Is(err, kerr.OffsetOutOfRange) }

// NeedsAPerson tells that an error of fetching doesn't pass by itself.
func NeedsAPerson(err error) bool {
	for _, bad := range []error{kerr.TopicAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedCompressionType, kerr.UnsupportedVersion, kerr.UnknownTopicID} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}
