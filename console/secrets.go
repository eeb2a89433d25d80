package console

import (
	"regexp"
	"strings"
)

// URLs in errors and in the places of tables may carry what lets their reader in: a user's name with a password in front of the host, or a signature
// behind a question mark.
var (
	userInURL  = regexp.MustCompile(`(://)[^/?#\s"']+@`)
	queryInURL = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^?\s"']*)\?[^\s"']*`)
)

// withoutSecrets takes users and queries out of the URLs in a text.
func withoutSecrets(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return queryInURL.ReplaceAllString(userInURL.ReplaceAllString(text, "${1}…@"), "${1}?…")
}

// longest is how much of such a text is shown, in bytes.
const longest = 2000

// plain is a text of somebody else for the page: an error, or the place of a table.
func plain(text string) string {
	text = strings.ToValidUTF8(withoutSecrets(text), "\uFFFD")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
